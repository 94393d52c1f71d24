"""The screen of `watch`: what flipped stays, all else happens on one line at the bottom.

Nothing is cleared and nothing scrolls by unless an outcome changed. Where there is no terminal,
plain lines tell the same, one for each run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from mcptest.model.results import RunReport, TestResult
from mcptest.model.show import show
from mcptest.model.watched import Flip, Standing
from mcptest.report import columns
from mcptest.report.results_text import summary
from mcptest.report.terminal import Style, say
from mcptest.report.terminal import columns as terminal_width
from mcptest.report.watch_flips import Detail, flip_lines
from mcptest.suite.problems import Problem
from mcptest.suite.problems import render as render_problem

PROBLEMS_SHOWN = 5
KEYS = "a all, r failed, q quit"
_LEAST_ROOM = 12

Segment = tuple[str, tuple[str, ...]]


def _clock() -> str:
    return time.strftime("%H:%M:%S")


class WatchScreen:
    """Tells a person, or a file, what happens; with `quiet` only what goes wrong.

    One thread calls it.
    """

    def __init__(
        self,
        stream: TextIO,
        style: Style,
        *,
        keys: bool = False,
        quiet: bool = False,
        detail: Detail | None = None,
        clock: Callable[[], str] = _clock,
        width: Callable[[], int] = terminal_width,
    ) -> None:
        self._stream = stream
        self._style = style
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._keys = keys
        self._quiet = quiet
        self._detail = detail
        self._clock = clock
        self._width = width
        self._shown: str | None = None
        self._why = ""
        self._last = ""
        self._done = 0
        self._total = 0

    # -- what happens --------------------------------------------------------------------------

    def starts(self, places: Sequence[str]) -> None:
        named = ", ".join(show(place, 200) for place in places)
        self._lines([self._style.paint(f"watching {named}", "dim")])

    def waiting(self, standing: Standing) -> None:
        counted = _counted(standing)
        keys: list[Segment] = [(KEYS, ("dim",))] if self._keys else []
        # The keys stay to be seen: it is what happened last that has to fit in between.
        taken = sum(columns.cells(text) + 3 for text, _ in (*counted, *keys))
        room = self._width() - 1 - taken
        last: list[Segment] = []
        if self._last and room > _LEAST_ROOM:
            last.append((columns.cut(self._last, room), ("dim",)))
        self._draw([*counted, *last, *keys])

    def begins(self, why: str, number: int) -> None:
        self._why, self._done, self._total = why, 0, number
        self._draw([(f"[0/{number}]", ("dim",)), (show(why, 200) or "starting", ())])

    def result(self, result: TestResult) -> None:
        self._done += 1
        total = max(self._total, self._done)
        self._draw([(f"[{self._done}/{total}]", ("dim",)), (show(result.name, 300), ())])

    def stopping(self) -> None:
        self._draw([("stopping the run", ("dim",))])

    def ended(self, report: RunReport, flips: Sequence[Flip], standing: Standing) -> None:
        at = self._clock()
        why = show(self._why, 200)
        took = "cut off" if report.interrupted else columns.duration(report.duration_ms)
        self._last = f"{at} {why}{', ' if why else ''}{_number(report)} in {took}"
        if self._quiet:
            flips = [flip for flip in flips if flip.is_worse]
        if flips or not (self._live or self._quiet or report.interrupted):
            self._erase()
            self._lines(self._told(at, why, report, flips))
        self.waiting(standing)

    def problems(self, problems: Sequence[Problem]) -> None:
        """Each with its place and a caret; when there are none any more, that is said too."""
        if not problems:
            self._lines([f"{self._style.tick} the suites can be read again"])
            return
        lines = []
        for problem in problems[:PROBLEMS_SHOWN]:
            first, *rest = render_problem(problem).split("\n")
            lines += [f"{self._style.cross} {first}", *(f"  {line}" for line in rest)]
        if len(problems) > PROBLEMS_SHOWN:
            lines.append(f"  and {len(problems) - PROBLEMS_SHOWN} more problems")
        self._lines(lines)

    def note(self, text: str) -> None:
        self._lines([f"{self._style.paint('note:', 'yellow')} {show(text, 500)}"])

    def closes(self, standing: Standing) -> None:
        """The last word, in place of the line at the bottom."""
        self._erase()
        self._lines([self._style.dot.join(f" {text} " for text, _ in _counted(standing)).strip()])

    # -- how it is written ---------------------------------------------------------------------

    def _told(self, at: str, why: str, report: RunReport, flips: Sequence[Flip]) -> Iterable[str]:
        counted = summary(report, self._style)
        reason = f"{why}: " if why else ""
        yield f"{self._style.paint(at, 'dim')} {reason}{counted}"
        yield from flip_lines(flips, self._style, self._width(), self._detail)
        yield from (f"{self._style.paint('note:', 'yellow')} {show(n, 500)}" for n in report.notes)

    def _lines(self, lines: Iterable[str]) -> None:
        """Lines that stay, above the one at the bottom."""
        again, self._shown = self._shown, None
        start = "\r\x1b[K" if again is not None else ""
        self._write(start + "".join(f"{line}\n" for line in lines) + (again or ""))
        self._shown = again

    def _erase(self) -> None:
        if self._shown is not None:
            self._write("\r\x1b[K")
            self._shown = None

    def _draw(self, segments: Sequence[Segment]) -> None:
        """Over what stood there: what is left of it is erased afterwards, so nothing flickers."""
        if not self._live:
            return
        line = self._one_line(segments)
        if line != self._shown:
            self._write(f"\r{line}\x1b[K")
            self._shown = line

    def _one_line(self, segments: Sequence[Segment]) -> str:
        room = max(10, self._width() - 1)
        separator = f" {self._style.dot} "
        parts: list[str] = []
        for text, styles in segments:
            room -= len(separator) if parts else 0
            if room < 1:
                break
            fitted = columns.cut(text, room)
            room -= columns.cells(fitted)
            parts.append(self._style.paint(fitted, *styles))
        return separator.join(parts)

    def _write(self, text: str) -> None:
        say(self._stream, text)
        self._stream.flush()


def _counted(standing: Standing) -> list[Segment]:
    if standing.is_nothing:
        return [("no test yet", ("yellow",))]
    counts = (
        (standing.failed, "failed", "red"),
        (standing.passed, "passed", "green"),
        (standing.skipped, "skipped", "yellow"),
        (standing.not_run, "not run", "yellow"),
    )
    found: list[Segment] = [
        (f"{count} {word}", (colour,)) for count, word, colour in counts if count
    ]
    if standing.problems:
        plural = "s" if standing.problems > 1 else ""
        found.insert(0, (f"{standing.problems} problem{plural} in the suites", ("red",)))
    return found


def _number(report: RunReport) -> str:
    count = len(report.results)
    return (
        f"{count} result{'s' if count != 1 else ''}"
        if report.trials > 1
        else (f"{count} test{'s' if count != 1 else ''}")
    )
