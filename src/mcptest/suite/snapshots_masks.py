"""Masks: what is different in every run stands in a golden file as a placeholder, `<timestamp>`.

A mask only ever hides what it is written for, and everybody can see in the golden file that it
did. Patterns are RE2: linear in the text, whatever the text is.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from urllib.parse import quote

import msgspec

from mcptest.suite.regex import groups_of, pattern_problem, with_groups_replaced
from mcptest.suite.text_under_test import compact_json

FIXTURE = "fixture"
MASKED = "masked"
"""The placeholder of a pattern that gives its parts no names."""
VOLATILE = "volatile"
"""A line that says only this is never compared."""

Names: TypeAlias = frozenset[str]

_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d{2}:\d{2}:\d{2}"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_IS = r"[\"']?\s*[:=]\s*"
"""Between the name of a member and its value: in JSON, in a dict of Python, in `name: value`."""
_ID = r"(?:\b[Ii]d|_id|Id|ID)"
_NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_UNIT = r"(?:[NnUuµMm]?[Ss]|sec|[Mm]illis(?:econds?)?|[Ss]econds?)"

# In each pattern the one group is what is hidden; the rest only says where to look.
BUILT_IN: dict[str, tuple[str, ...]] = {
    "uuid": (r"\b([0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})\b",),
    "timestamp": (
        rf"\b(\d{{4}}-\d{{2}}-\d{{2}}[Tt ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d{{1,9}})?)?{_ZONE})",
        rf"\b({_DAY}, \d{{1,2}} {_MONTH} \d{{4}} {_CLOCK}(?: (?:GMT|UTC|[+-]\d{{4}}))?)",
        rf"\b({_DAY} {_MONTH} [ \d]\d \d{{4}} {_CLOCK} GMT[+-]\d{{4}}(?: \([A-Za-z ]{{1,60}}\))?)",
        rf"\b({_DAY} {_MONTH} [ \d]\d {_CLOCK}(?: [A-Z]{{3,4}})? \d{{4}})\b",
        # Seconds or milliseconds since 1970, where the name of the member says that it is a time.
        rf"(?:[Tt]ime|[Tt]ime_?[Ss]tamp|_at|At){_IS}(1\d{{9}}(?:\d{{3}})?(?:\.\d{{1,9}})?)\b",
    ),
    "id": (
        # Only what nobody can have chosen: an id such as 5 or `bob` is a part of the answer.
        rf"{_ID}{_IS}[\"']?((?:[a-z]{{1,12}}_)?(?:[0-9a-f]{{16,64}}|[0-9A-HJKMNP-TV-Z]{{26}}))\b",
        rf"{_ID}{_IS}[\"']([a-z]{{1,12}}_[0-9A-Za-z]{{14,64}})\b",
    ),
    "duration": (
        rf"\b(?:took|elapsed|(?:completed|finished|done|ready) in):? ({_NUMBER}) ?{_UNIT}\b",
        rf"(?:[Dd]uration|[Ee]lapsed|[Ll]atency|\btook)(?:_?{_UNIT})?{_IS}({_NUMBER})\b",
    ),
}


class Masks(msgspec.Struct, frozen=True):
    """Everything that is hidden in one text."""

    built_in: Names = frozenset(BUILT_IN)
    patterns: tuple[str, ...] = ()
    """Of the user. Its named groups are hidden under their names; without one, the whole match."""
    paths: tuple[str, ...] = ()
    """Where the fixture lies in this run."""

    def apply(self, text: str) -> str:
        data = text.encode("utf-8", "backslashreplace")
        for pattern in self.patterns:
            data = with_groups_replaced(pattern, data, _placeholders_of(pattern))
        for path in _spellings(self.paths):
            data = data.replace(path, f"<{FIXTURE}>".encode())
        if self.built_in:
            pattern, placeholders = _joined(self.built_in)
            data = with_groups_replaced(pattern, data, placeholders)
        return data.decode("utf-8")

    @property
    def names(self) -> Names:
        """All words that may stand in angle brackets, also those that are not in use."""
        own = {name for pattern in self.patterns for name in groups_of(pattern)}
        return frozenset({*BUILT_IN, FIXTURE, MASKED, VOLATILE, *own})


def mask_problem(pattern: str) -> str | None:
    """Why this can't be a mask, or None."""
    if not pattern:
        return "it is empty"
    problem = pattern_problem(pattern)
    if problem is None and "\n" in pattern:
        problem = "it holds a line break: write \\n"
    return problem


def names_in(golden: str) -> Names:
    """The built-in masks that were at work when this was written: those that it shows."""
    return frozenset(_USED.findall(golden))


def protected(text: str, names: Names) -> str:
    """A text of a peer in which nothing looks like a placeholder: a backslash goes before it."""
    if "<" not in text:
        return text
    return re.sub(rf"\\*<(?:{'|'.join(map(re.escape, sorted(names)))})>", r"\\\g<0>", text)


_USED = re.compile(rf"(?<!\\)<({'|'.join(BUILT_IN)})>")


def _placeholders_of(pattern: str) -> dict[int, bytes]:
    """By the number of the group; 0 is the whole match."""
    named = {number: f"<{name}>".encode() for name, number in groups_of(pattern).items()}
    return named or {0: f"<{MASKED}>".encode()}


@functools.lru_cache(maxsize=64)
def _joined(names: Names) -> tuple[str, dict[int, bytes]]:
    """One pattern for all of them, so that the text is gone through once."""
    rows = [(name, pattern) for name in BUILT_IN if name in names for pattern in BUILT_IN[name]]
    placeholders = {number: f"<{name}>".encode() for number, (name, _) in enumerate(rows, 1)}
    return "|".join(f"(?:{pattern})" for _, pattern in rows), placeholders


def _spellings(paths: Iterable[str]) -> list[bytes]:
    """A path as it is, as its links lead, in JSON and in a URL; the longest first."""
    found: set[str] = set()
    for path in filter(None, paths):
        for one in (path, os.path.realpath(path)):
            found |= set(_forms(one.rstrip("/")))
    encoded = {form.encode("utf-8", "backslashreplace") for form in found if len(form) > 1}
    return sorted(encoded, key=len, reverse=True)


def _forms(path: str) -> Iterator[str]:
    yield path
    yield compact_json(path)[1:-1]
    yield quote(path, safe="/", errors="backslashreplace")
    yield quote(path, safe="", errors="backslashreplace")
