"""How far a run has come: live for a person who looks, else only what was asked for; on stderr.

`Progress` counts and says what runs and what failed; `StatusLine` is a single line for steps that
nobody counts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TextIO

from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.live import LiveState, live_lines, rows_of, told_failure
from mcptest.report.live_block import LiveBlock, is_live
from mcptest.report.terminal import Style

BETWEEN_DRAWINGS = 0.1
"""Seconds: whoever looks can't read faster."""
BEFORE_THE_FIRST = 0.3
"""What is over by then has its report at once; a display would only flash up."""
FAILURES_TOLD = 50
_NAME = 300

Began = tuple[str, float]


class StatusLine:
    """One line that is written over and over, and is gone at the end."""

    def __init__(
        self,
        stream: TextIO,
        style: Style,
        width: int | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._style = style
        self._width = width
        self._block = LiveBlock(stream)
        self._live = is_live(stream, style, environment)

    def draw(self, counter: str, text: str) -> None:
        """`[3/21] name`, in one line however long the name is."""
        if not self._live:
            return
        width = self._width or self._block.size()[0]
        fitted = columns.cut(show(text, _NAME), max(1, width - len(counter) - 2))
        self._block.draw([f"{self._style.paint(counter, 'dim')} {fitted}"])

    def tell(self, line: str) -> None:
        """A line that stays, also where there is no terminal."""
        self._block.tell([line])

    def clear(self) -> None:
        """Leave the line empty, for the report or for an error."""
        self._block.clear()


class Progress:
    """What runs and what has failed, in a few lines at the bottom of a terminal.

    `running` may be written by any thread; everything else is safe to be called from several.
    With `verbose` failures are told where there is no terminal, too.
    """

    def __init__(
        self,
        stream: TextIO,
        total: int,
        style: Style,
        *,
        verbose: bool = False,
        running: dict[Hashable, Began] | None = None,
        clock: Callable[[], float] = time.monotonic,
        since: float | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._style = style
        self._verbose = verbose
        self._clock = clock
        self._block = LiveBlock(stream)
        self.is_live = is_live(stream, style, environment)
        self.running = running if running is not None else {}
        self.total = total
        self._began = clock() if since is None else since
        self._drawn_at = self._began + BEFORE_THE_FIRST - BETWEEN_DRAWINGS
        self._done = 0
        self._failed = 0
        self._doing = ""
        self._untold: list[str] = []
        self._lock = threading.RLock()

    # -- what happens --------------------------------------------------------------------------

    def begin(self, key: Hashable, name: str) -> None:
        self.running[key] = (name, self._clock())

    def finish(self, key: Hashable, name: str, *, failed: bool = False, reason: str = "") -> None:
        """Something that was counted is over, whether or not anybody said that it had begun."""
        with self._lock:
            self._done += 1
            self._doing = name
            self.running.pop(key, None)
            if failed:
                self.fail(name, reason)
            self._draw_in_time()

    def reach(self, done: int, total: int, name: str) -> None:
        """So far, said by somebody who counts for himself."""
        with self._lock:
            self._done, self.total, self._doing = done, total, name
            self._draw_in_time()

    def fail(self, name: str, reason: str = "") -> None:
        with self._lock:
            self._failed += 1
            self._tell_failure(name, reason)

    def tick(self) -> None:
        """Time has passed."""
        with self._lock:
            self._draw_in_time()

    def close(self) -> None:
        """Before a report or an error. What was told above stays."""
        with self._lock:
            self._block.clear()
            self.is_live = False

    # -- how it is shown -----------------------------------------------------------------------

    def _draw_in_time(self) -> None:
        if not self.is_live or self._clock() - self._drawn_at < BETWEEN_DRAWINGS:
            return
        self._drawn_at = self._clock()
        self._block.draw(live_lines(self._state(), self._style, *self._block.size()))
        untold, self._untold = self._untold, []
        if untold:
            self._block.tell(untold)

    def _state(self) -> LiveState:
        now = self._clock()
        return LiveState(
            done=self._done,
            total=max(self.total, self._done),
            failed=self._failed,
            seconds=now - self._began,
            running=rows_of(list(self.running.values()), now),
            doing=self._doing,
        )

    def _tell_failure(self, name: str, reason: str) -> None:
        if not self.is_live:
            if self._verbose:
                why = f": {show(reason, _NAME)}" if reason else ""
                counter = f"[{self._done}/{self.total}]"
                self._block.tell([f"{counter} FAIL {show(name, _NAME)}{why}"])
        elif self._failed <= FAILURES_TOLD or self._verbose:
            width = self._block.size()[0]
            self._tell_on_terminal(told_failure(name, reason, self._style, width))
        elif self._failed == FAILURES_TOLD + 1:
            note = "further failures are only counted here; the report has them all"
            self._tell_on_terminal([self._style.paint(note, "dim")])

    def _tell_on_terminal(self, lines: list[str]) -> None:
        """Not before the display is there: what is over by then has its report at once."""
        if self._block.is_shown:
            self._block.tell(lines)
        else:
            self._untold += lines
