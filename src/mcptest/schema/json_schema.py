"""JSON Schema of tools: is the schema itself valid, and does a value fit it?

Nothing is ever fetched: a reference to another document is an error of the schema. What a
regular expression may cost is bounded.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.show import show

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": 202012,
    "https://json-schema.org/draft/2019-09/schema": 201909,
    "http://json-schema.org/draft-07/schema": 7,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-04/schema": 4,
}
_BACKTRACKS = 1_000_000


class SchemaError(Exception):
    """The schema can't be used; the text says why."""


class SchemaDepthError(SchemaError):
    """The schema may be valid, but nests deeper than the validator goes."""


class Misfit(msgspec.Struct, frozen=True):
    """Why a value does not fit, and where in the value."""

    reason: str
    pointer: str


class CompiledSchema:
    """A schema that is ready to be used many times."""

    __slots__ = ("_validator",)

    def __init__(self, schema: Any) -> None:
        """Raises SchemaError when the schema is not valid in its dialect."""
        self._validator = _compile(schema)

    def misfit(self, value: Any) -> Misfit | None:
        """The first reason why `value` does not fit, or None."""
        if self._validator.is_valid(value):
            return None  # much cheaper than looking for errors
        error = next(iter(self._validator.iter_errors(value)))
        pointer = "".join(f"/{part}" for part in error.instance_path)
        return Misfit(show(error.message, 300), show(pointer, 200))


def dialect_of(schema: Any) -> int:
    """The draft that `$schema` names; 2020-12 when it names none. SchemaError when unknown."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if named is None:
        return 202012
    found = DIALECTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if found is None:
        raise SchemaError(f"unknown dialect {show(str(named), 100)!r}")
    return found


def _compile(schema: Any) -> Any:
    import jsonschema_rs as rs

    validators = {
        202012: rs.Draft202012Validator,
        201909: rs.Draft201909Validator,
        7: rs.Draft7Validator,
        6: rs.Draft6Validator,
        4: rs.Draft4Validator,
    }
    if not isinstance(schema, dict | bool):
        raise SchemaError("a schema is an object or a boolean")
    try:
        return validators[dialect_of(schema)](
            schema,
            retriever=_refuse,
            pattern_options=rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS),
        )
    except SchemaError:
        raise
    except (ValueError, rs.ValidationError, rs.ReferencingError, RecursionError) as error:
        text = _first_line(error)
        raise (SchemaDepthError if "ecursion limit" in text else SchemaError)(text) from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"the reference {show(uri, 100)!r} leads out of the schema; it is not fetched")


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return show(text.splitlines()[0] if text else type(error).__name__, 300)
