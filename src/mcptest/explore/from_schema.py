"""Values that a JSON Schema accepts.

Every value is made from the schema with one kind of choices and validated afterwards; where one
does not fit, others are tried. None is returned rather than a value that does not fit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcptest.explore.choices import Choices, Plainest, Seeded
from mcptest.explore.from_pattern import PatternError, text_matching
from mcptest.explore.scalars import count, number_for, text_for
from mcptest.explore.schema_merge import (
    Contradiction,
    Effort,
    Settler,
    TooLarge,
    merged,
    types_of,
)
from mcptest.model.deadline import cancellation
from mcptest.model.message import ABSENT
from mcptest.schema.json_schema import CompiledSchema, SchemaError

_DEEPEST: Final = 24
_MOST_VALUES: Final = 2_000
_ATTEMPTS: Final = 40
_TOO_LARGE: Final = 3
"""How often a try may grow too large before the schema is given up."""
_STEPS_PER_EFFORT: Final = 100
"""Checking a value takes native steps, of which so many count as one of ours."""
_ROOM: Final = 3
"""How many items or members are added at most beyond what is needed."""
_SCALARS: Final = ("string", "integer", "boolean", "number", "null")


def fitting_value(schema: Any, choices: Choices | None = None, *, name: str = "") -> Any:
    """A value that fits, or ABSENT when none was found. Without choices: the plainest one."""
    if cancellation.is_over():
        return ABSENT
    try:
        compiled = CompiledSchema(schema)
    except SchemaError:
        return ABSENT
    effort = Effort()
    patience = _TOO_LARGE
    for attempt in _attempts(choices, effort):
        try:
            value = attempt(schema, name)
            if compiled.fits(value):
                return value
            effort.spend(1 + compiled.steps // _STEPS_PER_EFFORT)
        except (Contradiction, RecursionError):
            continue
        except TooLarge:
            patience -= 1
            if not patience or effort.is_spent:
                break
    return ABSENT


def _attempts(choices: Choices | None, effort: Effort) -> Iterator[Callable[[Any, str], Any]]:
    def attempt(chosen: Choices, *, hints: bool) -> Callable[[Any, str], Any]:
        return lambda schema, name: _Maker(schema, chosen, hints, effort).value(schema, name, 0)

    if choices is None:
        yield attempt(Plainest(), hints=True)
        yield attempt(Plainest(), hints=False)
        for seed in range(_ATTEMPTS):
            yield attempt(Seeded(seed), hints=False)
    else:
        for number in range(_ATTEMPTS):
            yield attempt(choices, hints=number == 0)


class _Maker:
    """One walk through a schema; whatever it says, the walk has an end."""

    def __init__(self, root: Any, choices: Choices, hints: bool, effort: Effort) -> None:
        self._choices = choices
        self._hints = hints
        self._effort = effort
        self._settler = Settler(root, choices, self._effort)
        self._made = 0

    def value(self, schema: Any, name: str, depth: int) -> Any:
        self._made += 1
        if self._made > _MOST_VALUES or depth > _DEEPEST:
            raise TooLarge
        plain = self._settler.settle(schema, depth)
        said = self._said(plain)
        if said is not ABSENT:
            return said
        kind = self._kind(plain)
        if kind == "object":
            return self._object(plain, depth)
        if kind == "array":
            return self._array(plain, name, depth)
        if kind in ("integer", "number"):
            return number_for(plain, self._choices, integer=kind == "integer")
        if kind == "boolean":
            return bool(self._choices.index(2))
        return None if kind == "null" else text_for(plain, name, self._choices)

    def _said(self, plain: Mapping[str, Any]) -> Any:
        """What the schema itself gives as a value."""
        if "const" in plain:
            return plain["const"]
        options = plain.get("enum")
        if isinstance(options, list) and options:
            return options[self._choices.index(len(options))]
        if not self._hints:
            return ABSENT
        examples = plain.get("examples")
        given = [plain["default"]] if "default" in plain else []
        given += examples if isinstance(examples, list) else []
        fitting = [one for one in given if _is_of_type(one, plain)]
        return fitting[self._choices.index(len(fitting))] if fitting else ABSENT

    def _kind(self, plain: Mapping[str, Any]) -> str:
        named = types_of(plain.get("type"))
        if named:
            # null is the last resort of a plain choice: it says nothing
            ordered = sorted(named, key=lambda one: one == "null")
            return ordered[self._choices.index(len(ordered))]
        for kind, keywords in _TELLING.items():
            if any(keyword in plain for keyword in keywords):
                return kind
        return _SCALARS[self._choices.index(len(_SCALARS))]

    # -- objects ---------------------------------------------------------------------------

    def _object(self, plain: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = plain.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        least = count(plain.get("minProperties"), 0)
        most = count(plain.get("maxProperties"), _MOST_VALUES)
        if least > _MOST_VALUES:
            raise TooLarge
        names = self._wanted_names(plain, known, least, most)
        for name in [key for key in names if key in _table(plain, "dependentSchemas")]:
            wanted = self._settler.settle(plain["dependentSchemas"][name], depth + 1)
            rest = {key: value for key, value in plain.items() if key != "dependentSchemas"}
            return self._object(merged(rest, wanted), depth)
        made = {
            name: self.value(self._schema_of(name, plain, known), name, depth + 1) for name in names
        }
        self._fill_up(made, plain, least, depth)
        return made

    def _wanted_names(
        self, plain: Mapping[str, Any], known: Mapping[str, Any], least: int, most: int
    ) -> list[str]:
        required = plain.get("required")
        listed = required if isinstance(required, list) else []
        names = dict.fromkeys(one for one in listed if isinstance(one, str))
        unwanted = _forbidden(plain)
        for name in known:
            if name in names or known[name] is False or name in unwanted:
                continue
            short = len(names) < least
            if short or (len(names) < most and self._choices.more(len(names), least)):
                names[name] = None
        return _with_dependents(list(names), plain)

    def _schema_of(self, name: str, plain: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
        parts = [known[name]] if name in known else []
        parts += [
            schema
            for pattern, schema in _table(plain, "patternProperties").items()
            if _found(pattern, name)
        ]
        if not parts:
            parts = [plain.get("additionalProperties", plain.get("unevaluatedProperties", {}))]
        return parts[0] if len(parts) == 1 else {"allOf": parts}

    def _fill_up(
        self, made: dict[str, Any], plain: Mapping[str, Any], least: int, depth: int
    ) -> None:
        """Members that nobody named, as many as there must be."""
        for number in range(least * 4):
            if len(made) >= least:
                return
            self._effort.spend(100)
            name = self._new_name(plain, number)
            if name not in made:
                schema = self._schema_of(name, plain, {})
                made[name] = self.value(schema, name, depth + 1)

    def _new_name(self, plain: Mapping[str, Any], number: int) -> str:
        patterns = list(_table(plain, "patternProperties"))
        names = plain.get("propertyNames")
        if isinstance(names, Mapping):
            made = self.value({"type": "string", **names}, f"member{number}", 0)
            return made if isinstance(made, str) else f"member{number}"
        if patterns and plain.get("additionalProperties") is False:
            try:
                return text_matching(patterns[number % len(patterns)], Seeded(number))
            except PatternError:
                raise TooLarge from None
        return f"member{number}"

    # -- arrays ----------------------------------------------------------------------------

    def _array(self, plain: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        positions, rest = _positions(plain)
        least = count(plain.get("minItems"), 0)
        most = count(plain.get("maxItems"), _MOST_VALUES)
        contained = count(plain.get("minContains"), 1) if "contains" in plain else 0
        length = max(least, min(contained + len(positions), most))
        if length > _MOST_VALUES:
            raise TooLarge
        while length < min(most, least + _ROOM) and self._choices.more(length, least):
            length += 1
        if rest is False:
            length = min(length, len(positions))
        wanted = [*positions[:length], *([rest] * (length - len(positions[:length])))]
        for place in range(max(0, length - contained), length):
            wanted[place] = {"allOf": [wanted[place], plain["contains"]]}
        return self._items(wanted, name, depth, distinct=plain.get("uniqueItems") is True)

    def _items(self, wanted: list[Any], name: str, depth: int, *, distinct: bool) -> list[Any]:
        made: list[Any] = []
        for place, schema in enumerate(wanted):
            one = self.value(schema, name, depth + 1)
            for again in range(_ATTEMPTS if distinct else 0):
                if one not in made:
                    break
                one = self._otherwise(schema, name, depth, place * _ATTEMPTS + again)
            made.append(one)
        return made

    def _otherwise(self, schema: Any, name: str, depth: int, seed: int) -> Any:
        """Another value for the same place."""
        usual, self._choices = self._choices, Seeded(seed)
        hints, self._hints = self._hints, False
        try:
            return self.value(schema, name, depth + 1)
        finally:
            self._choices, self._hints = usual, hints


_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _is_of_type(value: Any, plain: Mapping[str, Any]) -> bool:
    named = types_of(plain.get("type"))
    return not named or any(type(value) in _PYTHON_TYPES[one] for one in named)


def _table(plain: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    found = plain.get(keyword)
    return found if isinstance(found, Mapping) else {}


@functools.lru_cache(maxsize=256)
def _matcher(pattern: str) -> CompiledSchema | None:
    try:
        return CompiledSchema({"pattern": pattern})
    except SchemaError:
        return None


def _found(pattern: str, name: str) -> bool:
    matcher = _matcher(pattern)
    return matcher is not None and matcher.fits(name)


def _forbidden(plain: Mapping[str, Any]) -> list[Any]:
    """The name that must not be there, where `not` says just that."""
    required = _table(plain, "not").get("required")
    return required if isinstance(required, list) and len(required) == 1 else []


def _with_dependents(names: list[str], plain: Mapping[str, Any]) -> list[str]:
    """The names, and those that their presence asks for."""
    needs = _table(plain, "dependentRequired") or _table(plain, "dependencies")
    found = dict.fromkeys(names)
    left = list(names)
    while left:
        more = needs.get(left.pop())
        for name in more if isinstance(more, list) else ():
            if isinstance(name, str) and name not in found:
                found[name] = None
                left.append(name)
    return list(found)


def _positions(plain: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others. Older drafts name both otherwise."""
    prefix, items = plain.get("prefixItems"), plain.get("items", {})
    if isinstance(items, list):
        return items, plain.get("additionalItems", {})
    return (prefix if isinstance(prefix, list) else []), items
