"""What a live display says: from the state of a run to a few lines. No terminal is touched here."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TextIO

import msgspec

from mcptest.core import safe_text
from mcptest.core.safe_text import show
from mcptest.report import terminal
from mcptest.report.terminal import Style, say

RUNNING_SHOWN = 3
WORTH_NAMING = 0.5
"""Seconds after which something that runs is named: whatever is quicker would only flicker by."""
_NAME = 300
_BAR_AT_MOST = 40
_BAR_AT_LEAST = 8
_SECONDS = 7
_SURE_OF_THE_RATE = 1.0


class LiveState(msgspec.Struct, frozen=True):
    """How far a run has come."""

    done: int
    total: int
    failed: int = 0
    seconds: float = 0.0
    running: Sequence[tuple[float, str]] = ()
    """What has begun, with the seconds since then."""
    doing: str = ""
    """What was heard of last, where nobody says what has begun."""


def live_lines(state: LiveState, style: Style, width: int, height: int = 24) -> list[str]:
    """At most a handful of lines, none wider than the terminal, fewer than it is high."""
    room = max(1, width - 1)  # in the last column some terminals begin a new line
    lines = [_first_line(state, style, room), *_below(state, style, room)]
    return lines[: max(1, height - 1)]


def told_failure(name: str, reason: str, style: Style, width: int) -> list[str]:
    """One line that stays; where the reason doesn't fit beside the name, two."""
    room = max(4, width - 1)
    shown, why = show(name, _NAME), show(reason, _NAME)
    whole = f"{shown}: {why}" if why else shown
    if safe_text.cells(whole) + 2 <= room or not why:
        return [f"{style.cross} {terminal.cut(whole, room - 2)}"]
    below = style.paint(terminal.cut(why, room - 4), "dim")
    return [f"{style.cross} {terminal.cut(shown, room - 2)}", f"    {below}"]


def _first_line(state: LiveState, style: Style, room: int) -> str:
    """The counter always; then what is left of the room, by how much it matters."""
    counter = terminal.cut(f"[{state.done}/{state.total}]" if state.total else "starting …", room)
    facts = list(_facts(state))
    separator = f" {style.dot} "
    kept: list[str] = []
    left = room - len(counter)
    for text, colour in facts:
        gap = len(separator) if kept else 1
        if len(text) + gap > left:
            break
        left -= len(text) + gap
        kept.append(style.paint(text, colour))
    bar = _bar(state, style, min(_BAR_AT_MOST, left - 1)) if len(kept) == len(facts) else ""
    told = f"{counter} {separator.join(kept)}" if kept else counter
    return f"{bar} {told}" if bar else told


def _facts(state: LiveState) -> Iterator[tuple[str, str]]:
    if state.failed:
        yield f"{state.failed} failed", "red"
    yield _clock(state.seconds), "dim"
    if state.done and state.seconds >= _SURE_OF_THE_RATE:
        rate = state.done / state.seconds
        yield f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s", "dim"


def _bar(state: LiveState, style: Style, room: int) -> str:
    if room < _BAR_AT_LEAST or not state.total:
        return ""
    whole, rest = ("━", "─") if style.unicode else ("#", "-")
    full = room * min(state.done, state.total) // state.total
    colour = "red" if state.failed else "green"
    return style.paint(whole * full, colour) + style.paint(rest * (room - full), "dim")


