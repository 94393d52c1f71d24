"""A schema with references, combinations and conditions as plain schemas without them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from mcptest.core.limits import cancellation
from mcptest.schema.cost import References, listed, mapping_of

Schema: TypeAlias = Mapping[str, Any]
Plain: TypeAlias = Mapping[str, Any]
"""A schema without references and combinations."""

_COMBINING: Final = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else"}
)
_REFERENCES: Final = 30
_LARGER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LARGEST_BITS: Final = 1_000
"""A larger number is none that a float could stand for."""
_JSON_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class Contradiction(Exception):  # noqa: N818 - it is a fact about a schema, not a failure
    """No value fits both parts."""


class TooLarge(Exception):  # noqa: N818 - it is a fact about a schema, not a failure
    """The schema asks for more than an input of a test holds, or for too long a search."""


EFFORT: Final = 20_000
_ASKING: Final = 1_000


class Effort:
    """How much is done to find values for one schema before it is given up: that many steps, or
    what was done by the time the command has to end."""

    def __init__(self, steps: int = EFFORT) -> None:
        self._steps = self._left = steps
        self._ask_at = steps

    def spend(self, steps: int = 1) -> None:
        """Raises TooLarge when nothing is left."""
        self._left -= steps
        if self._left <= self._ask_at:
            self._ask_at = self._left - _ASKING
            if cancellation.is_over():
                self._left = -1
            if self.is_spent:
                raise TooLarge

    @property
    def spent(self) -> int:
        return self._steps - self._left

    @property
    def is_spent(self) -> bool:
        return self._left < 0


def resolved(schema: Schema, keyword: str, references: References) -> Any:
    """What the reference of a schema leads to; True (anything) where that is elsewhere."""
    for _ in range(_REFERENCES):
        found = next(references.targets(schema, keyword), True)
        if not (
            isinstance(found, Mapping) and len(found) == 1 and isinstance(found.get("$ref"), str)
        ):
            return found
        schema, keyword = found, "$ref"
    return True


def merged(left: Schema, right: Schema) -> Schema:
    """A schema that asks for both. Raises Contradiction where that is plainly impossible."""
    if not left or not right:
        return left or right
    both = dict(left)
    for keyword, wanted in right.items():
        both[keyword] = _both(keyword, both[keyword], wanted) if keyword in both else wanted
    return both


def _both(keyword: str, left: Any, right: Any) -> Any:
    if left == right and type(left) is type(right):
        return left
    if keyword in _LARGER or keyword in _SMALLER:
        return _bound(left, right, max if keyword in _LARGER else min)
    join = _JOINS.get(keyword)
    return join(left, right) if join is not None else right


def _bound(left: Any, right: Any, choose: Callable[[Any, Any], Any]) -> Any:
    usable = [one for one in (left, right) if type(one) in (int, float)]
    return choose(*usable) if len(usable) == 2 else (usable or [left])[0]


def types_of(value: Any) -> tuple[str, ...]:
    """The types that a `type` names, in its order; a hostile one names none."""
    named = value if isinstance(value, list) else [value]
    return tuple(one for one in named if isinstance(one, str) and one in _JSON_TYPES)


def _types(left: Any, right: Any) -> list[str]:
    ours, theirs = types_of(left), types_of(right)
    found = [
        "integer" if {one, other} == {"integer", "number"} else one
        for one in ours
        for other in theirs
        if one == other or {one, other} == {"integer", "number"}
    ]
    if ours and theirs and not found:
        raise Contradiction
    return list(dict.fromkeys(found))


def _common(left: Any, right: Any) -> Any:
    if not isinstance(left, list) or not isinstance(right, list):
        return right
    known = {_key(one) for one in right}
    found = [one for one in left if _key(one) in known]
    if not found:
        raise Contradiction
    return found


def _key(value: Any) -> str:
    """The same for values that JSON holds to be equal, as far as a list needs it."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return repr(value)


def _same(left: Any, right: Any) -> Any:
    raise Contradiction


def _union(left: Any, right: Any) -> Any:
    if not isinstance(left, list) or not isinstance(right, list):
        return right
    known = {_key(one) for one in left}
    return [*left, *(one for one in right if _key(one) not in known)]


def _members(left: Any, right: Any) -> Any:
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        return right
    both = {**left, **right}
    return {
        key: _schemas(left[key], right[key]) if key in left and key in right else value
        for key, value in both.items()
    }


def _schemas(left: Any, right: Any) -> Any:
    return False if left is False or right is False else {"allOf": [left, right]}


