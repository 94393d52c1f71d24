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


def _pieces(shown: Sequence[str]) -> list[list[re.Pattern[str]]]:
    """What stands between the gaps."""
    pieces: list[list[re.Pattern[str]]] = [[]]
    for line in shown:
        if line.strip() == GAP:
            pieces.append([])
        else:
            parts = (re.escape(part) for part in line.split(GAP))
            pieces[-1].append(re.compile(".*".join(parts)))
    return pieces


def _fits(pieces: list[list[re.Pattern[str]]], said: list[str]) -> bool:
    first, *rest = pieces
    if not _is_at(first, said, 0):
        return False
    if not rest:
        return len(first) == len(said)
    place = len(first)
    for piece in rest[:-1]:
        found = next((n for n in range(place, len(said)) if _is_at(piece, said, n)), None)
        if found is None:
            return False
        place = found + len(piece)
    last = rest[-1]
    return len(said) - len(last) >= place and _is_at(last, said, len(said) - len(last))


def _is_at(piece: Sequence[re.Pattern[str]], said: Sequence[str], place: int) -> bool:
    lines = said[place : place + len(piece)]
    return len(lines) == len(piece) and all(
        pattern.fullmatch(line) for pattern, line in zip(piece, lines, strict=True)
    )
