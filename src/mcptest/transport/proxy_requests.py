"""Reading HTTP/1.1 requests strictly and piece by piece, without I/O.

Whoever reads pulls one event at a time, so that a slow receiver can make a sender wait. The bodies
of requests and responses are framed alike: they are read by the reader of responses.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TypeAlias

import msgspec

from mcptest.model.capture import Headers
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.show import show
from mcptest.wire.http1 import End, Head, ResponseReader

_REQUEST_LINE = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])"
)
_STATUS = {ErrorKind.HEADERS_TOO_LARGE: 431}
FRAMING = frozenset({"content-length", "transfer-encoding"})


class RequestHead(msgspec.Struct, frozen=True):
    method: str
    target: str
    """Path and query, as they stand in the request line."""
    headers: Headers
    modern: bool
    """HTTP/1.1: knows chunks, and keeps the connection unless it says otherwise."""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def keeps_connection(self) -> bool:
        options = {
            each.strip().lower()
            for key, value in self.headers
            if key.lower() == "connection"
            for each in value.split(",")
        }
        return "close" not in options if self.modern else "keep-alive" in options


RequestEvent: TypeAlias = RequestHead | bytes | End


class RefusedRequest(Exception):  # noqa: N818 - an answer, not a defect
    """The bytes can't be used: the status to answer with before hanging up, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class RequestReader:
    """Feed it what the socket gave; it hands out heads, pieces of bodies and ends."""

    __slots__ = ("_body", "_data", "_limit", "_looked_at", "_ready")

    def __init__(self, header_bytes: int = DEFAULT_LIMITS.header_bytes) -> None:
        self._limit = header_bytes
        self._data = bytearray()
        self._looked_at = 0
        """How far the end of the head was looked for in vain."""
        self._body: ResponseReader | None = None
        self._ready: deque[RequestEvent] = deque()

    @property
    def held(self) -> int:
        """Bytes that were fed and not handed out."""
        return len(self._data)

    @property
    def is_between_requests(self) -> bool:
        return self._body is None and not self._data and not self._ready

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> RequestEvent | None:
        """The next event, or None until more has come. Raises RefusedRequest."""
        if not self._ready and self._data:
            if self._body is None:
                self._read_head()
            else:
                self._read_body(self._body)
        return self._ready.popleft() if self._ready else None

    # -- the head --------------------------------------------------------------------------

    def _read_head(self) -> None:
        while self._data.startswith(b"\r\n"):  # allowed before a request line
            del self._data[:2]
        end = self._data.find(b"\r\n\r\n", max(0, self._looked_at - 3))
        if (end if end >= 0 else len(self._data)) > self._limit:
            raise RefusedRequest(431, f"the head is larger than {self._limit} bytes")
        if end < 0:
            self._looked_at = len(self._data)
            if b"\n\n" in self._data:
                raise RefusedRequest(400, "the lines of the head end without a carriage return")
            return
        block = bytes(self._data[: end + 4])
        del self._data[: end + 4]
        self._looked_at = 0
        self._begin(block)

    def _begin(self, block: bytes) -> None:
        line, _, fields = block.partition(b"\r\n")
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise RefusedRequest(400, f"the request line is {show(line, 80)!r}")
        target = match[2].decode("latin-1")
        if not target.startswith("/"):
            raise RefusedRequest(400, f"the target {show(target, 80)!r} is no path")
        reader, headers = self._read_fields(fields)
        head = RequestHead(match[1].decode("ascii"), target, headers, match[3] == b"1")
        self._ready.append(head)
        if any(name.lower() in FRAMING for name, _ in headers):
            self._body = reader
            if reader.is_done:
                self._end()
        else:
            self._ready.append(End.END)

    def _read_fields(self, fields: bytes) -> tuple[_Body, Headers]:
        """The headers, and the reader that they make ready for the body."""
        reader = _Body(self._limit)
        events = reader.feed(b"HTTP/1.1 200 OK\r\n" + fields)
        if reader.fault is not None:
            status = _STATUS.get(reader.fault.kind, 400)
            raise RefusedRequest(status, reader.fault.detail)
        assert isinstance(events[0], Head)
        reader.is_done = events[-1] is End.END
        return reader, events[0].headers

    # -- the body --------------------------------------------------------------------------

    def _read_body(self, body: ResponseReader) -> None:
        data = bytes(self._data)
        self._data.clear()
        for event in body.feed(data):
            if event is End.END:
                self._end()
                self._data += body.rest
            else:
                assert isinstance(event, bytes)  # its head has been read
                self._ready.append(event)
        if body.fault is not None:
            raise RefusedRequest(400, body.fault.detail)

    def _end(self) -> None:
        self._body = None
        self._ready.append(End.END)


class _Body(ResponseReader):
    """Reads the headers and the body of a request as those of a response to a POST."""

    __slots__ = ("is_done",)

    def __init__(self, header_bytes: int) -> None:
        super().__init__("POST", header_bytes)
        self.is_done = False
