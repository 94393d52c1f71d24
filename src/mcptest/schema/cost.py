"""What it costs to check values against a JSON Schema, and where its references lead.

Nothing is ever fetched: references lead somewhere within the same document, or nowhere.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

import msgspec

from mcptest.core.safe_text import show


class References:
    """The references of one document; what they lead to is looked up when it is asked for."""

    __slots__ = ("_anchors", "_bases", "_dynamic", "_resources", "_root")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._bases: dict[int, str] = {}
        """The address that references within a schema are relative to."""
        self._resources: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self._dynamic: dict[str, list[Any]] = {}

    def targets(self, schema: Mapping[str, Any], keyword: str) -> Iterator[Any]:
        """What a reference may lead to; nothing when that is in no part of the document."""
        reference = schema[keyword]
        if keyword == "$ref" and reference == "#" and self._is_single():
            yield self._root
        elif keyword == "$ref" and reference.startswith("#/") and self._is_single():
            yield from _pointed_at(self._root, reference[2:])
        else:
            self._index()
            base = self._bases.get(id(schema), self._bases.get(id(self._root), ""))
            address, fragment = _joined(base, reference)
            if keyword == "$recursiveRef":
                yield from self._resources.values()
            elif keyword == "$dynamicRef" and fragment in self._dynamic:
                yield from self._dynamic[fragment]
            elif fragment.startswith("/"):
                yield from _pointed_at(self._resources.get(address), fragment[1:])
            elif fragment:
                yield from _some(self._anchors.get(f"{address}#{fragment}"))
            else:
                yield from _some(self._resources.get(address))

    def _is_single(self) -> bool:
        """Whether the document has no parts with an address of their own."""
        self._index()
        return len(self._resources) == 1

    def _index(self) -> None:
        if self._resources:
            return
        self._resources[""] = self._root
        left: list[tuple[Any, str]] = [(self._root, "")]
        while left:
            one, base = left.pop()
            if type(one) is dict:
                base = self._note(one, base)
                left.extend((part, base) for part in one.values())
            elif type(one) is list:
                left.extend((part, base) for part in one)

    def _note(self, schema: dict[str, Any], base: str) -> str:
        name = schema.get("$id", schema.get("id"))
        if isinstance(name, str) and not name.startswith("#"):
            base = _joined(base, name)[0]
            self._resources.setdefault(base, schema)
            if schema is self._root:
                del self._resources[""]
        elif isinstance(name, str):
            self._anchors.setdefault(f"{base}{name}", schema)
        self._bases[id(schema)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault(f"{base}#{anchor}", schema)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(anchor, []).append(schema)
        return base


def _joined(base: str, reference: str) -> tuple[str, str]:
    """The address and the fragment that a reference means."""
    try:
        address, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        return reference, ""  # no address at all: it leads nowhere
    return address, fragment


def _some(found: Any) -> Iterator[Any]:
    if found is not None:
        yield found


def _pointed_at(found: Any, pointer: str) -> Iterator[Any]:
    if "%" in pointer:
        pointer = unquote(pointer)
    for part in pointer.split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if type(found) is dict:
            found = found.get(key)
        elif type(found) is list and key.isdigit() and len(key) < 10 and int(key) < len(found):
            found = found[int(key)]
        else:
            return
    yield from _some(found)


# -- What it costs to check values against a JSON Schema, counted before anything is checked -----

MOST_STEPS: Final = 20_000_000
_STEPS_PER_PART: Final = 20
"""Allowed for each part of a value beyond that: what grows with the answer is no amplification."""
_EXPLAINING: Final = 2_000_000
_EXPLAINING_ALTERNATIVES: Final = 20_000
"""Each alternative that does not fit becomes an error of its own, with a copy of the value."""
_DEEPEST: Final = 400
_COMPILING: Final = 800
"""Steps to compile one part of a schema. In the validator it takes two kilobytes."""
_COMPILING_ITEM: Final = 100
_SMALL: Final = 100
"""Parts of a value of which the validator may make as many copies as it likes."""
_COMPARING: Final = 100
"""Steps to compare with one choice of an enum; texts and whole numbers are looked up instead."""
_HASHED: Final = (str, int, bool, type(None))
_CONTAINERS: Final = (dict, list)
_HASHING: Final = 10
_LARGEST_NUMBER: Final = 10**12

_LISTED: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_NAMED: Final = ("dependentSchemas", "dependencies")
_REFERRING: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE: Final = frozenset({*_LISTED, *_SINGLE, *_NAMED, *_REFERRING})
_OF_MEMBERS: Final = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_AGAIN: Final = 4
"""So often all that holds in place is checked for such a keyword: what it applies to is what they
left over, and to know that the validator asks each of them again."""


class SchemaError(Exception):
    """The schema is not usable; the text says why."""


class SchemaLimitError(SchemaError):
    """The schema may be valid, but it costs more to check it, or a value, than we spend."""


class Cost:
    """What one schema costs. Raises SchemaLimitError when that is too much for any value."""

    __slots__ = ("_amplified", "_closures", "_parts", "_recursive", "_references", "_root", "steps")

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._parts = _parts_of(schema)
        self._references = References(schema)
        self._closures: dict[int, _Closure] = {}
        self._recursive: set[int] = set()
        self.steps = self._expanded() if self._parts.multiplying else self._parts.steps
        """On one part of a value, at most."""
        self._amplified: int | None = None
        if self.steps > MOST_STEPS:
            raise SchemaLimitError(
                f"checking a value against it takes {_number(self.steps)} steps, because its "
                f"{self._parts.multiplying} multiply (the limit is {MOST_STEPS:,})"
            )

    def allow(self, value: Any) -> None:
        """Raises SchemaLimitError when it costs too much to say whether the value fits."""
        if not self._parts.measuring and has_few_parts(value, MOST_STEPS // self.steps):
            return
        size = _Size(value)
        limit = MOST_STEPS + _STEPS_PER_PART * size.parts
        if self._parts.hashing and _HASHING * size.parts * size.depth > limit:
            raise _too_much("checking the items of this value for duplicates", limit)
        # The most steps on one part of a value, however large the value is.
        if self._amplified is None:
            known: dict[int, int] = {}
            self._amplified = self._reach(self._root, known, {})
            self._amplified += sum(known.get(one, 0) for one in self._recursive)
        if min(self.steps, self._amplified) * size.weight <= limit:
            return
        if self._counted(value, limit, remembering=True) > limit:
            raise _too_much("checking this value", limit)

    def is_explainable(self, value: Any) -> bool:
        """Whether the validator can say why the value does not fit, at a bounded cost."""
        if not self._parts.alternatives and not self._recursive:
            return True
        limit = _EXPLAINING
        if self._parts.alternatives:
            limit = _EXPLAINING_ALTERNATIVES
            if not has_few_parts(value, _SMALL):
                limit = limit * _SMALL // _Size(value).parts
        return self._counted(value, limit, remembering=False) <= limit

    @property
    def backtracks(self) -> bool:
        """Whether one of its expressions may be given up on."""
        return self._parts.backtracking

    # -- the schema alone ------------------------------------------------------------------

    def _expanded(self) -> int:
        """Its steps with every reference written out; a recursive one counts once."""
        known: dict[int, int] = {}
        total = self._expand(self._root, known, {}, 0)
        return total + sum(known[one] for one in self._recursive if one != id(self._root))

    def _expand(
        self, schema: Any, known: dict[int, int], open_: dict[int, None], depth: int
    ) -> int:
        if not isinstance(schema, dict):
            return 1
        key = id(schema)
        if key in open_:
            self._recursive.add(key)
            return 1
        found = known.get(key)
        if found is None:
            if depth > _DEEPEST:
                raise SchemaLimitError(f"it is nested more than {_DEEPEST} levels deep")
            open_[key] = None
            found, times = _own(schema), _repeats(schema)
            for part in self._in_place(schema):
                found += times * self._expand(part, known, open_, depth + 1)
            for part in _inner(schema):
                found += self._expand(part, known, open_, depth + 1)
            del open_[key]
            known[key] = found
        return found

    def _reach(self, schema: Any, known: dict[int, int], open_: dict[int, None]) -> int:
        if type(schema) is not dict or id(schema) in open_:
            return 1
        key = self._closure(schema)
        if key not in known:
            open_[key] = None
            closure = self._closures[key]
            inner = [part for one, _ in closure.holding for part in _inner(one)]
            furthest = max((self._reach(one, known, open_) for one in inner), default=0)
            del open_[key]
            fan = sum(many * _overlap(one) for one, many in closure.holding)
            known[key] = max(closure.fixed + closure.by_length, fan * furthest)
        return known[key]

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Any]:
        """The schemas that hold for the same value."""
        if _IN_PLACE.isdisjoint(schema):
            return
        for keyword in _REFERRING:
            if isinstance(schema.get(keyword), str):
                yield from self._references.targets(schema, keyword)
        for keyword in _LISTED:
            yield from listed(schema, keyword)
        yield from (schema[keyword] for keyword in _SINGLE if keyword in schema)
        for keyword in _NAMED:
            yield from (one for one in mapping_of(schema, keyword).values() if type(one) is dict)

    # -- the schema on a value -------------------------------------------------------------

    def _counted(self, value: Any, limit: int, *, remembering: bool) -> int:
        """Steps on just this value, level by level; more than the limit is not counted on."""
        total = 0
        level: list[tuple[Any, Mapping[int, int]]] = [(value, {self._closure(self._root): 1})]
        while level:
            deeper: list[tuple[Any, Mapping[int, int]]] = []
            alike: dict[tuple[tuple[int, int], ...], Mapping[int, int]] = {}
            for one, applied in level:
                holding: list[tuple[dict[str, Any], int]] = []
                for key, times in applied.items():
                    closure = self._closures[key]
                    again = 1 if remembering and key in self._recursive else times
                    total += again * closure.steps_on(one)
                    if total > limit:
                        return total
                    holding += ((schema, again * many) for schema, many in closure.holding)
                for part, counts in self._below(one, holding):
                    # The same holds for most members of a value: there may be very many.
                    deeper.append((part, alike.setdefault(tuple(counts.items()), counts)))
            level = deeper
        return total

    def _below(
        self, value: Any, holding: list[tuple[dict[str, Any], int]]
    ) -> Iterator[tuple[Any, Mapping[int, int]]]:
        """Each part of the value for which a schema holds, and how often which of them does."""
        parts: Iterable[tuple[Any, Any]] = ()
        schemas_for: Callable[[dict[str, Any], Any], Iterator[Any]] = _for_member
        if type(value) is dict:
            parts = value.items()
        elif type(value) is list:
            parts, schemas_for = enumerate(value), _for_item
        for place, part in parts:
            counts: dict[int, int] = {}
            for schema, times in holding:
                for applied in schemas_for(schema, place):
                    if type(applied) is dict:
                        key = self._closure(applied)
                        counts[key] = counts.get(key, 0) + times
            if counts:
                yield part, counts

    def _closure(self, schema: Any) -> int:
        """The key of what holds for a value together with the schema."""
        key = id(schema)
        if key not in self._closures:
            self._closures[key] = self._closed(schema, {}, {})
        return key

    def _closed(self, schema: Any, known: dict[int, _Closure], open_: dict[int, None]) -> _Closure:
        key = id(schema)
        found = known.get(key)
        if found is None and (type(schema) is not dict or key in open_):
            return _NOTHING
        if found is None:
            open_[key] = None
            counts: Counter[int] = Counter()
            schemas: dict[int, dict[str, Any]] = {}
            fixed, times = _own(schema), _repeats(schema)
            by_length = sum(_pattern_costs(one).by_length for one in _patterns(schema))
            if not _HOLDING.isdisjoint(schema):
                counts[key], schemas[key] = 1, schema
            for part in self._in_place(schema):
                inner = self._closed(part, known, open_)
                fixed, by_length = fixed + times * inner.fixed, by_length + times * inner.by_length
                for other, many in inner.holding:
                    counts[id(other)] += times * many
                    schemas[id(other)] = other
            del open_[key]
            holding = tuple((schemas[one], many) for one, many in counts.items())
            found = known[key] = _Closure(fixed, by_length, holding)
        return found


class _Closure(msgspec.Struct, frozen=True):
    """A schema with all that holds in its place."""

    fixed: int
    by_length: int
    """Steps for every few characters of a text."""
    holding: tuple[tuple[dict[str, Any], int], ...]
    """The schemas that speak of members or items, and how often each comes."""

    def steps_on(self, value: Any) -> int:
        if type(value) is str:
            return self.fixed + self.by_length * (len(value) // 4)
        if type(value) is dict:
            return self.fixed + self.by_length * sum(1 + len(name) // 4 for name in value)
        return self.fixed


_NOTHING: Final = _Closure(1, 0, ())
_HOLDING: Final = frozenset(
    {"properties", "patternProperties", "propertyNames", "prefixItems", *_OF_MEMBERS, *_OF_ITEMS}
)


class _Size:
    __slots__ = ("depth", "parts", "weight")

    def __init__(self, value: Any) -> None:
        self.parts = self.depth = text = 0
        level = [value]
        while level:
            self.depth += 1
            self.parts += len(level)
            deeper: list[Any] = []
            for one in level:
                if type(one) is str:
                    text += len(one)
                elif type(one) is dict:
                    text += sum(map(len, one))
                    deeper.extend(one.values())
                elif type(one) is list:
                    deeper.extend(one)
            level = deeper
        self.weight = self.parts + text // 4


def has_few_parts(value: Any, most: int) -> bool:
    """Whether the value has at most so many parts, itself included."""
    left, parts = [value], 0
    while left:
        one = left.pop()
        parts += 1
        if type(one) is dict:
            left.extend(one.values())
        elif type(one) is list:
            left.extend(one)
        if parts + len(left) > most:
            return False
    return True


class _Parts(msgspec.Struct):
    steps: int = 1
    """Of all parts together, each taken once."""
    multiplying: str = ""
    """What makes parts count more than once, for a message."""
    alternatives: bool = False
    measuring: bool = False
    """Whether the length of texts or arrays matters."""
    hashing: bool = False
    backtracking: bool = False


_TELLING: Final = frozenset(
    {*_REFERRING, *_UNEVALUATED, "anyOf", "oneOf", "uniqueItems", "pattern", "patternProperties"}
)


def _parts_of(schema: Any) -> _Parts:
    found = _Parts()
    compiling, left = 0, [schema]
    while left:
        one = left.pop()
        if type(one) is dict:
            compiling += _COMPILING
            found.steps += _own(one)
            if not _TELLING.isdisjoint(one):
                compiling += _note(one, found)
            left.extend(part for part in one.values() if type(part) in _CONTAINERS)
        elif type(one) is list:
            compiling += _COMPILING_ITEM * len(one)
            left.extend(part for part in one if type(part) in _CONTAINERS)
        if compiling > MOST_STEPS:
            raise SchemaLimitError("it has too many parts, or patterns that are too large")
    found.measuring = found.measuring or found.hashing
    return found


def _note(schema: dict[str, Any], found: _Parts) -> int:
    """What a schema has that takes a closer look; the steps to compile its expressions."""
    if any(one in schema for one in _REFERRING):
        found.multiplying = "references"
    elif not found.multiplying and not _UNEVALUATED.isdisjoint(schema):
        found.multiplying = "unevaluated members or items"
    found.alternatives = found.alternatives or "anyOf" in schema or "oneOf" in schema
    found.hashing = found.hashing or schema.get("uniqueItems") is True
    compiling = 0
    for pattern in _patterns(schema):
        costs = _pattern_costs(pattern)
        compiling += costs.compiling
        found.measuring = True
        found.backtracking = found.backtracking or costs.backtracking
    return compiling


def _own(schema: dict[str, Any]) -> int:
    """The steps that a schema takes by itself on one value."""
    steps = 1 + len(schema)
    if "properties" in schema:
        steps += len(mapping_of(schema, "properties"))
    if "required" in schema:
        steps += len(listed(schema, "required"))
    if "enum" in schema:
        slow = sum(1 for one in listed(schema, "enum") if type(one) not in _HASHED)
        steps += _COMPARING * slow
    if "pattern" in schema or "patternProperties" in schema:
        steps += sum(_pattern_costs(one).matching for one in _patterns(schema))
    return steps


def _repeats(schema: dict[str, Any]) -> int:
    """How often that is checked which holds in place of the schema."""
    return 1 if _UNEVALUATED.isdisjoint(schema) else _AGAIN


def _patterns(schema: dict[str, Any]) -> Iterator[str]:
    if isinstance(pattern := schema.get("pattern"), str):
        yield pattern
    yield from mapping_of(schema, "patternProperties")


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas that hold for members and items."""
    for keyword in ("properties", "patternProperties"):
        yield from mapping_of(schema, keyword).values()
    yield from listed(schema, "prefixItems")
    for keyword in (*_OF_MEMBERS, *_OF_ITEMS, "propertyNames"):
        one = schema.get(keyword)
        if type(one) is list:
            yield from one
        elif type(one) is dict:
            yield one


