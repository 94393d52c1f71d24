"""The screen of `watch`: what flipped stays, all else happens on one line at the bottom.

Nothing is cleared and nothing scrolls by unless an outcome changed. Where there is no terminal,
plain lines tell the same, one for each run.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import signal
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TextIO

import msgspec

from mcptest.core import safe_text
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report import terminal
from mcptest.report.evidence import (
    BRIEF,
    FULL,
    detail_lines,
    first_line,
    labelled_once,
    proof_lines,
)
from mcptest.report.progress import LiveBlock
from mcptest.report.run_results import summary
from mcptest.report.terminal import Style
from mcptest.report.terminal import columns as terminal_width
from mcptest.suite.reading import SuiteProblem
from mcptest.suite.reading import render as render_problem

# -- What a session of watching knows ------------------------------------------------------------


class Flip(msgspec.Struct, frozen=True):
    """A test whose outcome is another than the last time, or that fails for another reason."""

    now: TestResult
    before: TestResult | None = None
    """None for a test that has not been run before."""

    @property
    def is_worse(self) -> bool:
        return self.now.status is Status.FAIL


class WatchTotals(msgspec.Struct, frozen=True):
    """All tests that there are now, by what became of them when they were last run."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    not_run: int = 0
    problems: int = 0
    """What is wrong with the suites themselves."""

    @property
    def is_nothing(self) -> bool:
        return self.is_undecided and not self.skipped

    @property
    def is_undecided(self) -> bool:
        """There is no test, or every one of them was skipped: nothing was run."""
        return not (self.passed or self.failed or self.not_run or self.problems)

    @property
    def is_good(self) -> bool:
        """Nothing that was asked for failed or is missing."""
        return not (self.is_undecided or self.failed or self.not_run or self.problems)


# -- An outcome that flipped, for a person -------------------------------------------------------

PROOFS_SHOWN = 5
"""So many failures come with their proof; the next ones with their reason."""
LINES_SHOWN = 20
_DIFF_LINES = 16
_DIFFED = 8_000
_NAME = 300
_MARGIN = "    "
_LABEL = 10


def flip_lines(flips: Sequence[Flip], style: Style, *, all_failures: bool = False) -> Iterator[str]:
    """The failures first. A screenful at most, whatever happened."""
    worse = [flip for flip in flips if flip.is_worse]
    others = [flip for flip in flips if not flip.is_worse]
    for flip in worse[:PROOFS_SHOWN]:
        yield _title(flip, style)
        yield from _proof(flip, style, all_failures=all_failures)
    for flip in worse[PROOFS_SHOWN:LINES_SHOWN]:
        yield f"{_title(flip, style)}: {first_line(flip.now.detail, 120)}"
    yield from _more(len(worse) - LINES_SHOWN, "failures")
    for flip in others[:LINES_SHOWN]:
        yield _title(flip, style)
    yield from _more(len(others) - LINES_SHOWN, "that passed or were skipped")


def _more(number: int, what: str) -> Iterator[str]:
    if number > 0:
        yield f"{_MARGIN}and {number} more {what}: mcptest run shows them all"


def _title(flip: Flip, style: Style) -> str:
    """`✗ adds numbers: PASS -> FAIL`"""
    name = style.paint(show(flip.now.name, _NAME), "bold")
    now, before = flip.now.status, flip.before
    if before is None:
        became = now.value
    elif before.status is now:
        became = f"still {now.value}, for another reason"
    else:
        became = f"{before.status.value} -> {now.value}"
    symbols = {Status.SKIP: style.dash, Status.FAIL: style.cross, Status.PASS: style.tick}
    return f"{symbols[now]} {name}: {became}"


def _proof(flip: Flip, style: Style, *, all_failures: bool) -> Iterator[str]:
    bounds = FULL if style.verbose else BRIEF
    for line in detail_lines(flip.now, bounds, all_failures=all_failures):
        yield _MARGIN + style.paint(_cut(line, style), "red")
    difference = list(_response_difference(flip))
    for label, text in labelled_once(proof_lines(flip.now, bounds)):
        shown = _MARGIN + style.paint(f"{label:<{_LABEL}}", "dim")
        if label == "response:" and difference:
            yield f"{shown}- when it passed, + now"
            for line in difference:
                sign, rest = line[:1], show(line[1:], BRIEF.characters)
                colour = {"-": "red", "+": "green"}.get(sign, "dim")
                yield f"{_MARGIN}  " + style.paint(_cut(f"{sign} {rest}", style, 2), colour)
            continue
        whole = label == "repeat:"  # it is for copying
        yield shown + (text if whole else _cut(text, style, _LABEL))


