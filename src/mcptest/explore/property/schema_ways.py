"""Every way in which a schema can be met, as plain schemas without combinations and conditions.

Where `schema_merge` takes one way by choice, this lists them, so that each becomes a strategy of
its own. Ways that are plainly impossible are left out; a value that is made by one fits nearly
always, and whoever makes it validates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from mcptest.explore.schema_merge import Contradiction, Effort, Schema, merged, resolved

_COMBINING: Final = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else"}
)
_DEPENDING: Final = ("dependentSchemas", "dependencies")
_MOST: Final = 64
"""More ways than these are not looked at: a schema can have millions."""
_DEEPEST: Final = 8
"""So many references may follow each other without a value in between."""


class Way(NamedTuple):
    """One way to meet a schema."""

    plain: Schema
    references: tuple[str, ...] = ()
    """Those that led to it."""


def ways_of(schema: Any, root: Any, effort: Effort, depth: int = 0) -> list[Way]:
    """The ways, in the order of the schema; none when nothing fits it. Raises TooLarge when it
    takes too long to tell."""
    effort.spend()
    if schema is False or depth > _DEEPEST:
        return []
    if not isinstance(schema, Mapping):
        return [Way({})]
    if not needs_ways(schema):
        return [Way(schema)]
    found = [Way({key: value for key, value in schema.items() if key not in _COMBINING})]
    for reference, part in _parts(schema, root):
        ways = ways_of(part, root, effort, depth + 1)
        found = _each(found, [Way(plain, (*reference, *further)) for plain, further in ways])
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and options:
            ways = [way for option in options for way in ways_of(option, root, effort, depth + 1)]
            effort.spend(len(ways))
            found = _each(found, ways)
    if "if" in schema:
        found = _each(found, _conditional(schema, root, effort, depth))
    return _depending(found, root, effort, depth)


def needs_ways(schema: Schema) -> bool:
    """Whether there is more than the schema as it stands."""
    keys = schema.keys()
    return not _COMBINING.isdisjoint(keys) or any(
        isinstance(schema.get(keyword), Mapping) for keyword in _DEPENDING
    )


def _parts(schema: Schema, root: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        if isinstance(reference, str):
            yield (reference,), resolved(reference, root)
    parts = schema.get("allOf")
    for part in parts if isinstance(parts, list) else ():
        yield (), part


def _each(left: Iterable[Way], right: list[Way]) -> list[Way]:
    """One of these together with one of those, as far as they go together."""
    return list(islice(_pairs(left, right), _MOST))


def _pairs(left: Iterable[Way], right: list[Way]) -> Iterator[Way]:
    for one in left:
        for other in right:
            try:
                plain = merged(one.plain, other.plain)
            except Contradiction:
                continue
            yield Way(plain, one.references + other.references)


def _conditional(schema: Schema, root: Any, effort: Effort, depth: int) -> list[Way]:
    holds = ways_of(schema["if"], root, effort, depth + 1)
    then = ways_of(schema.get("then", True), root, effort, depth + 1)
    return [*_each(holds, then), *ways_of(schema.get("else", True), root, effort, depth + 1)]


def _depending(found: list[Way], root: Any, effort: Effort, depth: int) -> list[Way]:
    """A member whose presence asks for more is there with it, or is not there."""
    for keyword in _DEPENDING:
        names = dict.fromkeys(
            name
            for way in found
            for name, wanted in _table(way.plain, keyword).items()
            if isinstance(wanted, Mapping | bool)
        )
        for name in names:
            found = [
                each
                for way in found
                for each in _with_or_without(way, keyword, name, root, effort, depth)
            ][:_MOST]
    return found


def _with_or_without(
    way: Way, keyword: str, name: str, root: Any, effort: Effort, depth: int
) -> list[Way]:
    table = _table(way.plain, keyword)
    if name not in table:
        return [way]
    plain = {key: value for key, value in way.plain.items() if key != keyword}
    rest = {key: value for key, value in table.items() if key != name}
    if rest:
        plain[keyword] = rest
    asked = Way({"required": [name]})
    present = _each(
        _each([Way(plain, way.references)], [asked]), ways_of(table[name], root, effort, depth + 1)
    )
    required = plain.get("required")
    if isinstance(required, list) and name in required:
        return present
    members = {**_table(plain, "properties"), name: False}
    return [Way({**plain, "properties": members}, way.references), *present]


def _table(schema: Schema, keyword: str) -> Mapping[str, Any]:
    found = schema.get(keyword)
    return found if isinstance(found, Mapping) else {}
