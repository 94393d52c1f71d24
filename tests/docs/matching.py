"""Whether a command says what a page shows: `…` stands for anything, and what varies is no matter.

A line that is only `…` stands for any number of lines. Durations, times of day, dates and ids
differ from run to run; places, and what the interpreter is called, from machine to machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "…"
_VARIES = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "CLOCK"),
    (re.compile(r" *\b[0-9]+(?:\.[0-9]+)?(?: ?(?:ms|s)\b|m\b)"), " TIME"),
    (re.compile(r'"id": ?\d+'), '"id":0'),
    (re.compile(r"(?<=[-/])[0-9a-f]{10,12}\b"), "HASH"),
    (re.compile(r"\b\d+ (requests|restarts?)\b"), r"N \1"),
    (re.compile(r"(?<=\S) {2,}"), "  "),  # the width of a column follows what stands in it
    (re.compile(r"\b0\.\d+(?:\.dev\d+)?\b(?= over | \(|: )"), "VERSION"),
)


def without_chance(text: str) -> str:
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return text


def lines_of(text: str) -> list[str]:
    """The lines as they are compared: without blanks at their ends, and blank lines at the end."""
    lines = [line.rstrip() for line in without_chance(text).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def is_shown(shown: Sequence[str], said: str) -> bool:
    """Whether the lines of a page are what was said, gaps aside."""
    return _fits(_pieces(lines_of("\n".join(shown))), lines_of(said))


def begins_with(shown: Sequence[str], said: str) -> bool:
    """The same, for somebody who is still speaking."""
    return is_shown([*shown, GAP], said)


def recounted(shown: Sequence[str], said: str) -> list[str] | None:
    """The lines of a page, with its gaps, and the numbers of what was said; None if more differs.

    Where there is one more of something, a page that counts them shows the same lines.
    """
    spoken, compared = said.splitlines(), lines_of(said)
    wanted = lines_of("\n".join(shown))
    places = _places(_pieces(wanted, any_count=True), compared)
    if places is None:
        return None
    lines, following = [], iter(places)
    place = next(following)
    for line, pattern in zip(shown, wanted, strict=False):
        if pattern.strip() == GAP:
            place = next(following)
            lines.append(line)
            continue
        same = _pattern(pattern).fullmatch(compared[place])
        if not same and GAP in line:
            return None
        lines.append(line if same else spoken[place].rstrip())
        place += 1
    return [*lines, *shown[len(lines) :]]


def _pieces(shown: Sequence[str], *, any_count: bool = False) -> list[list[re.Pattern[str]]]:
    """What stands between the gaps."""
    pieces: list[list[re.Pattern[str]]] = [[]]
    for line in shown:
        if line.strip() == GAP:
            pieces.append([])
        else:
            pieces[-1].append(_pattern(line, any_count=any_count))
    return pieces


_COUNT = re.compile(r"(?<![\w-])\d+(?:\\\.\d+)?(?!\w|\\?-)")
"""A number in an escaped text that is no part of an id or a date."""


def _pattern(line: str, *, any_count: bool = False) -> re.Pattern[str]:
    text = ".*".join(re.escape(part) for part in line.split(GAP))
    return re.compile(_COUNT.sub(r"\\d+(?:\\.\\d+)?", text) if any_count else text)


def _fits(pieces: list[list[re.Pattern[str]]], said: list[str]) -> bool:
    return _places(pieces, said) is not None


def _places(pieces: list[list[re.Pattern[str]]], said: list[str]) -> list[int] | None:
    """Where each piece stands in what was said, or None if it is not that."""
    first, *rest = pieces
    if not _is_at(first, said, 0):
        return None
    if not rest:
        return [0] if len(first) == len(said) else None
    places, place = [0], len(first)
    for piece in rest[:-1]:
        found = next((n for n in range(place, len(said)) if _is_at(piece, said, n)), None)
        if found is None:
            return None
        places.append(found)
        place = found + len(piece)
    last = len(said) - len(rest[-1])
    return [*places, last] if last >= place and _is_at(rest[-1], said, last) else None


def _is_at(piece: Sequence[re.Pattern[str]], said: Sequence[str], place: int) -> bool:
    lines = said[place : place + len(piece)]
    return len(lines) == len(piece) and all(
        pattern.fullmatch(line) for pattern, line in zip(piece, lines, strict=True)
    )