def _positions(left: Any, right: Any) -> Any:
    if not isinstance(left, list) or not isinstance(right, list):
        return _schemas(left, right)
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    pairs = [{"allOf": [one, other]} for one, other in zip(longer, shorter, strict=False)]
    return [*pairs, *longer[len(shorter) :]]


def _multiple(left: Any, right: Any) -> Any:
    if type(left) is int and type(right) is int and left and right:
        both = math.lcm(left, right)
        return both if both.bit_length() < _LARGEST_BITS else right
    return right


_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "enum": _common,
    "const": _same,
    "required": _union,
    "properties": _members,
    "patternProperties": _members,
    "dependentRequired": _members,
    "dependentSchemas": _members,
    "additionalProperties": _schemas,
    "propertyNames": _schemas,
    "items": _positions,
    "prefixItems": _positions,
    "contains": _schemas,
    "multipleOf": _multiple,
}


# -- Every way in which a schema can be met, as plain schemas without combinations and -----------

_DEFINITIONS: Final = ("$defs", "definitions", "$schema")
_DEPENDING: Final = ("dependentSchemas", "dependencies")
_MOST: Final = 64
"""More ways than these are not looked at: a schema can have millions."""
_DEEPEST: Final = 24
"""So many references may follow each other without a value in between."""


class Alternative(NamedTuple):
    """One way to meet a schema."""

    plain: Schema
    references: tuple[str, ...] = ()
    """Those that led to it."""


def ways_of(
    schema: Any, references: References, effort: Effort, depth: int = 0
) -> list[Alternative]:
    """The ways, in the order of the schema; none when nothing fits it. Raises TooLarge when it
    takes too long to tell."""
    effort.spend()
    if schema is False or depth > _DEEPEST:
        return []
    if not isinstance(schema, Mapping):
        return [Alternative({})]
    depending = {name: mapping_of(schema, name) for name in _DEPENDING if name in schema}
    if _COMBINING.isdisjoint(schema) and not any(depending.values()):
        return [Alternative(schema)]
    plain = {key: value for key, value in schema.items() if key not in _COMBINING}
    for keyword, table in depending.items():
        plain[keyword] = {one: needs for one, needs in table.items() if not _is_schema(needs)}
        if not plain[keyword]:
            del plain[keyword]
    found = [Alternative(plain)]
    for reference, part in _parts(schema, references):
        ways = ways_of(part, references, effort, depth + 1)
        found = _each(
            found, [Alternative(plain, (*reference, *further)) for plain, further in ways]
        )
    for options in _choices(schema):
        ways = [way for option in options for way in ways_of(option, references, effort, depth + 1)]
        effort.spend(len(ways))
        found = _each(found, ways)
    return found


def _is_schema(value: Any) -> bool:
    return isinstance(value, Mapping | bool)


def _parts(schema: Schema, references: References) -> Iterator[tuple[tuple[str, ...], Any]]:
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        if isinstance(reference, str):
            yield (reference,), resolved(schema, keyword, references)
    yield from (((), part) for part in listed(schema, "allOf"))


def _choices(schema: Schema) -> Iterator[list[Any]]:
    """Whatever leaves a choice, as the schemas that can be chosen from."""
    yield from filter(None, (listed(schema, "anyOf"), listed(schema, "oneOf")))
    if "if" in schema:
        yield [{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)]
    for keyword in _DEPENDING:
        for name, wanted in mapping_of(schema, keyword).items():
            if _is_schema(wanted):
                # A member whose presence asks for more is there with it, or is not there.
                absent = (
                    [] if name in listed(schema, "required") else [{"properties": {name: False}}]
                )
                yield [*absent, {"allOf": [{"required": [name]}, wanted]}]


def _each(left: Iterable[Alternative], right: list[Alternative]) -> list[Alternative]:
    """One of these together with one of those, as far as they go together."""
    found: list[Alternative] = []
    for one, other in product(left, right):
        if len(found) == _MOST:
            break
        with contextlib.suppress(Contradiction):
            plain = merged(one.plain, other.plain)
            found.append(Alternative(plain, one.references + other.references))
    return found


def definitions_of(schema: Schema) -> dict[str, Any]:
    """What a part of a schema needs of the whole around it, to be used alone."""
    return {key: schema[key] for key in _DEFINITIONS if key in schema}


def finite(value: Any) -> int | float | None:
    """A bound as a schema names it, when it is a number."""
    if type(value) is int:
        return value if value.bit_length() < _LARGEST_BITS else None
    return value if type(value) is float and math.isfinite(value) else None


def count(value: Any, otherwise: int) -> int:
    """A length as a schema names it, when it is one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else otherwise