def _overlap(schema: dict[str, Any]) -> int:
    """How many inner schemas hold for one member or item at most."""
    members = 1 + len(mapping_of(schema, "patternProperties"))
    members += ("unevaluatedProperties" in schema) + ("propertyNames" in schema)
    return max(members, 1 + ("contains" in schema) + ("unevaluatedItems" in schema))


def _for_member(schema: dict[str, Any], name: str) -> Iterator[Any]:
    known = mapping_of(schema, "properties")
    if name in known:
        yield known[name]
    yield from mapping_of(schema, "patternProperties").values()
    if name not in known:
        yield schema.get("additionalProperties")
    yield schema.get("unevaluatedProperties")
    yield schema.get("propertyNames")


def _for_item(schema: dict[str, Any], place: int) -> Iterator[Any]:
    items = schema.get("items")
    positions = items if type(items) is list else listed(schema, "prefixItems")
    if place < len(positions):
        yield positions[place]
    else:
        yield schema.get("additionalItems") if type(items) is list else items
    yield schema.get("contains")
    yield schema.get("unevaluatedItems")


def listed(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    """What a keyword lists; nothing where a hostile schema has something else."""
    found = schema.get(keyword)
    return found if type(found) is list else []


def mapping_of(schema: Mapping[str, Any], keyword: str) -> dict[str, Any]:
    found = schema.get(keyword)
    return found if type(found) is dict else {}


def _too_much(what: str, limit: int) -> SchemaLimitError:
    return SchemaLimitError(f"{what} takes more than {limit:,} steps")


def _number(steps: int) -> str:
    return f"about {steps:,}" if steps < _LARGEST_NUMBER else f"more than {_LARGEST_NUMBER:,}"


# -- regular expressions -------------------------------------------------------------------

BACKTRACKS: Final = 100_000
"""As often may one match go back, where an expression can't be matched in one pass."""
_BACKTRACKING_STEPS: Final = 20_000
_LONGEST_PATTERN: Final = 20_000
_COUNT: Final = re.compile(r"\{(\d{1,6})(?:,(\d{0,6}))?\}")
_CLASS: Final = re.compile(r"\\[wWdDsSpP]|\.|\[\^")
_BACKTRACKING: Final = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9k]|[*+?}]\+")
_CLASS_STEPS: Final = 400
_CLASS_STEPS_BACKTRACKING: Final = 11_000
_LONGEST_REPEAT: Final = 1_000_000


