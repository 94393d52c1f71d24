"""The one generator from JSON Schema to values: plausible ones, random ones, ones that shrink.

Each part of a schema is read once, when a value of it is asked for first, into functions that make
its values; whoever decides (`choices`) is passed to them. A reference that leads back to itself is
followed a few times with all that it may hold, then with nothing that it does not need, so that
there is an end. Whether anything fits a part is known before something is chosen for it: Hypothesis
must meet the same choices each time. Every value is validated before it is handed out.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import cycle, islice
from typing import Any, Final

import msgspec

from mcptest.core.limits import cancellation
from mcptest.core.message import ABSENT, json_type, parts_of
from mcptest.schema.choices import Choices, Make, Plainest, Seeded
from mcptest.schema.combinations import (
    Alternative,
    Contradiction,
    Effort,
    Plain,
    TooLarge,
    count,
    definitions_of,
    finite,
    resolved,
    types_of,
    ways_of,
)
from mcptest.schema.cost import References, listed, mapping_of
from mcptest.schema.texts import text_maker
from mcptest.schema.validation import CompiledSchema, SchemaError
from mcptest.wire.json_text import mark_of, spelled

_ATTEMPTS: Final = 40
_TOO_LARGE: Final = 3
"""How often a try may grow too large before the schema is given up."""
_STEPS_PER_EFFORT: Final = 100
"""Checking a value takes native steps, of which so many count as one of ours."""
_TRIES: Final = 8
"""How often a part is made again that does not fit."""
_MOST_PARTS: Final = 4_000
_MOST_GENERATORS: Final = 256
_FULL: Final = 4
"""So many references that lead back may be followed before nothing is added that is not needed."""
_DEEPEST: Final = 14
_RISKY: Final = frozenset(
    {"oneOf", "not", "if", "format", "pattern", "uniqueItems", "contains", "maxContains"}
    | {"propertyNames", "patternProperties", "multipleOf"}
)
"""Keywords that a value may miss by chance: it is validated where it stands."""
_UNREMARKABLE: Final = frozenset({"type", "title", "description", "default", "enum", "const"})
_TELLING: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset(
        {"properties", "required", "additionalProperties", "minProperties"}
        | {"patternProperties", "propertyNames", "dependentRequired"}
    ),
    "array": frozenset({"items", "prefixItems", "minItems", "contains", "uniqueItems"}),
    "string": frozenset({"pattern", "minLength", "maxLength", "format"}),
    "number": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    ),
}
"""The type that keywords speak of where none is named."""
_generators: dict[bytes, Generator | None] = {}


def fitting_value(
    schema: Any, choices: Choices | None = None, *, effort: Effort | None = None
) -> Any:
    """A value that fits, or ABSENT when none was found. Without choices: the plainest one."""
    generator = generator_of(schema, effort)
    return ABSENT if generator is None else generator.value(choices, effort)


def generator_of(schema: Any, effort: Effort | None = None) -> Generator | None:
    """None when the schema can't be used, or when the command has to end.

    `effort`: no more may be spent. Else the generator is kept: others ask for the same schema.
    """
    if cancellation.is_over():
        return None
    key = mark_of(spelled(schema)) if effort is None else b""
    if key in _generators:
        return _generators[key]
    try:
        generator = Generator(schema, effort)
    except SchemaError:
        generator = None
    if effort is None:
        if len(_generators) >= _MOST_GENERATORS:
            _generators.clear()
        _generators[key] = generator
    return generator


class Generator:
    def __init__(self, schema: Any, effort: Effort | None = None) -> None:
        """Raises SchemaError when the schema can't be used."""
        self.compiled = CompiledSchema(schema)
        self._root = schema
        self._references = References(schema)
        self._effort = effort or Effort()
        self._parts: dict[tuple[bytes, int], _Part] = {}
        self._whole = _Part(self, schema, 0)
        self._around = definitions_of(schema) if isinstance(schema, Mapping) else {}

    def value(self, choices: Choices | None = None, effort: Effort | None = None) -> Any:
        """A value that fits, or ABSENT when none was found."""
        effort, patience = effort or Effort(), _TOO_LARGE
        for chosen in self._attempts(choices):
            try:
                value = self.make(chosen)
                if self.compiled.fits(value):
                    return value
                effort.spend(1 + self.compiled.steps // _STEPS_PER_EFFORT)
            except Contradiction:
                break
            except RecursionError:
                continue
            except TooLarge:
                patience -= 1
                if cancellation.is_over():
                    _generators.clear()  # what was given up now may be asked for again
                    break
                if not patience or effort.is_spent:
                    break
        return ABSENT

    def _attempts(self, choices: Choices | None) -> Iterator[Choices]:
        if choices is None:
            yield Plainest(hints=True, checks=False)
            yield Plainest(hints=True)
            yield Plainest()
            yield from map(Seeded, range(_ATTEMPTS))
            return
        choices.hints = True
        yield choices
        choices.hints = False
        for _ in range(1, _ATTEMPTS):
            yield choices

    def make(self, choices: Choices) -> Any:
        """A value that fits nearly always. Raises Contradiction when none does, and TooLarge."""
        return self._whole.make(choices, "")

    # -- parts of the schema -----------------------------------------------------------------

    def part(self, schema: Any, depth: int) -> _Part:
        """`depth`: how many references that lead back to themselves were followed."""
        key = (mark_of(spelled(schema)), depth)
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) > _MOST_PARTS:
                raise TooLarge
            found = self._parts[key] = _Part(self, schema, depth)
        return found

    def makes(self, schema: Any, depth: int) -> list[Make]:
        """The ways to make a value of it; none when no value fits."""
        if schema is False or depth > _DEEPEST:
            return []
        if not isinstance(schema, Mapping) or not schema:
            return [_anything]
        found = (self._way(way, depth) for way in self._ways(schema, depth))
        return [make for make in found if make is not None]

    def _ways(self, schema: Plain, depth: int) -> list[Alternative]:
        """Within a reference that leads back, those come first that lead to an end."""
        ways = ways_of(schema, self._references, self._effort)
        if depth and len(ways) > 1:
            ways.sort(key=lambda way: (self._returns(way), str(way.plain).count("'$ref'")))
            if depth > _FULL:
                return ways[: len(ways) // 2]
        return ways

    def _returns(self, way: Alternative) -> int:
        return sum(one in self._recursive for one in way.references)

    @functools.cached_property
    def _recursive(self) -> frozenset[str]:
        """The references that lead back to themselves."""
        inner: dict[str, set[str]] = {}
        left = list(_references_in(self._root))
        while left:
            name = left.pop()
            if name not in inner:
                self._effort.spend()
                target = resolved({"$ref": name}, "$ref", self._references)
                inner[name] = set(_references_in(target))
                left.extend(inner[name])
        return frozenset(name for name in inner if name in _reached(name, inner))

    def _way(self, way: Alternative, depth: int) -> Make | None:
        plain, depth = way.plain, depth + self._returns(way)
        if depth > _DEEPEST:
            return None
        if "const" in plain:
            return self._given([plain["const"]], plain)
        if isinstance(plain.get("enum"), list):
            return self._given(plain["enum"], plain)
        kinds = types_of(plain.get("type")) or [
            kind for kind, keywords in _TELLING.items() if not keywords.isdisjoint(plain)
        ]
        if not kinds:
            return _anything
        # null is the last resort of a plain choice: it says nothing
        ordered = sorted(kinds, key=lambda kind: kind == "null")
        made = (self._kind(kind, plain, depth) for kind in ordered)
        make = _one_of([one for one in made if one is not None])
        return None if make is None else _with_hints(make, plain)

    def _kind(self, kind: str, plain: Plain, depth: int) -> Make | None:
        if kind == "object":
            objects = _Objects(self, plain, depth)
            return None if objects.is_empty else objects.make
        if kind == "array":
            return _arrays(self, plain, depth)
        if kind == "string":
            return text_maker(plain)
        if kind == "boolean":
            return lambda choices, name: bool(choices.index(2))
        if kind == "null":
            return lambda choices, name: None
        return _numbers(plain, integer=kind == "integer")

    def _given(self, values: list[Any], plain: Plain) -> Make | None:
        if plain.keys() <= _UNREMARKABLE:
            fitting = [one for one in values if _is_of_type(one, plain)]
        else:
            check = self.check(plain)
            fitting = [one for one in values if check is None or check.fits(one)]
        return _from(fitting) if fitting else None

    def check(self, schema: Plain) -> CompiledSchema | None:
        """None when the part can't be looked at without the whole around it, or is the whole."""
        if schema is self._root:
            return None  # every value is held against it anyway
        whole = {**schema, **self._around}
        text = spelled(whole)
        self._effort.spend(len(text) // 20)
        inside = (b'"#/$defs/', b'"#/definitions/')
        if text.count(b'"$ref"') != sum(text.count(one) for one in inside):
            return None
        try:
            return CompiledSchema(whole)
        except SchemaError:
            return None


class _Part:
    """One part of a schema, read when it is needed first."""

    def __init__(self, generator: Generator, schema: Any, depth: int) -> None:
        self._generator = generator
        self._schema = schema
        self._depth = depth
        self._is_risky = isinstance(schema, Mapping) and not _RISKY.isdisjoint(schema)

    @functools.cached_property
    def _makes(self) -> list[Make]:
        return self._generator.makes(self._schema, self._depth)

    @functools.cached_property
    def _check(self) -> CompiledSchema | None:
        return self._generator.check(self._schema)

    @property
    def is_empty(self) -> bool:
        """Whether nothing fits, whatever is chosen."""
        return not self._makes

    def make(self, choices: Choices, name: str) -> Any:
        value = self._made(choices, name)
        if not self._is_risky or not choices.checks:
            return value
        for again in range(1, _TRIES):
            if self._check is None or self._check.fits(value):
                break
            value = self._made(choices if again < choices.tries else Seeded(again), name)
        return value

    def _made(self, choices: Choices, name: str) -> Any:
        makes = self._makes
        if len(makes) == 1:
            return makes[0](choices, name)
        if not makes:
            raise Contradiction
        return makes[choices.index(len(makes))](choices, name)


def _references_in(schema: Any) -> Iterator[str]:
    tables = (part for part in parts_of(schema) if isinstance(part, Mapping))
    found = (table.get(keyword) for table in tables for keyword in ("$ref", "$dynamicRef"))
    yield from (name for name in found if isinstance(name, str))


def _reached(start: str, inner: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = inner.get(left.pop(), set()) - found
        found |= new
        left.extend(new)
    return found


def _one_of(options: list[Make]) -> Make | None:
    if len(options) < 2:
        return options[0] if options else None
    return lambda choices, name: options[choices.index(len(options))](choices, name)


def _from(values: list[Any]) -> Make:
    """One of these; whoever gets one may change it."""
    if any(isinstance(one, dict | list) for one in values):
        texts = [msgspec.json.encode(one) for one in values]
        return lambda choices, name: msgspec.json.decode(texts[choices.index(len(texts))])
    return lambda choices, name: values[choices.index(len(values))]


def _with_hints(make: Make, plain: Plain) -> Make:
    """What the schema itself gives as a value, where that is taken."""
    given = [plain["default"]] if "default" in plain else []
    given += listed(plain, "examples")
    fitting = [one for one in given if _is_of_type(one, plain)]
    if not fitting:
        return make
    hint = _from(fitting)
    return lambda choices, name: (
        hint(choices, name) if choices.hints and not choices.index(2) else make(choices, name)
    )


def _is_of_type(value: Any, plain: Plain) -> bool:
    named = types_of(plain.get("type"))
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    return not named or json_type(value) in named or (is_whole and "integer" in named)


# -- anything ------------------------------------------------------------------------------------

_LETTERS: Final = string.ascii_lowercase
_PLAIN_TEXT: Final = 1_000


def _anything(choices: Choices, name: str) -> Any:
    kind = choices.index(len(_SCALARS) + 2)
    if kind < len(_SCALARS):
        return _SCALARS[kind](choices, name)
    count = range(choices.integer(0, 2))
    if kind == len(_SCALARS):
        return [_SCALARS[choices.index(len(_SCALARS))](choices, name) for _ in count]
    # These letters are within the grammar of the keys of `_meta`.
    keys = [choices.text(_LETTERS, 1, 6) for _ in count]
    return {key: _SCALARS[choices.index(len(_SCALARS))](choices, key) for key in keys}


_SCALARS: Final[tuple[Make, ...]] = (
    lambda choices, name: choices.text("", 0, _PLAIN_TEXT, name),
    lambda choices, name: choices.integer(None, None),
    lambda choices, name: bool(choices.index(2)),
    lambda choices, name: choices.number(None, None, above=False, below=False),
    lambda choices, name: None,
)


# -- numbers -------------------------------------------------------------------------------------


def _numbers(plain: Plain, *, integer: bool) -> Make | None:
    low: float | Fraction | None
    high: float | Fraction | None
    low, above = _bound(plain, "minimum", "exclusiveMinimum", max)
    high, below = _bound(plain, "maximum", "exclusiveMaximum", min)
    step = finite(plain.get("multipleOf"))
    if step is not None and step > 0:
        grid = Fraction(str(step))
        if integer and grid.denominator != 1:
            grid = Fraction(grid.numerator)
        low, high = (None if one is None else Fraction(str(one)) / grid for one in (low, high))
        return _multiples(grid, _first(low, above), _last(high, below))
    whole = _multiples(None, _first(low, above), _last(high, below))
    if integer:
        return whole
    start, end = (None if bound is None else float(bound) for bound in (low, high))
    if start is not None and end is not None:
        excluded = above or below
        if start >= end if excluded else start > end:
            return whole

    def fraction(choices: Choices, name: str) -> float:
        return choices.number(start, end, above=above, below=below)

    return fraction if whole is None else _one_of([whole, fraction])


def _bound(
    plain: Plain, within: str, beyond: str, stricter: Callable[[Any, Any], Any]
) -> tuple[int | float | None, bool]:
    """The bound, and whether it does not belong. Draft 4 says the latter with a boolean."""
    inner, outer = finite(plain.get(within)), finite(plain.get(beyond))
    if outer is None:
        return inner, inner is not None and plain.get(beyond) is True
    if inner is None:
        return outer, True
    bound = stricter(inner, outer)
    return bound, bound == outer


def _first(low: float | Fraction | None, above: bool) -> int | None:
    """The first whole number within the bound."""
    return None if low is None else math.floor(low) + 1 if above else math.ceil(low)


def _last(high: float | Fraction | None, below: bool) -> int | None:
    return None if high is None else math.ceil(high) - 1 if below else math.floor(high)


def _multiples(grid: Fraction | None, first: int | None, last: int | None) -> Make | None:
    """Whole numbers from one to another, times the grid."""
    if first is not None and last is not None and first > last:
        return None
    if grid is None:
        return lambda choices, name: choices.integer(first, last)

    def make(choices: Choices, name: str) -> int | float:
        value = choices.integer(first, last) * grid
        return int(value) if value.denominator == 1 else float(value)

    return make


# -- objects -------------------------------------------------------------------------------------

_MOST_MEMBERS: Final = 2_000
_NEW_ROOM: Final = 2
"""So many members with new names come at most beyond what is needed."""
_AGAIN: Final = 24


class _Objects:
    def __init__(self, generator: Generator, plain: Plain, depth: int) -> None:
        self._generator, self._depth = generator, depth
        self._known = mapping_of(plain, "properties")
        self._patterns = mapping_of(plain, "patternProperties")
        self._rest = plain.get("additionalProperties", plain.get("unevaluatedProperties", {}))
        self._parts: dict[str, _Part] = {}
        names = (one for one in listed(plain, "required") if isinstance(one, str))
        self._required = {name: self._part(name) for name in names}
        self._least = count(plain.get("minProperties"), 0)
        self._most = min(count(plain.get("maxProperties"), _MOST_MEMBERS), _MOST_MEMBERS)
        self._needs = {
            name: [one for one in many if isinstance(one, str)]
            for keyword in ("dependencies", "dependentRequired")
            for name, many in mapping_of(plain, keyword).items()
            if isinstance(many, list)
        }
        is_enough = depth > _FULL and self._least <= len(self._required)
        self._optional = {} if is_enough and not self._needs else self._listed(plain)
        self._names = [] if is_enough else self._new_names(plain)
        speaks_of_new_names = (
            (isinstance(self._rest, Mapping) and self._rest)
            or self._patterns
            or "propertyNames" in plain
            or (not self._known and self._rest is not False)  # it speaks of no names at all
        )
        self._room = _NEW_ROOM if depth <= _FULL and speaks_of_new_names else 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing fits, whatever is chosen."""
        if max(self._least, len(self._required)) > self._most:
            return True
        if any(one.is_empty for one in self._required.values()):
            return True
        return self._least > len(self._required) + len(self._optional) and not self._names

    def make(self, choices: Choices, name: str) -> dict[str, Any]:
        made = {key: one.make(choices, key) for key, one in self._required.items()}
        for key in self._optional:
            if len(made) >= self._most:
                break
            if choices.more():
                self._add(key, choices, made)
        left = list(made) if self._needs else []
        while left:
            for key in self._needs.get(left.pop(), ()):
                if key not in made:
                    self._add(key, choices, made)
                    left.append(key)
        for key in self._optional:
            if len(made) >= self._least:
                break
            self._add(key, choices, made)
        if self._names:
            self._add_new(choices, made)
        return made

    def _add(self, key: str, choices: Choices, made: dict[str, Any]) -> None:
        if key in self._optional and key not in made and not self._part(key).is_empty:
            made[key] = self._part(key).make(choices, key)

    def _add_new(self, choices: Choices, made: dict[str, Any]) -> None:
        """Members that the schema does not name."""
        missing = max(0, self._least - len(made))
        spare = max(0, min(self._room, self._most - len(made) - missing))
        for number in range(missing + (choices.integer(0, spare) if spare else 0)):
            for again in range(_AGAIN if number < missing else 1):
                chosen = choices if again < choices.tries else Seeded(number * _AGAIN + again)
                key = self._names[chosen.index(len(self._names))](chosen, f"member{number}")
                if key not in made and key not in self._known and not self._part(key).is_empty:
                    made[key] = self._part(key).make(choices, key)
                    break

    def _part(self, name: str) -> _Part:
        found = self._parts.get(name)
        if found is None:
            schemas = [self._known[name]] if name in self._known else []
            schemas += (
                one for pattern, one in self._patterns.items() if _matcher(pattern).fits(name)
            )
            many = {"allOf": schemas} if schemas else self._rest
            whole = schemas[0] if len(schemas) == 1 else many
            found = self._parts[name] = self._generator.part(whole, self._depth)
        return found

    def _listed(self, plain: Plain) -> dict[str, None]:
        """The optional members that have a name in the schema."""
        not_required = listed(mapping_of(plain, "not"), "required")
        forbidden = list(self._required)
        if len(not_required) == 1:
            forbidden += not_required
        names = (*self._known, *(one for many in self._needs.values() for one in many))
        return {
            name: None
            for name in names
            if name not in forbidden and self._known.get(name) is not False
        }

    def _new_names(self, plain: Plain) -> list[Make]:
        """Where names come from that the schema does not have."""
        naming = plain.get("propertyNames")
        schemas = [
            {"type": "string", "pattern": pattern}
            for pattern, schema in self._patterns.items()
            if schema is not False
        ]
        if self._rest is not False and isinstance(naming, Mapping):
            schemas.append({"type": "string", **naming})
        parts = [self._generator.part(schema, self._depth) for schema in schemas]
        found: list[Make] = [part.make for part in parts if not part.is_empty]
        if self._rest is not False and not isinstance(naming, Mapping) and naming is not False:
            found.append(
                lambda choices, name: (
                    name if isinstance(choices, Plainest) else choices.text(_LETTERS, 1, 6)
                )
            )
        return found


@functools.lru_cache(maxsize=256)
def _matcher(pattern: str) -> CompiledSchema:
    try:
        return CompiledSchema({"pattern": pattern})
    except SchemaError:
        return CompiledSchema(False)


# -- arrays --------------------------------------------------------------------------------------

_ITEM_ROOM: Final = 4
"""So many items come at most beyond what is needed."""
_LONG: Final = 24
"""An array that must be longer is filled up with the items that it has."""
_MOST_ITEMS: Final = 20_000
_LARGEST: Final = 1_000_000


def _arrays(generator: Generator, plain: Plain, depth: int) -> Make | None:
    positions, rest = _positions(plain)
    wanted = count(plain.get("minContains"), 1) if "contains" in plain else 0
    least = max(count(plain.get("minItems"), 0), wanted)
    most = min(count(plain.get("maxItems"), _MOST_ITEMS), _MOST_ITEMS)
    schemas = positions[:most]
    others = generator.part(rest, depth)
    first = [generator.part(one, depth) for one in schemas]
    usable = next((place for place, one in enumerate(first) if one.is_empty), len(first))
    if usable < len(first) or others.is_empty:
        most = min(most, usable)
    if least > most:
        return None
    contained = [
        generator.part({"allOf": [one, plain["contains"]]}, depth)
        for one in ([*schemas, rest] if wanted else ())
    ]
    tight = depth > _FULL
    full = max(least, min(most, wanted + usable))
    top = least if tight else min(most, max(least, usable) + _ITEM_ROOM)
    distinct = plain.get("uniqueItems") is True

    def make(choices: Choices, name: str) -> list[Any]:
        if least > _LONG and not first and not wanted and not distinct:
            few = [others.make(choices, name) for _ in range(choices.integer(1, _ITEM_ROOM))]
            if len(spelled(few)) * least > _LARGEST:
                raise TooLarge
            return list(islice(cycle(few), least))
        is_full = not tight and full > least and not choices.index(2)
        length = full if is_full else choices.integer(least, top)
        made: list[Any] = []
        for place in range(length):
            part = first[place] if place < len(first) else others
            if place >= length - wanted:  # last, where the positions usually have ended
                option = contained[min(place, len(contained) - 1)]
                part = part if option.is_empty else option
            value = part.make(choices, name)
            made.append(_other_than(made, value, part, choices) if distinct else value)
        return made

    return make


def _other_than(others: list[Any], value: Any, part: _Part, choices: Choices) -> Any:
    """A value that is none of the others, if one is found."""
    known = {spelled(one) for one in others}
    for again in range(1, _ATTEMPTS):
        if spelled(value) not in known:
            break
        chosen = choices if again < choices.tries else Seeded(len(others) * _ATTEMPTS + again)
        value = part.make(chosen, "")
    return value


def _positions(plain: Plain) -> tuple[list[Any], Any]:
    """The schemas of the first items and of all others. Older drafts name both otherwise."""
    items = plain.get("items", {})
    if isinstance(items, list):
        return items, plain.get("additionalItems", {})
    rest = items if "items" in plain else plain.get("unevaluatedItems", {})
    return listed(plain, "prefixItems"), rest