def _below(state: LiveState, style: Style, room: int) -> Iterator[str]:
    """What has been running for longest comes first."""
    slow = [one for one in state.running if one[0] >= WORTH_NAMING]
    slow.sort(key=lambda one: -one[0])
    for seconds, name in slow[:RUNNING_SHOWN]:
        taken = f"{_clock(seconds):>{min(_SECONDS, room // 3)}}"
        shown = terminal.cut(show(name, _NAME), max(1, room - len(taken) - 2))
        yield f"{style.paint(taken, 'dim')}  {shown}"
    if len(slow) > RUNNING_SHOWN:
        more = f"and {len(slow) - RUNNING_SHOWN} more"
        yield style.paint(terminal.cut(" " * min(_SECONDS + 2, room // 3) + more, room), "dim")
    if state.doing and not state.running:
        yield f"  {terminal.cut(show(state.doing, _NAME), max(1, room - 2))}"


def _clock(seconds: float) -> str:
    """Whole seconds: a tenth would make it move ten times as often, and says no more."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


# -- A few lines at the bottom of a terminal that are drawn over and over, and are gone at the ---

ERASE = "\r\x1b[J"
"""From the cursor to the end of the screen."""
_END_OF_LINE = "\x1b[K"
_OTHERWISE = (80, 24)


def is_live(stream: TextIO, style: Style, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person is looking at a terminal that can be drawn on."""
    in_ci = environment.get("CI", "").lower() not in {"", "0", "false"}
    dumb = environment.get("TERM", "") in {"", "dumb"}
    return style.colour and not in_ci and not dumb and stream.isatty()


class LiveBlock(msgspec.Struct):
    """The lines on one stream. A stream that can't be written to any more costs only them."""

    _stream: TextIO
    _shown: list[str] = []
    _size: tuple[int, int] = _OTHERWISE
    _gone: bool = False

    def size(self) -> tuple[int, int]:
        """Columns and lines as they are now, so a window may be resized at any time."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (AttributeError, OSError, ValueError):
            return _OTHERWISE
        return size.columns or _OTHERWISE[0], size.lines or _OTHERWISE[1]

    @property
    def is_shown(self) -> bool:
        return bool(self._shown)

    def draw(self, lines: Sequence[str]) -> None:
        """In place of what stood there; nothing is written when nothing would change."""
        size = self.size()
        if list(lines) == self._shown and size == self._size:
            return
        self._size = size
        self._shown = list(lines)  # first: whoever is interrupted while it is written erases it
        self._write(_drawn(lines))

    def tell(self, lines: Sequence[str]) -> None:
        """Lines that stay, above the others."""
        told = "".join(f"{line}\n" for line in lines)
        if self._shown:
            self._write(f"{ERASE}{told}{_drawn(self._shown)}")
        else:
            self._write(told)

    def clear(self) -> None:
        """Leave the place as it was found."""
        if self._shown:
            self._write(ERASE)
            self._shown = []

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            say(self._stream, text)
            self._stream.flush()
        except (OSError, ValueError):  # gone, or closed by someone else
            self._gone = True


def _drawn(lines: Sequence[str]) -> str:
    """Written over what is there, line by line, so nothing is dark in between."""
    if not lines:
        return ERASE
    body = "\n".join(f"{line}{_END_OF_LINE}" for line in lines)
    back = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
    return f"\r{body}\x1b[J{back}\r"


# -- How far a run has come ----------------------------------------------------------------------

BETWEEN_DRAWINGS = 0.1
"""Seconds: whoever looks can't read faster."""
BEFORE_THE_FIRST = 0.3
"""What is over by then has its report at once; a display would only flash up."""
FAILURES_TOLD = 50


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
        clock: Callable[[], float] = time.monotonic,
        began: float | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`began`: when a person began to wait, if that was before now."""
        self._style = style
        self._verbose = verbose
        self._clock = clock
        self._block = LiveBlock(stream)
        self.is_live = is_live(stream, style, environment)
        self.running: dict[Hashable, tuple[str, float]] = {}
        self.total = total
        self._began = clock() if began is None else began
        self._drawn_at = clock() + BEFORE_THE_FIRST - BETWEEN_DRAWINGS
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
        now = self._drawn_at = self._clock()
        state = LiveState(
            done=self._done,
            total=max(self.total, self._done),
            failed=self._failed,
            seconds=now - self._began,
            running=[(now - since, name) for name, since in list(self.running.values())],
            doing=self._doing,
        )
        self._block.draw(live_lines(state, self._style, *self._block.size()))
        untold, self._untold = self._untold, []
        if untold:
            self._block.tell(untold)

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
            note = "further failures are only counted here (the report has all)"
            self._tell_on_terminal([self._style.paint(note, "dim")])

    def _tell_on_terminal(self, lines: list[str]) -> None:
        """Not before the display is there: what is over by then has its report at once."""
        if self._block.is_shown:
            self._block.tell(lines)
        else:
            self._untold += lines


# -- Time for a display: whatever runs waits too deep down to move a clock -----------------------

_BETWEEN_TICKS = 0.25


@contextlib.contextmanager
def ticking(progress: Progress) -> Iterator[Progress]:
    """The display is told of the time within the block, and is gone at its end."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(_BETWEEN_TICKS):
            progress.tick()

    if progress.is_live:
        threading.Thread(target=tick, daemon=True).start()
    try:
        yield progress
    finally:
        over.set()
        progress.close()
