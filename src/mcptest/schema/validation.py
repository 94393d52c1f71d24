"""JSON Schema of tools: whether the schema is valid, and whether a value matches it.

Nothing is ever fetched: a reference to another document is an error of the schema. The cost of a
check is counted before it (`cost`), because nothing interrupts the validator.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from mcptest.core.limits import MEBIBYTE
from mcptest.core.safe_text import show
from mcptest.schema.cost import BACKTRACKS, Cost, SchemaError, SchemaLimitError, has_few_parts
from mcptest.wire.json_text import spelled

__all__ = [
    "CompiledSchema",
    "Misfit",
    "SchemaError",
    "SchemaLimitError",
    "expected_but_got",
    "schema_problem",
]

_DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VALIDATORS = {
    _DEFAULT_DIALECT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
"""By the dialect that `$schema` names: the class of the validator."""
_encode = msgspec.json.Encoder().encode
_GAVE_UP = "Error executing regex"


class Misfit(msgspec.Struct, frozen=True):
    """Why a value does not match a schema, and where in the value."""

    reason: str
    pointer: str

    def __str__(self) -> str:
        """As in `/words: expected integer, got "1"`."""
        return f"{self.pointer}: {self.reason}" if self.pointer else self.reason


_MOST_PARTS = 20_000
"""Of a value of which it is said why it does not fit."""


class CompiledSchema:
    """A schema that is ready to be used many times."""

    __slots__ = ("_cost", "_validator")

    def __init__(self, schema: Any) -> None:
        """Raises SchemaError when the schema is not valid in its dialect, or costs too much."""
        if not isinstance(schema, dict | bool):
            raise SchemaError("a schema must be an object or a boolean")
        self._cost = Cost(schema)
        self._validator = _validator_of(schema)

    @property
    def steps(self) -> int:
        """How many it takes to check a value that has no parts, at most."""
        return self._cost.steps

    def misfit(self, value: Any) -> Misfit | None:
        """The first reason why `value` does not fit, or None. Raises SchemaLimitError when it
        costs too much to say."""
        self._cost.allow(value)
        if self._validator.is_valid(value):
            return None  # much cheaper than looking for errors
        # The reason has the value in it, as text and as objects: 60 times the size of its JSON.
        is_small = has_few_parts(value, _MOST_PARTS)
        if not is_small or not self._cost.is_explainable(value):
            if self._cost.backtracks:  # it may have given up, which is no answer
                raise SchemaLimitError("checking this value takes too many steps")
            what = "alternatives" if is_small else "parts"
            return Misfit(f"it does not match the schema; it has too many {what} to say why", "")
        import jsonschema_rs as rs

        try:
            self._validator.validate(value)
        except rs.ValidationError as error:
            message = str(error.message)
            if message.startswith(_GAVE_UP):
                raise SchemaLimitError(
                    "matching one of its patterns takes too many steps"
                ) from None
            pointer = "".join(f"/{part}" for part in error.instance_path)
            return Misfit(
                show(_reason(error.kind, error.instance) or message, 300), show(pointer, 200)
            )
        raise AssertionError("the validator found the value both valid and not")

    def fits(self, value: Any) -> bool:
        """Whether `value` is known to fit; one that costs too much to check is not."""
        try:
            self._cost.allow(value)
        except SchemaLimitError:
            return False
        return bool(self._validator.is_valid(value))


_EXPECTED = {
    "minimum": "at least {limit}",
    "maximum": "at most {limit}",
    "exclusiveMinimum": "more than {limit}",
    "exclusiveMaximum": "less than {limit}",
    "multipleOf": "a multiple of {multiple_of}",
    "const": "{expected_value}",
    "pattern": "a match of {pattern}",
    "format": "the format {format}",
}
"""What a keyword expects, by the members of the validator's error."""


def _reason(kind: Any, value: Any) -> str:
    """In our words, as in `expected integer, got "1"`; empty where the validator's will do."""
    if kind.name == "type":
        return expected_but_got(" or ".join(sorted(kind.types)), value)
    if kind.name == "required":
        return f"the property {_shown(kind.property)} is missing"
    if kind.name == "enum":
        return expected_but_got(f"one of {' or '.join(map(_shown, kind.options))}", value)
    if kind.name in {"additionalProperties", "unevaluatedProperties"}:
        return f"unexpected property {_shown(kind.unexpected[0])}"
    if kind.name == "falseSchema":
        return f"the schema allows nothing here, got {_shown(value)}"
    known = _EXPECTED.get(kind.name)
    if known is None:
        return ""
    members = {name: _shown(member) for name, member in kind.as_dict().items()}
    return expected_but_got(known.format_map(members), value)


def expected_but_got(expected: str, value: Any) -> str:
    return f"expected {show(expected, 200)}, got {_shown(value)}"


def _shown(value: Any) -> str:
    return show(spelled(value), 80)


def schema_problem(schema: Any) -> str:
    """Why no value can be checked against the schema, as the end of a sentence; or empty."""
    try:
        CompiledSchema(schema)
    except SchemaLimitError as error:
        return f"can't be checked: {error}"
    except SchemaError as error:
        return f"is not a JSON Schema: {error}"
    return ""


LARGEST = 4 * MEBIBYTE
_LARGE = 64 * 1024


def _validator_of(schema: Any) -> Any:
    try:
        text = _encode(schema)
    except (TypeError, ValueError, RecursionError):  # what can't be written can't be told apart
        text = b""
    if len(text) > LARGEST:
        raise SchemaLimitError(f"it has {len(text):,} bytes (the limit is {LARGEST:,})")
    return _compile(schema) if len(text) <= _LARGE else _compiled_once(text)


@functools.lru_cache(maxsize=2)
def _compiled_once(text: bytes) -> Any:
    """The validators of the last large schemas: each takes ten times what its schema does. Several
    parts of a command hold the same schema against values, and what a validator took is not given
    back when it goes."""
    return _compile(msgspec.json.decode(text))


def _compile(schema: Any) -> Any:
    import jsonschema_rs as rs

    named = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = _DEFAULT_DIALECT if named is None else str(named).rstrip("#")
    if dialect not in _VALIDATORS:
        raise SchemaError(f"unknown dialect {show(str(named), 100)!r}")
    patterns = rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    validator = getattr(rs, _VALIDATORS[dialect])
    try:
        return validator(schema, retriever=_refuse, pattern_options=patterns)
    except (ValueError, rs.ValidationError, rs.ReferencingError, RecursionError) as error:
        told = getattr(error, "message", None) or str(error)
        text = show(told.splitlines()[0] if told else type(error).__name__, 300)
        raise (SchemaLimitError if "ecursion limit" in text else SchemaError)(text) from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"the reference {show(uri, 100)!r} leads to another document")
