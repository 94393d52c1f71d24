"""A strategy for texts in which a regular expression of a schema is found.

A run of one class of characters is one text, not one choice for each character: that is what makes
it fast. What can't be walked is left to `from_pattern`, and then to whoever validates the text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.from_pattern import PatternError, characters_of, parsed, text_matching
from mcptest.explore.property.drawn import Drawn

_REPEATS: Final = 4
_LONGEST: Final = 10_000
_PASSED_OVER: Final = frozenset({"AT", "ASSERT", "ASSERT_NOT"})
_ALL: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. "


class _Run:
    """Characters of one class, so many of them; what a length can be adjusted by."""

    def __init__(self, letters: str, least: int, most: int | None) -> None:
        self.letters = letters
        self.least = least
        self.most = most


@functools.lru_cache(maxsize=256)
def texts_matching(pattern: str, least: int, most: int) -> SearchStrategy[str] | None:
    """None when the expression can't be read."""
    try:
        nodes = parsed(pattern)
    except PatternError:
        return None
    try:
        parts = _parts(nodes)
    except (_Unwalked, PatternError):
        return _by_choices(pattern)
    is_open = not nodes or str(nodes[-1][0]) != "AT"
    return _joined(_within(parts, least, most, is_open=is_open))


class _Unwalked(Exception):  # noqa: N818 - not a failure: another way is taken
    """Something that depends on what was chosen before."""


@st.composite
def _by_choices(draw: DrawFn, pattern: str) -> str:
    try:
        return text_matching(pattern, Drawn(draw))
    except PatternError:
        return ""


def _within(parts: list[Any], least: int, most: int, *, is_open: bool) -> list[Any]:
    """Stretch or bound what may be of any length, as far as the lengths of the rest are known."""
    if any(not isinstance(part, str | _Run) for part in parts):
        return parts
    needed = sum(len(part) if isinstance(part, str) else part.least for part in parts)
    if is_open and needed < least:
        parts = [*parts, _Run(_ALL, 0, None)]
    free = [part for part in parts if isinstance(part, _Run) and part.most != part.least]
    if not free:
        return parts
    run = free[-1]
    others = needed - run.least
    shortest = max(run.least, min(least - others, run.most or least))
    longest = most - others - _REPEATS * (len(free) - 1)
    made = _Run(run.letters, shortest, max(shortest, min(run.most or longest, longest)))
    return [made if part is run else part for part in parts]


def _joined(parts: list[Any]) -> SearchStrategy[str]:
    pieces = [_text(part) if isinstance(part, _Run) else part for part in parts]
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        only: SearchStrategy[str] = pieces[0]
        return only
    drawn = [piece for piece in pieces if not isinstance(piece, str)]
    if not drawn:
        return st.just("".join(map(str, pieces)))
    form = "".join("%s" if not isinstance(one, str) else one.replace("%", "%%") for one in pieces)
    return st.tuples(*drawn).map(lambda texts: form % texts)


def _text(run: _Run) -> SearchStrategy[str]:
    most = run.least + _REPEATS if run.most is None else min(run.most, run.least + _REPEATS)
    if run.least == most == 1:
        return st.sampled_from(run.letters)
    return st.text(run.letters, min_size=run.least, max_size=most)


# -- from the parsed expression --------------------------------------------------------------


def _parts(nodes: Any) -> list[Any]:
    found: list[Any] = []
    for operation, argument in nodes:
        name = str(operation)
        if name in _PASSED_OVER:
            continue
        make = _MADE.get(name)
        if make is None:
            raise _Unwalked
        for part in make(argument):
            if isinstance(part, str) and found and isinstance(found[-1], str):
                found[-1] += part
            else:
                found.append(part)
    return found


def _letters(argument: Any) -> str:
    letters = "".join(characters_of(argument))
    if not letters:
        raise PatternError("a class of characters is empty")
    return letters


def _repeat(argument: Any) -> list[Any]:
    least, most, nodes = argument
    unbounded = str(most) == "MAXREPEAT"
    if least > _LONGEST:
        raise PatternError("asks for a text that is too long")
    inner = _parts(nodes)
    highest = None if unbounded else int(most)
    if len(inner) == 1 and isinstance(inner[0], _Run) and inner[0].least == inner[0].most == 1:
        return [_Run(inner[0].letters, least, highest)]
    if least == highest and all(isinstance(part, str) for part in inner):
        if least * sum(map(len, inner)) > _LONGEST:
            raise PatternError("asks for a text that is too long")
        return ["".join(inner) * least]
    each = _joined(inner)
    limit = least + _REPEATS if highest is None else min(highest, least + _REPEATS)
    return [st.lists(each, min_size=least, max_size=limit).map("".join)]


def _branch(argument: Any) -> list[Any]:
    return [st.one_of([_joined(_parts(option)) for option in argument[1]])]


_MADE: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "LITERAL": lambda code: [chr(code)],
    "NOT_LITERAL": lambda code: [_Run(_ALL.replace(chr(code), ""), 1, 1)],
    "ANY": lambda argument: [_Run(_ALL, 1, 1)],
    "IN": lambda argument: [_Run(_letters(argument), 1, 1)],
    "BRANCH": _branch,
    "SUBPATTERN": lambda argument: _parts(argument[-1]),
    "ATOMIC_GROUP": _parts,
    "MAX_REPEAT": _repeat,
    "MIN_REPEAT": _repeat,
    "POSSESSIVE_REPEAT": _repeat,
}
