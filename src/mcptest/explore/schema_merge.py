"""One plain schema out of one with references, combinations and conditions.

Where a schema leaves a choice (anyOf, oneOf, if) one way is chosen. What comes out has none of
these keywords any more; a value that is made from it fits the original nearly always, and whoever
asks validates it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from mcptest.explore.choices import Choices
from mcptest.model.deadline import cancellation

Schema: TypeAlias = Mapping[str, Any]

_COMBINING: Final = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else"}
)
_REFERENCES: Final = 30
_SHALLOW: Final = 6
"""From here on the way that refers least to other schemas is taken, so that there is an end."""
_LARGER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LARGEST_BITS: Final = 1_000
_JSON_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class Contradiction(Exception):  # noqa: N818 - it is a fact about a schema, not a failure
    """No value fits both parts."""


class TooLarge(Exception):  # noqa: N818 - it is a fact about a schema, not a failure
    """The schema asks for more than an input of a test holds, or for too long a search."""


_EFFORT: Final = 20_000
_ASKING: Final = 1_000


class Effort:
    """How much is done to find values for one schema before it is given up: that many steps, or
    what was done by the time the command has to end."""

    def __init__(self, steps: int = _EFFORT) -> None:
        self._left = steps
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
    def is_spent(self) -> bool:
        return self._left < 0


class Settler:
    """Settles the schemas of one document."""

    def __init__(self, root: Any, choices: Choices, effort: Effort) -> None:
        self._root = root
        self._choices = choices
        self._effort = effort
        self._referring: dict[int, int] = {}

    def settle(self, schema: Any, depth: int) -> Schema:
        """The schema with every choice taken. Raises Contradiction when nothing fits it, and
        TooLarge when that takes too long to tell."""
        if schema is False:
            raise Contradiction
        if not isinstance(schema, Mapping):
            return {}
        if not _COMBINING & schema.keys():
            return schema
        self._effort.spend(1 + len(schema))
        settled: Schema = {key: value for key, value in schema.items() if key not in _COMBINING}
        for part in self._parts(schema, depth):
            self._effort.spend(_size(part))
            settled = merged(settled, part)
        for keyword in ("anyOf", "oneOf"):
            options = schema.get(keyword)
            if isinstance(options, list) and options:
                settled = self._with_one_of(settled, options, depth)
        return self._with_condition(settled, schema, depth) if "if" in schema else settled

    def _parts(self, schema: Schema, depth: int) -> Iterator[Schema]:
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(schema.get(keyword), str):
                yield self.settle(resolved(schema[keyword], self._root), depth + 1)
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            yield self.settle(part, depth + 1)

    def _with_one_of(self, settled: Schema, options: list[Any], depth: int) -> Schema:
        order = list(options)
        if depth > _SHALLOW:
            order.sort(key=self._references_in)
        else:
            at = self._choices.index(len(order))
            order = [order[at], *order[:at], *order[at + 1 :]]
        for option in order:
            try:
                return merged(settled, self.settle(option, depth + 1))
            except Contradiction:
                continue
        raise Contradiction

    def _references_in(self, option: Any) -> int:
        found = self._referring.get(id(option))
        if found is None:
            found = self._referring[id(option)] = str(option).count("$ref")
        return found

    def _with_condition(self, settled: Schema, schema: Schema, depth: int) -> Schema:
        ways: list[Callable[[], Schema]] = [
            lambda: merged(
                self.settle(schema["if"], depth + 1), self._branch(schema, "then", depth)
            ),
            lambda: self._branch(schema, "else", depth),
        ]
        if self._choices.index(2):
            ways.reverse()
        for way in ways:
            try:
                return merged(settled, way())
            except Contradiction:
                continue
        raise Contradiction

    def _branch(self, schema: Schema, keyword: str, depth: int) -> Schema:
        return self.settle(schema.get(keyword, {}), depth + 1)


def resolved(reference: str, root: Any) -> Any:
    """What a reference within the document leads to; True (anything) for one to elsewhere."""
    found: Any = {"$ref": reference}
    for _ in range(_REFERENCES):
        name = found.get("$ref") if isinstance(found, Mapping) and len(found) == 1 else None
        if not isinstance(name, str):
            return found
        found = _looked_up(name, root)
    return True


def _looked_up(reference: str, root: Any) -> Any:
    if reference == "#":
        return root
    if not reference.startswith("#"):
        return True
    if not reference.startswith("#/"):
        return _anchored(reference[1:], root)
    found = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return True
    return True if found is None else found


def _anchored(anchor: str, root: Any) -> Any:
    definitions = root.get("$defs") if isinstance(root, Mapping) else None
    for one in definitions.values() if isinstance(definitions, Mapping) else ():
        if isinstance(one, Mapping) and anchor in (one.get("$anchor"), one.get("$dynamicAnchor")):
            return one
    return True


def _size(schema: Schema) -> int:
    tables = (schema.get(keyword) for keyword in ("properties", "required", "enum"))
    return 1 + sum(len(one) for one in tables if isinstance(one, list | Mapping))


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
        key: {"allOf": [left[key], right[key]]} if key in left and key in right else value
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