class _PatternCosts(msgspec.Struct, frozen=True):
    """Steps to compile an expression, to match it once, and for every few characters."""

    compiling: int
    matching: int
    by_length: int
    backtracking: bool


@functools.lru_cache(maxsize=1_024)
def _pattern_costs(pattern: str) -> _PatternCosts:
    if len(pattern) > _LONGEST_PATTERN:
        raise SchemaLimitError(f"the pattern {show(pattern, 60)!r} is too long")
    backtracking = _BACKTRACKING.search(pattern) is not None
    each = _CLASS_STEPS_BACKTRACKING if backtracking else _CLASS_STEPS
    size, classes = _written_out(pattern)
    compiling = 10 * size + each * classes
    if compiling > MOST_STEPS:
        raise SchemaLimitError(
            f"the pattern {show(pattern, 60)!r} is too large: its repetitions multiply"
        )
    matching = _BACKTRACKING_STEPS if backtracking else 10
    return _PatternCosts(compiling, matching, size, backtracking)


def _written_out(pattern: str) -> tuple[int, int]:
    """Letters and classes of an expression with every counted repetition written out.

    Each group is closed by its bracket, and then repeated as often as the count behind it says.
    Brackets within a class of characters only make the sum larger.
    """
    sums = [(0, 0)]
    latest, at = (0, 0), 0
    while at < len(pattern):
        letter = pattern[at]
        counted = _COUNT.match(pattern, at) if letter == "{" else None
        if counted is not None:
            times = min(int(counted.group(2) or counted.group(1)), _LONGEST_REPEAT)
            sums[-1] = _sum(sums[-1], latest, max(0, times - 1))
            latest = (latest[0] * max(1, times), latest[1] * max(1, times))
            at = counted.end()
            continue
        if letter == "(":
            sums.append((0, 0))
        elif letter == ")" and len(sums) > 1:
            latest = sums.pop()
            sums[-1] = _sum(sums[-1], latest, 1)
        else:
            is_class = _CLASS.match(pattern, at)
            latest = (1, 1 if is_class else 0)
            sums[-1] = _sum(sums[-1], latest, 1)
            at += 1 if letter == "\\" else 0
        at += 1
    return functools.reduce(lambda one, other: _sum(one, other, 1), sums)


def _sum(one: tuple[int, int], other: tuple[int, int], times: int) -> tuple[int, int]:
    return one[0] + times * other[0], one[1] + times * other[1]
