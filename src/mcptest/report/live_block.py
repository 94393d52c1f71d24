"""A few lines at the bottom of a terminal that are drawn over and over, and are gone at the end.

The cursor waits at the first of them: what is below it is ours, so one can erase it without knowing
how a terminal that was made narrower has folded it. The cursor is never hidden, so nothing has to
be shown again by someone who may be killed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from mcptest.report.terminal import Style, say

ERASE = "\r\x1b[J"
"""From the cursor to the end of the screen."""
_END_OF_LINE = "\x1b[K"
_OTHERWISE = (80, 24)


def is_live(stream: TextIO, style: Style, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person is looking at a terminal that can be drawn on."""
    in_ci = environment.get("CI", "").lower() not in {"", "0", "false"}
    dumb = environment.get("TERM", "") in {"", "dumb"}
    return style.colour and not in_ci and not dumb and stream.isatty()


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and lines as they are now, so a window may be resized at any time."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return _OTHERWISE
    return size.columns or _OTHERWISE[0], size.lines or _OTHERWISE[1]


class LiveBlock:
    """The lines on one stream. A stream that can't be written to any more costs only them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: list[str] = []
        self._size = _OTHERWISE
        self._gone = False

    def size(self) -> tuple[int, int]:
        return size_of(self._stream)

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
