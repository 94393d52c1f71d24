"""Strategies for arrays: positions, items, contained ones, distinct ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle, islice
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.scalars import count

Translate = Callable[[Any], SearchStrategy[Any]]

_ROOM: Final = 4
"""So many items come at most beyond what is needed."""
_LONG: Final = 24
"""An array that must be longer is filled up with the items that it has."""
_LONGEST: Final = 20_000
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def arrays(plain: Mapping[str, Any], translate: Translate, *, tight: bool) -> SearchStrategy[Any]:
    """`tight`: nothing beyond what is needed."""
    positions, rest = _positions(plain)
    least, most = count(plain.get("minItems"), 0), count(plain.get("maxItems"), _LONGEST)
    wanted = count(plain.get("minContains"), 1) if "contains" in plain else 0
    least = max(least, wanted)
    if least > min(most, _LONGEST):
        return st.nothing()
    distinct = plain.get("uniqueItems") is True
    if not positions and not wanted:
        return _alike(translate, rest, least, most, distinct=distinct, tight=tight)
    if rest is False:
        most = min(most, len(positions))
    first = [translate(one) for one in positions[:most]]
    usable = next((place for place, one in enumerate(first) if one.is_empty), len(first))
    others = translate(rest)
    if others.is_empty or usable < len(first):
        most = min(most, usable)
    if least > most:
        return st.nothing()
    contained = (
        [translate({"allOf": [one, plain["contains"]]}) for one in _spread(positions, rest, most)]
        if wanted
        else []
    )
    room = 0 if tight else _ROOM
    top = min(most, max(least, len(first[:usable]) if not tight else 0) + room)
    return _mixed(first[:usable], others, contained, wanted, least, top, distinct)


def _alike(
    translate: Translate, item: Any, least: int, most: int, *, distinct: bool, tight: bool
) -> SearchStrategy[Any]:
    each = translate(item)
    if each.is_empty:
        return st.nothing() if least else st.builds(list)
    if least > _LONG and not distinct:
        few = st.lists(each, min_size=1, max_size=_ROOM)
        return few.map(lambda items: list(islice(cycle(items), least)))
    top = least if tight else min(most, least + _ROOM)
    if distinct:
        return st.lists(each, min_size=least, max_size=top, unique_by=_encode)
    return st.lists(each, min_size=least, max_size=top)


def _spread(positions: list[Any], rest: Any, most: int) -> list[Any]:
    """The schemas of the places in which a contained item can stand: the last is for all others."""
    return [*positions[:most], *([rest] if most > len(positions) else [])]


@st.composite
def _mixed(
    draw: DrawFn,
    first: list[SearchStrategy[Any]],
    others: SearchStrategy[Any],
    contained: list[SearchStrategy[Any]],
    wanted: int,
    least: int,
    most: int,
    distinct: bool,
) -> list[Any]:
    length = draw(st.integers(least, most))
    # Those that must be contained come last, where the positions usually have ended.
    plain = max(0, length - wanted)
    made: list[Any] = []
    seen: set[bytes] = set()
    for place in range(length):
        strategy = first[place] if place < len(first) else others
        if place >= plain and contained:
            option = contained[min(place, len(contained) - 1)]
            strategy = strategy if option.is_empty else option
        value = draw(strategy)
        for _ in range(_ROOM if distinct else 0):
            if _encode(value) not in seen:
                break
            value = draw(strategy)
        seen.add(_encode(value)) if distinct else None
        made.append(value)
    return made


def _positions(plain: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items and of all others. Older drafts name both otherwise."""
    prefix, items = plain.get("prefixItems"), plain.get("items", {})
    if isinstance(items, list):
        return items, plain.get("additionalItems", {})
    rest = items if "items" in plain else plain.get("unevaluatedItems", {})
    return (prefix if isinstance(prefix, list) else []), rest