def _cut(line: str, style: Style, indent: int = 0) -> str:
    """A terminal gets lines that fit, a file gets them whole."""
    room = style.width - indent - len(_MARGIN) - 1
    return terminal.cut(line, max(20, room)) if style.colour else line


def _response_difference(flip: Flip) -> Iterator[str]:
    proofs = [one.proof if one is not None else None for one in (flip.before, flip.now)]
    before, now = (proof.response[:_DIFFED] if proof is not None else "" for proof in proofs)
    if not before or not now or before == now:
        return
    found = difflib.unified_diff(_in_lines(before), _in_lines(now), lineterm="", n=0)
    lines = [line for line in found if not line.startswith(("---", "+++", "@@"))]
    yield from lines[:_DIFF_LINES]
    if len(lines) > _DIFF_LINES:
        yield f" ({len(lines) - _DIFF_LINES} more lines differ)"


def _in_lines(text: str) -> list[str]:
    """JSON with a member on each line, so that a difference is small. It may have been cut."""
    try:
        lines = json.dumps(json.loads(text), indent=0, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError):
        lines = re.split(r"(?<=[,{\[])", text)
    return [line.strip().removesuffix(",") for line in lines]


# -- The screen of `watch` -----------------------------------------------------------------------

PROBLEMS_SHOWN = 5
KEYS = "a all, r failed, q quit"
_LEAST_ROOM = 12

Segment = tuple[str, tuple[str, ...]]


class WatchScreen:
    """Tells a person, or a file, what happens; in a quiet style only what goes wrong.

    One thread calls it.
    """

    def __init__(
        self,
        stream: TextIO,
        style: Style,
        *,
        keys: bool = False,
        all_failures: bool = False,
        clock: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
        width: Callable[[], int] = terminal_width,
    ) -> None:
        self._style = style
        self._block = LiveBlock(stream)
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._keys = keys
        self._all_failures = all_failures
        self._clock = clock
        self._width = width
        self._why = ""
        self._last = ""
        self._done = 0
        self._total = 0

    def starts(self, places: Sequence[str]) -> None:
        named = ", ".join(show(place, 200) for place in places)
        self._block.tell([self._style.paint(f"watching {named}", "dim")])

    def waiting(self, standing: WatchTotals) -> None:
        """Nothing is going on until the next change or key."""
        segments = _counted(standing) + ([(KEYS, ("dim",))] if self._keys else [])
        # The keys stay to be seen: it is what happened last that has to fit in between.
        room = self._width() - 1 - sum(safe_text.cells(text) + 3 for text, _ in segments)
        if self._last and room > _LEAST_ROOM:
            last = (terminal.cut(self._last, room), ("dim",))
            segments.insert(len(segments) - self._keys, last)
        self._draw(segments)

    def begins(self, why: str, number: int) -> None:
        self._why, self._done, self._total = why, 0, number
        self._draw([(f"[0/{number}]", ("dim",)), (show(why, 200) or "starting", ())])

    def result(self, result: TestResult) -> None:
        self._done += 1
        total = max(self._total, self._done)
        self._draw([(f"[{self._done}/{total}]", ("dim",)), (show(result.name, 300), ())])

    def stopping(self) -> None:
        """The run that goes on is being ended, for the sake of another or for good."""
        self._draw([("stopping the run", ("dim",))])

    def ended(self, report: RunReport, flips: Sequence[Flip], standing: WatchTotals) -> None:
        """Of a run that was cut off, `report.interrupted` says so."""
        at = self._clock()
        why = show(self._why, 200)
        took = "cut off" if report.interrupted else terminal.duration(report.duration_ms)
        count = len(report.results)
        counted = f"{count} {'result' if report.trials > 1 else 'test'}{'s' if count != 1 else ''}"
        self._last = f"{at} {why}{', ' if why else ''}{counted} in {took}"
        if self._style.quiet:
            flips = [flip for flip in flips if flip.is_worse]
        if flips or not (self._live or self._style.quiet or report.interrupted):
            self._block.clear()
            reason = f"{why}: " if why else ""
            first = f"{self._style.paint(at, 'dim')} {reason}{summary(report, self._style)}"
            style = msgspec.structs.replace(self._style, width=self._width())
            told = flip_lines(flips, style, all_failures=self._all_failures)
            label = self._style.paint("note:", "yellow")
            notes = (f"{label} {show(note, 500)}" for note in report.notes)
            self._block.tell([first, *told, *notes])
        self.waiting(standing)

    def problems(self, problems: Sequence[SuiteProblem]) -> None:
        """Each with its place and a caret; when there are none any more, that is said too."""
        if not problems:
            self._block.tell([f"{self._style.tick} the suites are valid again"])
            return
        lines = []
        for problem in problems[:PROBLEMS_SHOWN]:
            first, *rest = render_problem(problem).split("\n")
            lines += [f"{self._style.cross} {first}", *(f"  {line}" for line in rest)]
        if len(problems) > PROBLEMS_SHOWN:
            lines.append(f"  and {len(problems) - PROBLEMS_SHOWN} more problems")
        self._block.tell(lines)

    def note(self, text: str) -> None:
        self._block.tell([f"{self._style.paint('note:', 'yellow')} {show(text, 500)}"])

    def closes(self, standing: WatchTotals) -> None:
        """The last word, in place of the line at the bottom."""
        self._block.clear()
        self._block.tell([f" {self._style.dot} ".join(text for text, _ in _counted(standing))])

    def _draw(self, segments: Sequence[Segment]) -> None:
        if not self._live:
            return
        room = max(10, self._width() - 1)
        separator = f" {self._style.dot} "
        parts: list[str] = []
        for text, styles in segments:
            room -= len(separator) if parts else 0
            if room < 1:
                break
            fitted = terminal.cut(text, room)
            room -= safe_text.cells(fitted)
            parts.append(self._style.paint(fitted, *styles))
        self._block.draw([separator.join(parts)])


