"""What is wrong with a suite, as values with a place, and how a person gets to see them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.redaction import redaction
from mcptest.model.show import show
from mcptest.suite.model import Place
from mcptest.suite.yaml_nodes import lines_of

PROBLEMS_PER_FILE = 100
PROBLEMS_SHOWN = 200
_LINE_SHOWN = 160
_LONGEST_NAME = 60
"""A longer key is no misspelling of ours, and comparing it would only cost time."""

_TEMPLATE = r"\{\{\s*([^{}\s]+)\s*\}\}"

Severity = Literal["error", "warning"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it stands, and what was expected there."""

    place: Place
    message: str
    hint: str = ""
    source: str | None = None
    """The line of the file as it stands there; None when there is no line to show."""
    width: int = 1
    """How many characters of it are meant."""
    severity: Severity = "error"


class SuiteError(UsageError):
    """The suites that were named can't be run as they stand. Carries every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(describe(self.problems))


class Source:
    """A file's text, and the problems that were found in it, up to a limit."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.left_out = 0
        self.errors = 0
        self.tidy = "{{ " not in text and " }}" not in text
        self.templates = frozenset(re.findall(_TEMPLATE, text) if "{{" in text else ())
        """The names between double braces anywhere in the text."""
        self._text = text
        self._lines: list[str] | None = None
        self._reported: set[tuple[int, int, str]] = set()

    @property
    def full(self) -> bool:
        """No further problem will be kept, so there is no use in describing it well."""
        return len(self.problems) >= PROBLEMS_PER_FILE

    def place(self, line: int, column: int) -> Place:
        return Place(self.file, line, column)

    def line(self, number: int) -> str | None:
        if not self._text:
            return None
        if self._lines is None:
            self._lines = lines_of(self._text)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else None

    def report(
        self,
        message: str,
        line: int,
        column: int,
        *,
        hint: str = "",
        width: int = 1,
        severity: Severity = "error",
    ) -> None:
        self.errors += severity == "error"
        if (line, column, message) in self._reported:
            return  # what several tests share is looked at for each
        self._reported.add((line, column, message))
        if self.full:
            self.left_out += 1
            return
        found = Problem(
            self.place(line, column), message, hint, self.line(line), max(1, width), severity
        )
        self.problems.append(found)

    def finish(self) -> list[Problem]:
        """All problems in the order of the file; the last says how many were left out."""
        self.problems.sort(key=lambda problem: (problem.place.line, problem.place.column))
        if self.left_out:
            end = Problem(Place(self.file), f"{self.left_out} more problems in this file")
            return [*self.problems, end]
        return self.problems


def render(problem: Problem) -> str:
    """The place, what is wrong, the line with a caret below, and what was expected."""
    place = problem.place
    where = show(place.file, 400)
    kind = "warning: " if problem.severity == "warning" else ""
    if problem.source is None:
        return "\n".join((f"{where}: {kind}{problem.message}", *_hint("  ", problem)))
    from mcptest.model.secrets import secrets_of_line

    source = problem.source
    redaction.learn(lambda: secrets_of_line(source))
    number = str(place.line)
    gutter = " " * len(number)
    text, caret = _underlined(source, place.column, problem.width)
    return "\n".join(
        (
            f"{where}:{place.line}:{place.column}: {kind}{problem.message}",
            f"  {number} | {text}".rstrip(),
            f"  {gutter} | {caret}",
            *_hint(f"  {gutter} = ", problem),
        )
    )


def _hint(margin: str, problem: Problem) -> Iterator[str]:
    if problem.hint:
        yield margin + problem.hint


def _underlined(source: str, column: int, width: int) -> tuple[str, str]:
    """The line as it may be shown and the carets below, for a line of any length."""
    start = max(0, column - 1)
    first = max(0, start - _LINE_SHOWN // 2) if start > _LINE_SHOWN - 40 else 0
    mark = "…" if first else ""
    before = mark + show(source[first:start], 10 * _LINE_SHOWN)
    meant = show(source[start : start + width], 10 * _LINE_SHOWN)
    room = max(1, _LINE_SHOWN - len(before))
    after = show(source[start + width : start + width + _LINE_SHOWN], max(1, room))
    meant = meant if len(meant) <= room else meant[: room - 1] + "…"
    text = before + meant + after if room > len(meant) else before + meant
    return text, " " * _cells(before) + "^" * max(1, _cells(meant))


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def describe(problems: Sequence[Problem]) -> str:
    """All problems below one line that counts them."""
    errors = sum(problem.severity == "error" for problem in problems)
    files = len({problem.place.file for problem in problems if problem.severity == "error"})
    head = f"{_counted(errors, 'problem')} in {_counted(files, 'file')}; nothing was run"
    shown = [render(problem) for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        shown.append(f"… and {_counted(len(problems) - PROBLEMS_SHOWN, 'more problem')}")
    return "\n\n".join((head, *shown))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@functools.lru_cache(maxsize=1024)
def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known name that was probably meant."""
    if len(word) > _LONGEST_NAME:
        return None
    plain = word.lower().replace("-", "_").replace(" ", "_")
    if plain in known:
        return plain
    import difflib

    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.7)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: the nearest one, or all that are."""
    names = tuple(known)
    near = nearest(word, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"known here: {', '.join(names)}" if names else ""
