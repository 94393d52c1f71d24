"""What a server says on stderr: always read, kept line by line up to a budget, then only counted.

A tail of the raw bytes is kept whatever the amount, for the message that explains a server's end.
"""

from __future__ import annotations

from collections.abc import Callable

from mcptest.model.capture import AnyRecord, Note, Stderr
from mcptest.model.limits import Limits
from mcptest.model.show import show
from mcptest.wire.lines import Line, LineReader, LineTooLong

RECORDED_BYTES = 1024 * 1024
"""How much of it becomes records. The rest is counted in one note."""
LINE_BYTES = 16 * 1024
KEPT_OF_A_LONG_LINE = 1024
TAIL_LINES = 12


class StderrLog:
    """Turns chunks of stderr into records, in bounded memory."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tail_bytes = limits.stderr_tail_bytes
        self._tail = bytearray()
        self._lines = LineReader(LINE_BYTES, KEPT_OF_A_LONG_LINE)
        self._budget = RECORDED_BYTES
        self._left_out_bytes = 0
        self._left_out_lines = 0

    def feed(self, chunk: bytes) -> list[AnyRecord]:
        self._tail += chunk
        if len(self._tail) > 2 * self._tail_bytes:  # cut seldom, so that it stays linear
            del self._tail[: -self._tail_bytes]
        if self._budget <= 0:
            self._left_out_bytes += len(chunk)
            self._left_out_lines += chunk.count(b"\n")
            return []
        self._budget -= len(chunk)
        return [self._record(line) for line in self._lines.feed(chunk)]

    def finish(self) -> list[AnyRecord]:
        """The last line if it had no newline, and how much was not recorded."""
        records: list[AnyRecord] = []
        rest = self._lines.finish()
        if rest:
            records.append(self._record(rest))
        if self._left_out_bytes:
            text = (
                f"{self._left_out_bytes} bytes of stderr in {self._left_out_lines} lines were left "
                f"out after the first {RECORDED_BYTES} bytes"
            )
            records.append(Note(t=self._clock(), text=text))
            self._left_out_bytes = self._left_out_lines = 0
        return records

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """The last lines, each safe to show to people."""
        text = bytes(self._tail[-self._tail_bytes :]).decode("utf-8", "replace")
        last = [line.rstrip() for line in text.splitlines()[-2 * lines :]]
        return [show(line) for line in last if line][-lines:]

    def _record(self, line: Line) -> Stderr:
        if isinstance(line, LineTooLong):
            text = line.head.decode("utf-8", "backslashreplace") + "… (a long line was cut here)"
        else:
            text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
        return Stderr(t=self._clock(), text=text)