def _counted(standing: WatchTotals) -> list[Segment]:
    if standing.is_nothing:
        return [("no test yet", ("yellow",))]
    plural = "s" if standing.problems > 1 else ""
    counts = (
        (standing.problems, f"problem{plural} in the suites", "red"),
        (standing.failed, "failed", "red"),
        (standing.passed, "passed", "green"),
        (standing.skipped, "skipped", "yellow"),
        (standing.not_run, "not run", "yellow"),
    )
    return [(f"{count} {word}", (colour,)) for count, word, colour in counts if count]


# -- Single keys, of a terminal that is given back as it was however the program ends ------------

_READ_AT_ONCE = 64


class Keys:
    """Keys without Enter and without echo, within a block. Ctrl-C stays a signal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None
        self._at_continue: Any = None

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> Keys:
        self._before = termios.tcgetattr(self._descriptor)
        self._listen_to_single_keys()
        # A shell that stopped us (Ctrl-Z) has set the terminal to its own liking meanwhile.
        self._at_continue = signal.signal(signal.SIGCONT, self._again)
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """May be called twice, and from a signal handler."""
        before, self._before = self._before, None
        if before is None:
            return
        # In the background it is not ours any more: the shell has set it to its own liking.
        if _is_ours(self._descriptor):
            with contextlib.suppress(termios.error):  # it was closed
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
        with contextlib.suppress(ValueError):  # not in the main thread: nothing was set there
            signal.signal(signal.SIGCONT, self._at_continue)

    def read(self) -> str | None:
        """What was typed; None when the terminal is gone."""
        try:
            data = os.read(self._descriptor, _READ_AT_ONCE)
        except BlockingIOError:
            return ""
        except OSError:
            return None
        return data.decode("ascii", "replace") if data else None

    def _again(self, number: int, frame: FrameType | None) -> None:
        if self._before is not None and _is_ours(self._descriptor):
            self._listen_to_single_keys()

    def _listen_to_single_keys(self) -> None:
        with contextlib.suppress(termios.error):
            tty.setcbreak(self._descriptor, termios.TCSADRAIN)


def keys_of(stream: TextIO | None) -> Keys | None:
    """The keys of the terminal that a stream is; None when it is none, or not ours to change."""
    try:
        descriptor = stream.fileno() if stream is not None and stream.isatty() else None
    except (ValueError, OSError):  # closed
        return None
    return Keys(descriptor) if descriptor is not None and _is_ours(descriptor) else None


def _is_ours(descriptor: int) -> bool:
    """In the background, changing the terminal would stop us."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
