"""JSON Schema to strategies: each part of a schema is translated once, each value validated.

References may recurse: from the third time that one is met within itself on, a value takes
nothing that it does not need, and so it comes to its end.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.from_schema import fitting_value
from mcptest.explore.property.schema_ways import Way, needs_ways, ways_of
from mcptest.explore.property.shaped import INTEGERS, OBJECTS, SCALARS, TEXTS
from mcptest.explore.property.translated_array import arrays
from mcptest.explore.property.translated_number import numbers
from mcptest.explore.property.translated_object import objects
from mcptest.explore.property.translated_text import texts
from mcptest.explore.schema_merge import Effort, TooLarge, types_of
from mcptest.model.deadline import cancellation
from mcptest.model.message import ABSENT
from mcptest.schema.json_schema import CompiledSchema, SchemaError

_DEEPEST: Final = 24
"""So many references within each other are followed."""
_MOST_PARTS: Final = 4_000
_REPEATS: Final = 2
_TRIES: Final = 8
_RISKY: Final = frozenset(
    {
        "oneOf",
        "not",
        "if",
        "format",
        "pattern",
        "uniqueItems",
        "contains",
        "maxContains",
        "propertyNames",
        "patternProperties",
        "multipleOf",
    }
)
"""Keywords that a value may miss by chance: it is validated where it stands."""
_ANYTHING: Final = SCALARS | st.lists(SCALARS, max_size=2) | OBJECTS
_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
    ),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def fitting_values(schema: Any) -> SearchStrategy[Any]:
    """Values that fit; nothing when none was found or the schema can't be used."""
    if cancellation.is_over():
        return st.nothing()
    try:
        return _known(_encode(schema))
    except (TypeError, ValueError, RecursionError):
        return st.nothing()  # it is no JSON, so it is no schema


@functools.lru_cache(maxsize=256)
def _known(spelled: bytes) -> SearchStrategy[Any]:
    schema = msgspec.json.decode(spelled)
    try:
        compiled = CompiledSchema(schema)
    except SchemaError:
        return st.nothing()
    try:
        made = Translation(schema).of(schema)
    except (RecursionError, TooLarge):
        made = st.nothing()
    plainest = fitting_value(schema)
    if made.is_empty:
        return st.nothing() if plainest is ABSENT else _copies(plainest)
    return _fitting(made, compiled, plainest)


def _copies(value: Any) -> SearchStrategy[Any]:
    text = _encode(value)
    return st.builds(lambda: msgspec.json.decode(text))


@st.composite
def _fitting(
    draw: DrawFn, made: SearchStrategy[Any], compiled: CompiledSchema, plainest: Any
) -> Any:
    for _ in range(_TRIES):
        value = draw(made)
        if compiled.fits(value):
            return value
    if plainest is ABSENT:
        return draw(st.nothing())
    return draw(_copies(plainest))


class Translation:
    """The parts of one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._effort = Effort()
        self._made: dict[tuple[bytes, int, bool], SearchStrategy[Any]] = {}
        self._path: list[str] = []
        """The references that led here."""

    def of(self, schema: Any) -> SearchStrategy[Any]:
        """Values that fit a part of the schema, nearly always."""
        if schema is False:
            return st.nothing()
        if not isinstance(schema, Mapping) or not schema:
            return _ANYTHING
        key = (_encode(schema), len(self._path), self._tight)
        known = self._made.get(key)
        if known is None:
            if len(self._made) > _MOST_PARTS:
                return st.nothing()
            known = self._made[key] = self._translated(schema)
        return known

    @property
    def _tight(self) -> bool:
        path = self._path
        return len(path) > _DEEPEST // 2 or any(path.count(one) > _REPEATS for one in set(path))

    def _translated(self, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        if not needs_ways(schema):
            return self._checked(self._plain(schema), schema)
        ways = [self._way(way) for way in self._ways(schema)]
        made = st.one_of([way for way in ways if not way.is_empty])
        return self._checked(made, schema)

    def _ways(self, schema: Mapping[str, Any]) -> list[Way]:
        ways = ways_of(schema, self._root, self._effort)
        if self._tight and len(ways) > 1:  # the ways that lead to an end soonest
            ways.sort(key=lambda way: len(way.references) + str(way.plain).count("'$ref'"))
            return ways[: len(ways) // 2]
        return ways

    def _way(self, way: Way) -> SearchStrategy[Any]:
        if way.references and len(self._path) > _DEEPEST:
            return st.nothing()
        self._path.extend(way.references)
        try:
            return self._plain(way.plain)
        finally:
            del self._path[len(self._path) - len(way.references) :]

    def _plain(self, plain: Mapping[str, Any]) -> SearchStrategy[Any]:
        if "const" in plain:
            return self._given([plain["const"]], plain)
        if isinstance(plain.get("enum"), list):
            return self._given(plain["enum"], plain)
        kinds = types_of(plain.get("type")) or self._told(plain)
        if not kinds:
            return _ANYTHING
        return st.one_of([one for kind in kinds if not (one := self._kind(kind, plain)).is_empty])

    def _given(self, values: list[Any], plain: Mapping[str, Any]) -> SearchStrategy[Any]:
        compiled = self._check(plain)
        fitting = [one for one in values if compiled is None or compiled.fits(one)]
        if any(isinstance(one, dict | list) for one in fitting):
            spelled = [_encode(one) for one in fitting]  # whoever gets one may change it
            return st.sampled_from(spelled).map(msgspec.json.decode)
        return st.sampled_from(fitting) if fitting else st.nothing()

    def _told(self, plain: Mapping[str, Any]) -> list[str]:
        return [
            kind
            for kind, keywords in _TELLING.items()
            if any(keyword in plain for keyword in keywords)
        ]

    def _kind(self, kind: str, plain: Mapping[str, Any]) -> SearchStrategy[Any]:
        if kind == "object":
            return objects(plain, self.of, tight=self._tight)
        if kind == "array":
            return arrays(plain, self.of, tight=self._tight)
        if kind == "string":
            return TEXTS if plain.keys() <= {"type", "title", "description"} else texts(plain)
        if kind == "boolean":
            return st.booleans()
        if kind == "null":
            return st.none()
        if kind == "integer" and plain.keys() <= {"type", "title", "description"}:
            return INTEGERS
        return numbers(plain, integer=kind == "integer")

    # -- validating a part -------------------------------------------------------------------

    def _checked(self, made: SearchStrategy[Any], schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        if schema is self._root or _RISKY.isdisjoint(schema.keys()) or made.is_empty:
            return made
        compiled = self._check(schema)
        if compiled is None:
            return made
        return made.filter(compiled.fits)

    def _check(self, schema: Mapping[str, Any]) -> CompiledSchema | None:
        """None when the part can't be looked at without the whole around it."""
        around: dict[str, Any] = {}
        if isinstance(self._root, Mapping):
            names = ("$defs", "definitions", "$schema")
            around = {name: self._root[name] for name in names if name in self._root}
        text = _encode({**around, **schema})
        self._effort.spend(len(text) // 20)
        inside = (b'"#/$defs/', b'"#/definitions/')
        if text.count(b'"$ref"') != sum(text.count(one) for one in inside):
            return None
        try:
            return CompiledSchema({**schema, **around})
        except SchemaError:
            return None
