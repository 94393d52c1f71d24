"""Strategies for objects: members that must be, may be and must not be there, and new names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.shaped import KEYS
from mcptest.explore.property.translated_text import texts
from mcptest.explore.scalars import count
from mcptest.schema.json_schema import CompiledSchema, SchemaError

Translate = Callable[[Any], SearchStrategy[Any]]

_ROOM: Final = 2
"""So many members with new names come at most beyond what is needed."""
_MOST: Final = 2_000
_AGAIN: Final = 4
_BOOLEANS: Final = st.booleans()


class _Members(msgspec.Struct, frozen=True):
    """What is known of an object."""

    required: Mapping[str, SearchStrategy[Any]]
    optional: Mapping[str, SearchStrategy[Any]]
    needs: Mapping[str, tuple[str, ...]]
    """Names that ask for others."""
    new: tuple[SearchStrategy[tuple[str, Any]], ...]
    """Members that the schema does not name, with their values."""
    least: int
    most: int
    room: int
    """How many new members come where none are needed."""


def objects(plain: Mapping[str, Any], translate: Translate, *, tight: bool) -> SearchStrategy[Any]:
    """`tight`: nothing beyond what is needed."""
    members = _members(plain, translate, tight=tight)
    least = members.least
    reachable = len(members.required) + len(members.optional)
    if any(one.is_empty for one in members.required.values()) or least > members.most:
        return st.nothing()
    if least > reachable and not members.new:
        return st.nothing()
    if tight and not members.needs and least <= len(members.required):
        return st.fixed_dictionaries(dict(members.required))
    if not (members.optional or members.new):
        return st.fixed_dictionaries(dict(members.required))
    return _drawn(members)


@st.composite
def _drawn(draw: DrawFn, members: _Members) -> dict[str, Any]:
    made = {name: draw(one) for name, one in members.required.items()}
    for name, one in members.optional.items():
        if len(made) >= members.most:
            break
        if name not in made and draw(_BOOLEANS):
            made[name] = draw(one)
    if members.needs:
        _add_needed(draw, members, made)
    if len(made) < members.least:
        _add_optional(draw, members, made)
    if members.new and (members.room or len(made) < members.least):
        _add_new(draw, members, made)
    return made


def _add_needed(draw: DrawFn, members: _Members, made: dict[str, Any]) -> None:
    left = list(made)
    while left:
        for name in members.needs.get(left.pop(), ()):
            one = members.optional.get(name)
            if name not in made and one is not None:
                made[name] = draw(one)
                left.append(name)


def _add_optional(draw: DrawFn, members: _Members, made: dict[str, Any]) -> None:
    for name, one in members.optional.items():
        if len(made) >= members.least:
            return
        if name not in made:
            made[name] = draw(one)


def _add_new(draw: DrawFn, members: _Members, made: dict[str, Any]) -> None:
    missing = max(0, members.least - len(made))
    room = max(0, min(members.room, members.most - len(made) - missing))
    wanted = missing + (draw(st.integers(0, room)) if room else 0)
    new = st.one_of(list(members.new))
    for number in range(wanted):
        name, value = draw(new)
        for again in range(_AGAIN if number < missing else 0):
            if name not in made:
                break
            name, value = draw(new)
            if again and name in made:
                name = f"{name}{number}"  # it may fit; whoever asked validates
        if name not in made and name not in members.optional:
            made[name] = value


# -- what the schema says --------------------------------------------------------------------


def _members(plain: Mapping[str, Any], translate: Translate, *, tight: bool) -> _Members:
    known, patterns = table(plain, "properties"), table(plain, "patternProperties")
    asked = plain.get("required")
    names = [one for one in asked if isinstance(one, str)] if isinstance(asked, list) else []
    needs = _needs(plain)
    unwanted = _forbidden(plain)

    def of(name: str) -> SearchStrategy[Any]:
        return translate(_schema_of(name, plain, known, patterns))

    least = count(plain.get("minProperties"), 0)
    depended = [name for many in needs.values() for name in many]
    required = {name: of(name) for name in names}
    listed = () if tight and least <= len(required) and not needs else (*known, *depended)
    optional = {}
    for name in dict.fromkeys(listed):
        if name not in required and name not in unwanted and known.get(name) is not False:
            one = of(name)
            if not one.is_empty:
                optional[name] = one
    missing = least - len(required) - len(optional)
    new = _new_members(plain, known, patterns, translate) if missing > 0 or not tight else ()
    room = 0 if tight else _room(plain, known, patterns)
    most = min(count(plain.get("maxProperties"), _MOST), _MOST)
    return _Members(required, optional, needs, new, least, most, room)


def _room(plain: Mapping[str, Any], known: Any, patterns: Any) -> int:
    """New names come where the schema speaks of them, or of no names at all."""
    said = plain.get("additionalProperties", plain.get("unevaluatedProperties"))
    speaks = isinstance(said, Mapping) or patterns or "propertyNames" in plain
    free = not known and said is not False
    return _ROOM if speaks or free else 0


def _new_members(
    plain: Mapping[str, Any],
    known: Mapping[str, Any],
    patterns: Mapping[str, Any],
    translate: Translate,
) -> tuple[SearchStrategy[tuple[str, Any]], ...]:
    rest = plain.get("additionalProperties", plain.get("unevaluatedProperties", True))
    naming = plain.get("propertyNames")
    found = []
    for pattern, schema in patterns.items():
        value = translate(schema)
        if not value.is_empty:
            named = texts({"type": "string", "pattern": pattern})
            found.append(st.tuples(_named(named, naming, known), value))
    if rest is not False:
        value = translate(rest)
        named = KEYS if naming is None else translate(_text_schema(naming))
        if not value.is_empty and not named.is_empty:
            fresh = named.filter(lambda name: not any(_matches(one, name) for one in patterns))
            found.append(st.tuples(_named(fresh if patterns else named, None, known), value))
    return tuple(found)


def _text_schema(naming: Any) -> Any:
    if not isinstance(naming, Mapping):
        return {"type": "string"} if naming is not False else False
    return {"type": "string", **naming}


def _named(
    names: SearchStrategy[str], naming: Any, known: Mapping[str, Any]
) -> SearchStrategy[str]:
    fits = _checker(_text_schema(naming)) if naming is not None else None
    if not known and fits is None:
        return names
    return names.filter(lambda name: name not in known and (fits is None or fits(name)))


def _schema_of(
    name: str, plain: Mapping[str, Any], known: Mapping[str, Any], patterns: Mapping[str, Any]
) -> Any:
    parts = [known[name]] if name in known else []
    parts += [schema for pattern, schema in patterns.items() if _matches(pattern, name)]
    if not parts:
        parts = [plain.get("additionalProperties", plain.get("unevaluatedProperties", {}))]
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _needs(plain: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    both = {**table(plain, "dependencies"), **table(plain, "dependentRequired")}
    return {
        name: tuple(one for one in many if isinstance(one, str))
        for name, many in both.items()
        if isinstance(many, list)
    }


def _forbidden(plain: Mapping[str, Any]) -> list[Any]:
    """The name that must not be there, where `not` says just that."""
    required = table(plain, "not").get("required")
    return required if isinstance(required, list) and len(required) == 1 else []


def table(plain: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    found = plain.get(keyword)
    return found if isinstance(found, Mapping) else {}


def _checker(schema: Any) -> Callable[[str], bool] | None:
    try:
        compiled = CompiledSchema(schema)
    except SchemaError:
        return None
    return compiled.fits


def _matches(pattern: str, name: str) -> bool:
    fits = _checker({"pattern": pattern})
    return fits is not None and fits(name)
