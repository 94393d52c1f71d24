"""The fenced blocks of the project's pages: which of them are commands, which are files.

A fence is a command fence when it says `console`, `bash` or `sh`, or when its first line begins
with a prompt. A comment right above it says what can't be seen in it:

    <!-- not run: it installs from the network -->
    <!-- exits: 1 -->            one code for each command, in their order
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
SHELLS = frozenset({"console", "bash", "sh", "shell"})
PROMPT = "$ "
_OPENING = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[\w-]*).*$")
_FILE = re.compile(r"^# file: (\S+)$")
_MARK = re.compile(r"^<!-- (not run|exits): (.+?) -->$")


class Fence(msgspec.Struct, frozen=True):
    """One block, without its indentation. `first` is the number of the line behind the ticks."""

    language: str
    first: int
    lines: tuple[str, ...]
    marks: tuple[tuple[str, str], ...] = ()

    @property
    def is_commands(self) -> bool:
        return self.language in SHELLS or "".join(self.lines[:1]).startswith(PROMPT)

    @property
    def file(self) -> str:
        """The file that it shows, or nothing."""
        named = _FILE.match(self.lines[0]) if self.lines else None
        return named[1] if named else ""

    @property
    def not_run(self) -> str:
        """Why it can't be run here, or nothing."""
        return dict(self.marks).get("not run", "")


class Step(msgspec.Struct, frozen=True):
    """One command, its line on the page, and what the page shows of its output."""

    command: str
    line: int
    shown: tuple[str, ...] = ()
    code: int | None = None
    """The exit code that the page tells in a comment; none is 0, or what `echo $?` shows next."""
    is_stopped: bool = False
    """It runs until somebody presses Ctrl-C."""


def pages() -> list[Path]:
    """Every page with instructions, the generated ones included."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences_of(page: str) -> list[Fence]:
    return list(_read(page.splitlines()))


def _read(lines: list[str]) -> Iterator[Fence]:
    number = 0
    marks: list[tuple[str, str]] = []
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        if opening is None:
            marks = _marks(marks, lines[number])
            number += 1
            continue
        indent, closing = len(opening["indent"]), opening["ticks"]
        end = number + 1
        while end < len(lines) and lines[end].strip() != closing:
            end += 1
        body = tuple(
            line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[number + 1 : end]
        )
        yield Fence(opening["language"], number + 2, body, tuple(marks))
        marks = []
        number = end + 1


def _marks(known: list[tuple[str, str]], line: str) -> list[tuple[str, str]]:
    """Marks belong to the fence that follows at once."""
    found = _MARK.match(line.strip())
    return [*known, (found[1], found[2])] if found else []


def steps_of(fence: Fence) -> list[Step]:
    """The commands of a fence. Without a prompt every line is one, and no output is shown."""
    told = dict(fence.marks).get("exits", "")
    codes = [int(code) for code in told.split(",")] if told else []
    prompted = any(line.startswith(PROMPT) for line in fence.lines)
    steps = list(_prompted(fence) if prompted else _plain(fence))
    if codes and len(codes) != len(steps):
        raise ValueError(f"line {fence.first}: {len(codes)} exit codes for {len(steps)} commands")
    return [
        msgspec.structs.replace(step, code=code)
        for step, code in zip(steps, codes or [None] * len(steps), strict=True)
    ]


def _prompted(fence: Fence) -> Iterator[Step]:
    starts = [n for n, line in enumerate(fence.lines) if line.startswith(PROMPT)]
    for start, end in zip(starts, [*starts[1:], len(fence.lines)], strict=True):
        command, after = _whole(fence.lines, start)
        shown = list(fence.lines[after:end])
        while shown and not shown[-1].strip():
            shown.pop()
        stopped = bool(shown) and shown[-1].strip() == "^C"
        yield Step(
            command.removeprefix(PROMPT),
            fence.first + start,
            tuple(shown[:-1] if stopped else shown),
            is_stopped=stopped,
        )


def _plain(fence: Fence) -> Iterator[Step]:
    number = 0
    while number < len(fence.lines):
        command, after = _whole(fence.lines, number)
        if command.strip() and not command.lstrip().startswith("#"):
            yield Step(command.strip(), fence.first + number)
        number = after


def _whole(lines: tuple[str, ...], start: int) -> tuple[str, int]:
    """A command with the lines that it goes on in, and the number of the line behind it."""
    words, end = lines[start], start + 1
    while words.endswith("\\") and end < len(lines):
        words = words[:-1].rstrip() + " " + lines[end].strip()
        end += 1
    return words, end
