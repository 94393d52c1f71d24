"""Server-sent events by the WHATWG rules, without I/O.

A browser drops what a page has no use for; a tester must not. So comments, events without data
and an event that was never finished are all reported. Data stays bytes: what is inside is judged
elsewhere, invalid UTF-8 included.
"""

from __future__ import annotations

import codecs
from typing import Any

import msgspec

from mcptest.core.capture import Sse
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.wire.http1 import WireError

# A longer number of milliseconds is no number anyone means, and int() has its own limit.
_RETRY_DIGITS = 15


class Event(msgspec.Struct, frozen=True):
    """One event as it was written, or a comment. `data` is None when it had no data line at all."""

    data: bytes | None = None
    sse: Sse | None = None
    """Its other fields; None when it has none."""
    comment: bytes | None = None


class SseDecoder:
    """Feed it bytes in any pieces; time is linear and memory is bounded by one event."""

    def __init__(self, limit: int = DEFAULT_LIMITS.message_bytes) -> None:
        self._limit = limit
        self.fault: WireError | None = None
        self._start: bytes | None = b""
        """What came so far while a byte order mark is still possible, then None."""
        self._line = bytearray()
        self._skip_newline = False
        self._lines: list[bytes] = []
        self._event_bytes = 0
        self._fields = False
        self._others: dict[str, Any] = {}
        """Its fields beside the data."""

    @property
    def held(self) -> int:
        """Bytes kept for what is not complete yet."""
        return len(self._line) + self._event_bytes

    def feed(self, data: bytes) -> list[Event]:
        """The events and comments that `data` completed, up to the first fault: see `fault`."""
        items: list[Event] = []
        if self.fault is not None:
            return items
        try:
            self._read(data, items)
        except WireError as fault:
            self.fault = fault
        return items

    def _read(self, data: bytes, items: list[Event]) -> None:
        if self._start is not None:
            data = self._without_byte_order_mark(data)
        if self._skip_newline and data:
            self._skip_newline = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            # A CR ends the line at once; should an LF follow in the next piece, it belongs to it.
            self._skip_newline = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        for line in lines:
            if self._line:
                self._line += line
                if self._line.startswith(b"data: "):  # cut and copied at once: it may be large
                    self._take_data(bytes(memoryview(self._line)[6:]))
                    self._line = bytearray()
                    continue
                line = bytes(self._line)  # noqa: PLW2901  # the whole line replaces its tail
                self._line = bytearray()
            if line.startswith(b"data: "):  # the one kind of line that there are very many of
                self._take_data(line[6:])
            elif line:
                self._take_line(line, items)
            elif self._fields:
                self._check_size(0)
                items.append(self._finish_event())
            else:
                self._event_bytes = 0  # lines that meant nothing
        if rest:
            self._line += rest
        self._check_size(len(self._line))

    def finish(self) -> bytes | None:
        """At the end of the stream: what was begun and never ended by a blank line, if anything.

        The rules say that such an event is discarded. A lone comment is no loss.
        """
        line = bytes(self._line)
        lines = list(self._lines)
        if line and not line.startswith(b":"):
            lines.append(line)
        elif not self._fields:
            return None
        return b"\n".join(lines)

    def _without_byte_order_mark(self, data: bytes) -> bytes:
        data = (self._start or b"") + data
        if len(data) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(codecs.BOM_UTF8)

    def _take_data(self, value: bytes) -> None:
        self._lines.append(value)
        self._event_bytes += len(value) + 7
        self._fields = True

    def _take_line(self, line: bytes, items: list[Event]) -> None:
        self._check_size(len(line))
        if line[0] == 0x3A:
            items.append(Event(comment=line[1:].removeprefix(b" ")))
            return
        self._event_bytes += len(line) + 1
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._lines.append(value)
        elif name == b"event":
            self._others["event"] = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._others["id"] = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._others["retry"] = int(value)
        else:
            return
        self._fields = True

    def _finish_event(self) -> Event:
        lines = self._lines
        data = (lines[0] if len(lines) == 1 else b"\n".join(lines)) if lines else None
        event = Event(data, Sse(**self._others) if self._others else None)
        self._lines = []
        self._event_bytes = 0
        self._fields = False
        self._others = {}
        return event

    def _check_size(self, more: int) -> None:
        if self._event_bytes + more > self._limit:
            raise WireError(
                ErrorKind.EVENT_TOO_LARGE,
                f"a server-sent event is larger than {self._limit} bytes",
                b"\n".join([*self._lines[:4], bytes(self._line[:1000])])[:1000],
            )
