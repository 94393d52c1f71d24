"""HTTP/1.1 messages out of bytes: strict, within limits, and without I/O.

Theory of operation
-------------------

A connection carries messages in both directions. Each is a start line, a block of headers and a
body (RFC 9112, section 2.1). A reader is fed what a socket gave, however that was cut, and hands
out events: one head, then pieces of the body, then `EndOfMessage`. It knows no socket and no clock.

`ResponseReader` reads one response, after any interim ones. `RequestReader` reads the requests of
a connection one after the other. Only their heads differ, and what it means that a head says
nothing about a body. All else is one machine, a table of states: each step eats what it can from
the buffer and names the next state, or returns False until more has come::

    HEAD -+-> LENGTH ----------------------------------+-> DONE
          +-> CHUNK_SIZE -> CHUNK_DATA -> CHUNK_END    |
          |     ^   |                         |        |
          |     |   +-> TRAILERS -------------|--------+
          |     +-----------------------------+        |
          +-> UNTIL_CLOSE, in responses only ----------+
          +-> no body ---------------------------------+

What is wrong is reported, never raised and never repaired: `fault` says which kind of fault, why,
and shows the bytes. Events that came before it are good; nothing is read after it. Where a message
ends must never be a matter of opinion: two readers that disagree about it are what smuggles a
request past one of them. So whatever RFC 9112 leaves open there is a fault.

Everything is bounded. All heads and trailers of one message together have `header_bytes`
(HEADERS_TOO_LARGE), a body has `body_bytes` (BODY_TOO_LARGE), the line with a chunk's size has a
kilobyte. A body is handed out as it comes and never collected here, so that whoever streams it on
needs no limit.

Written here rather than taken from h11 for two reasons. A tester has to name what is wrong and keep
headers as they came, which a library hides behind one error class. And speed: for a small response
h11 takes 57 microseconds where this takes 10, and every microsecond of the client is one that the
server under test is not measured in.

The demo server reads its requests with this, so it stays cheap to import and needs nothing but the
standard library. Sections are those of RFC 9112 where no other RFC is named.
"""

from __future__ import annotations

import enum
import re
from collections import deque

TYPE_CHECKING = False  # `typing` would cost the demo a tenth of its start
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from mcptest.core.capture import Headers
    from mcptest.core.errors import ErrorKind

# A token and the text of a line: RFC 9110, sections 5.6.2 and 5.5. Text may hold bytes above ASCII.
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?")
_REQUEST_LINE = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP/([0-9])\.([0-9])"
)
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_CHUNK_LINE_LIMIT = 1024
UNLIMITED = 1 << 62
_HEADERS_TOO_LARGE, _BODY_TOO_LARGE, _LATE = "headers-too-large", "body-too-large", "timeout"
_REFUSALS = {_HEADERS_TOO_LARGE: 431, _BODY_TOO_LARGE: 413, _LATE: 408}
FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})
"""What says where a body ends, in lower case."""
EXCERPT = 200


class WireError(Exception):
    """The stream is unusable from here: which kind of fault, why, and the bytes that show it.

    Found in `wire`, recorded by the transport. What describes it is imported with the first one.
    """

    def __init__(self, kind: ErrorKind | str, detail: str, excerpt: bytes = b"") -> None:
        from mcptest.core.errors import ErrorKind
        from mcptest.core.safe_text import show

        super().__init__(detail)
        self.kind = ErrorKind(kind)
        self.detail = detail
        self.excerpt = show(excerpt, EXCERPT)


def _bad(
    why: str,
    excerpt: bytes = b"",
    *,
    quoted: bytes | str = b"",
    length: int = 80,
    kind: str = "bad-http",
) -> WireError:
    """That the bytes can't be read on; `{}` in `why` stands for what is quoted."""
    from mcptest.core.safe_text import show  # most servers never meet a fault

    return WireError(kind, why.format(repr(show(quoted, length))), excerpt)


class ResponseHead:
    """Status line and headers. A status below 200 announces another head to come."""

    __slots__ = ("headers", "reason", "status")

    def __init__(self, status: int, reason: str, headers: Headers) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers


class RequestHead:
    """Request line and headers."""

    __slots__ = ("headers", "method", "modern", "target")

    def __init__(self, method: str, target: str, headers: Headers, modern: bool) -> None:
        self.method = method
        self.target = target
        """Path and query, as they stand in the request line."""
        self.headers = headers
        """Names and values in the order and spelling in which they came."""
        self.modern = modern
        """HTTP/1.1: knows chunks, and keeps the connection unless it says otherwise."""

    def header(self, name: str) -> str | None:
        """The first value of a header, whose name is given in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def keeps_connection(self) -> bool:
        """Section 9.3. The keep-alive of HTTP/1.0 is not for proxies, and servers may ignore it."""
        return self.modern and "close" not in _connection_options(self.headers)

    @property
    def expects_continue(self) -> bool:
        """The client may wait for a 100 before it sends the body.

        RFC 9110, section 10.1.1: an HTTP/1.0 request that says so must be taken not to.
        """
        return self.modern and (self.header("expect") or "").lower() == "100-continue"


class EndOfMessage(enum.Enum):
    """The message is complete."""

    END = "end"


ResponseEvent: TypeAlias = ResponseHead | bytes | EndOfMessage
RequestEvent: TypeAlias = RequestHead | bytes | EndOfMessage


# The states, as plain numbers: the table of steps is looked into for every piece that comes.
_HEAD = 0
_LENGTH = 1
"""Inside a body of known length."""
_CHUNK_SIZE = 2
_CHUNK_DATA = 3
_CHUNK_END = 4
_TRAILERS = 5
_UNTIL_CLOSE = 6
"""Inside a body that ends with the connection."""
_DONE = 7


class _MessageReader:
    """What requests and responses have in common: the block of headers, the body, the limits."""

    def __init__(self, header_bytes: int, body_bytes: int = UNLIMITED) -> None:
        self._limit = header_bytes
        self._body_limit = body_bytes
        self._state = _HEAD
        self._data = b""
        self._place = 0
        self._left = 0
        """Of the body, or of the chunk, still to come."""
        self._allowed = body_bytes
        """What may still be announced of a body in chunks."""
        self._head_bytes = 0
        self.fault: WireError | None = None

    @property
    def rest(self) -> bytes:
        """What came after the end of the message."""
        return self._data[self._place :]

    def _read(self, data: bytes) -> list[Any]:
        """The events in `data`, up to the first fault or to the end of the message."""
        if self.fault is not None:
            return []
        if data:
            whole = self._place >= len(self._data)
            self._data = data if whole else self._data[self._place :] + data
            self._place = 0
        events: list[Any] = []
        try:
            while self._state != _DONE and _STEPS[self._state](self, events):
                pass
        except WireError as fault:
            self.fault = fault
        return events

    # -- the head --------------------------------------------------------------------------

    def _read_head(self, events: list[Any]) -> bool:
        raise NotImplementedError

    def _head_lines(self, what: str = "the headers") -> list[bytes] | None:
        """The lines up to the empty one, or None while that has not come."""
        data, start = self._data, self._place
        end = data.find(b"\r\n\r\n", start)
        size = (end if end >= 0 else len(data)) - start
        # Counted over all heads of a response: interim ones may be repeated without end.
        if self._head_bytes + size > self._limit:
            why = f"{what} are larger than {self._limit} bytes"
            raise _bad(why, data[start : start + 1000], kind=_HEADERS_TOO_LARGE)
        if end < 0:
            # Section 2.2 lets one take a lone newline for the end of a line, and we do not. Without
            # this check a head of such lines would be waited for until the deadline.
            if data.find(b"\n\n", start) >= 0:
                raise _bad("the lines of the head end without a carriage return", data[start:])
            return None
        self._head_bytes += size
        self._place = end + 4
        return data[start:end].split(b"\r\n")

    def _frame_body(self, headers: Headers, *, modern: bool, bodiless: bool = False) -> None:
        """Decide where the body ends: section 6.3, whose cases are told by their numbers."""
        facts = _framing_facts(headers)
        length, coding = facts.get("content-length"), facts.get("transfer-encoding")
        if coding is not None:
            # 3: may be an attempt to smuggle a request, and ought to be handled as an error.
            if length is not None:
                raise _bad("both Transfer-Encoding and Content-Length are present")
            # 4: where chunks are not the last coding, the length of a request can't be known.
            # Section 6.1: in HTTP/1.0 a Transfer-Encoding means that the framing is faulty.
            if coding.lower() != "chunked" or not modern:
                raise _bad("unsupported Transfer-Encoding {}", quoted=coding, length=40)
        # 5: an invalid Content-Length is an error that nothing can recover from.
        if length is not None and not _DIGITS.fullmatch(length):
            raise _bad("Content-Length is {}", quoted=length, length=40)
        if bodiless:  # 1: whatever the headers say
            self._state = _DONE
        elif coding is not None:  # 4
            self._state = _CHUNK_SIZE
        elif length is not None:  # 6
            self._left = int(length)
            if self._left > self._body_limit:
                raise self._too_large()
            self._state = _LENGTH if self._left else _DONE
        else:
            self._state = self._without_length()

    def _without_length(self) -> int:
        """How a message goes on that has a body and does not say how long it is."""
        raise NotImplementedError

    def _too_large(self) -> WireError:
        why = f"the body is larger than {self._body_limit} bytes"
        return _bad(why, kind=_BODY_TOO_LARGE)

    # -- the body --------------------------------------------------------------------------

    def _take(self, events: list[Any]) -> bool:
        """Move what there is of the counted bytes to `events`. True when all of them came."""
        data, start = self._data, self._place
        piece = data[start : start + self._left] if start or len(data) > self._left else data
        if piece:
            events.append(piece)
            self._place += len(piece)
            self._left -= len(piece)
        return self._left == 0

    def _read_length(self, events: list[Any]) -> bool:
        if self._take(events):
            self._state = _DONE
            events.append(EndOfMessage.END)
        return False

    def _read_until_close(self, events: list[Any]) -> bool:
        self._left = len(self._data)
        self._take(events)
        return False

    def _take_whole_chunks(self, events: list[Any]) -> None:
        """Chunks that came in one piece need no state; a busy event stream is all such chunks."""
        data, place = self._data, self._place
        pieces = []
        while (end := data.find(b"\r\n", place, place + 8)) > 0:
            match = _CHUNK_LINE.fullmatch(data, place, end)
            after = end + 2 + int(match[1], 16) if match is not None else 0
            if after <= end + 2 or data[after : after + 2] != b"\r\n":
                break
            pieces.append(data[end + 2 : after])
            place = after + 2
        if pieces:
            piece = b"".join(pieces)
            self._allow(len(piece))
            self._place = place
            events.append(piece)

    def _allow(self, size: int) -> None:
        self._allowed -= size
        if self._allowed < 0:
            raise self._too_large()

    def _read_chunk_size(self, events: list[Any]) -> bool:
        """Section 7.1: hexadecimal digits, and extensions that one has to ignore (7.1.1)."""
        self._take_whole_chunks(events)
        end = self._data.find(b"\r\n", self._place)
        line = self._data[self._place : end if end >= 0 else self._place + _CHUNK_LINE_LIMIT]
        match = _CHUNK_LINE.fullmatch(line)
        if len(line) >= _CHUNK_LINE_LIMIT or (end >= 0 and match is None):
            raise _bad("a chunk's size is {}", line, quoted=line, length=40)
        if end < 0:
            if line and not _CHUNK_LINE.fullmatch(line.removesuffix(b"\r")):
                raise _bad("a chunk's size is {}", line, quoted=line, length=40)
            return False
        assert match is not None
        self._left = int(match[1], 16)
        self._allow(self._left)
        self._place = end + 2
        self._state = _CHUNK_DATA if self._left else _TRAILERS
        return True

    def _read_chunk_data(self, events: list[Any]) -> bool:
        if not self._take(events):
            return False
        self._state = _CHUNK_END
        return True

    def _read_chunk_end(self, events: list[Any]) -> bool:
        mark = self._data[self._place : self._place + 2]
        if not b"\r\n".startswith(mark):
            raise _bad("a chunk is longer than its size", self.rest[:1000])
        if len(mark) < 2:
            return False
        self._place += 2
        self._state = _CHUNK_SIZE
        return True

    def _read_trailers(self, events: list[Any]) -> bool:
        """Section 7.1.2: headers after the body. They are checked, and then discarded."""
        if self._data.startswith(b"\r\n", self._place):
            self._place += 2
        else:
            lines = self._head_lines("headers and trailers")
            if lines is None:
                return False
            _fields(lines)
        self._state = _DONE
        events.append(EndOfMessage.END)
        return False


_STEPS = (  # by state; the table is part of the class
    lambda reader, events: reader._read_head(events),  # noqa: SLF001
    _MessageReader._read_length,  # noqa: SLF001
    _MessageReader._read_chunk_size,  # noqa: SLF001
    _MessageReader._read_chunk_data,  # noqa: SLF001
    _MessageReader._read_chunk_end,  # noqa: SLF001
    _MessageReader._read_trailers,  # noqa: SLF001
    _MessageReader._read_until_close,  # noqa: SLF001
)


class ResponseReader(_MessageReader):
    """Feed it what the socket gave; it returns the head, pieces of the body, and the end."""

    def __init__(self, method: str, header_bytes: int) -> None:
        super().__init__(header_bytes)
        self._method = method
        self.keep_alive = False

    @property
    def is_untouched(self) -> bool:
        """Has not a single byte of the response come?"""
        return self._state == _HEAD and not self._head_bytes and not self._data

    def feed(self, data: bytes) -> list[ResponseEvent]:
        """The events in `data`, up to the first fault: look at `fault` when they are used up."""
        return self._read(data)

    def finish(self) -> None:
        """The peer closed its side: that is a fault unless the response may end that way."""
        if self._state in {_DONE, _UNTIL_CLOSE}:
            self._state = _DONE
            return
        # Section 8: without its empty line, its last chunk or all of its length it is incomplete.
        if self._state == _HEAD:
            came = self.rest
            what = f"after {len(came)} bytes of the head" if came else "before the response"
        elif self._state == _LENGTH:
            what = f"{self._left} bytes before the end that Content-Length announced"
        else:
            what = "before the last chunk"
        why = f"the connection was closed {what}"
        self.fault = _bad(why, self.rest, kind="truncated")

    def _read_head(self, events: list[Any]) -> bool:
        start = self._data[self._place : self._place + 5]
        if not b"HTTP/".startswith(start):
            raise _bad("the answer is not HTTP", self.rest)
        lines = self._head_lines()
        if lines is None:
            return False
        match = _STATUS_LINE.fullmatch(lines[0])  # section 4
        if match is None:
            raise _bad("the status line is {}", lines[0], quoted=lines[0])
        status = int(match[2])
        # RFC 9110, section 7.8: a server switches only to a protocol that the client named.
        if status == 101:
            raise _bad("101 Switching Protocols, which was not requested", b"\r\n".join(lines))
        headers = _fields(lines[1:])
        events.append(ResponseHead(status, (match[3] or b"").decode("latin-1"), headers))
        if status >= 200:
            modern = match[1] == b"1"
            options = _connection_options(headers)  # section 9.3
            self.keep_alive = "close" not in options if modern else "keep-alive" in options
            bodiless = self._method == "HEAD" or status in {204, 304}
            self._frame_body(headers, modern=modern, bodiless=bodiless)
            if self._state == _DONE:
                events.append(EndOfMessage.END)
        return True

    def _without_length(self) -> int:
        self.keep_alive = False
        return _UNTIL_CLOSE  # 8


class RequestReader(_MessageReader):
    """Feed it what the socket gave, and pull events one at a time.

    So a slow receiver can make a sender wait, and no request is begun before somebody asks for it.
    The head of one whose framing can't be trusted is not handed out: nobody acts on it.
    """

    def __init__(self, header_bytes: int, body_bytes: int = UNLIMITED) -> None:
        super().__init__(header_bytes, body_bytes)
        self._unread = bytearray()
        self._ready: deque[RequestEvent] = deque()
        self._other_version = False
        self.head: RequestHead | None = None
        """Of the request that is being read, also where a fault kept it from being handed out."""

    @property
    def held(self) -> int:
        """Bytes that were fed and not looked at, or not complete."""
        return len(self._data) - self._place + len(self._unread)

    @property
    def is_between_requests(self) -> bool:
        is_outside = self._state in {_HEAD, _DONE}
        return is_outside and not self.held and not self._ready

    @property
    def refusal_status(self) -> int:
        """What to answer with, before hanging up, once there is a fault."""
        assert self.fault is not None, "nothing was refused"
        return 505 if self._other_version else _REFUSALS.get(self.fault.kind.value, 400)

    def feed(self, data: bytes) -> None:
        self._unread += data

    def next_event(self) -> RequestEvent | None:
        """The next event, or None until more has come, or for ever once there is a `fault`."""
        if not self._ready:
            if self._state == _DONE:
                self._state = _HEAD
                self._head_bytes = 0
                self._allowed = self._body_limit
                self.head = None
            data = bytes(self._unread)
            self._unread.clear()
            self._ready.extend(self._read(data))
        return self._ready.popleft() if self._ready else None

    def give_up(self) -> None:
        """The request did not come in time: that is a fault like any other."""
        held = (self._data[self._place :] + self._unread)[:1000]
        why = "the request did not come in time"
        self.fault = _bad(why, held, kind=_LATE)

    def _read_head(self, events: list[Any]) -> bool:
        # Section 2.2: a server ought to ignore an empty line before the request line.
        while self._data.startswith(b"\r\n", self._place):
            self._place += 2
        lines = self._head_lines()
        if lines is None:
            return False
        method, target, modern = self._read_request_line(lines[0])
        headers = _fields(lines[1:])
        # Section 3.2: a 400 for a request of HTTP/1.1 without a Host, and for any with two.
        hosts = sum(name.lower() == "host" for name, _ in headers)
        if hosts > 1:
            raise _bad(f"the request has {hosts} Host headers", b"\r\n".join(lines))
        if modern and not hosts:
            raise _bad("the Host header is missing", b"\r\n".join(lines))
        self.head = RequestHead(method, target, headers, modern)
        self._frame_body(headers, modern=modern)
        events.append(self.head)
        if self._state == _DONE:
            events.append(EndOfMessage.END)
        return True

    def _read_request_line(self, line: bytes) -> tuple[str, str, bool]:
        """Section 3: one space between its parts, and nothing else. An invalid one is a 400."""
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise _bad("the request line is {}", line, quoted=line)
        method, target = match[1].decode("ascii"), match[2].decode("latin-1")
        # Section 3.2 has other forms: for proxies that a client was told of, and `OPTIONS *`.
        if not target.startswith("/"):
            raise _bad("the target {} is not a path", line, quoted=target)
        # RFC 9110, section 15.6.6 has a status for another major version. Another minor one
        # is read like the highest that is known (section 2.5 there).
        if match[3] != b"1":
            self._other_version = True
            raise _bad("only HTTP/1.1 is supported", line)
        return method, target, match[4] != b"0"

    def _without_length(self) -> int:
        return _DONE  # 7: there is no body


def _fields(lines: list[bytes]) -> Headers:
    """Section 5: name, colon, value. No space before the colon (5.1), and no folding (5.2)."""
    headers = []
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise _bad(_why_bad_field(line), line, quoted=line)
        name, value = match.groups()
        headers.append((name.decode("ascii"), value.rstrip(b" \t").decode("latin-1")))
    return tuple(headers)


def _why_bad_field(line: bytes) -> str:
    if line[:1] in (b" ", b"\t"):
        return "a header is folded over two lines"
    if b"\n" in line or b"\r" in line:
        return "a line of the head ends without a carriage return and a newline"
    if b"\0" in line:
        return "a header contains a NUL byte"
    return "not a header: {}"


def _framing_facts(headers: Headers) -> dict[str, str]:
    """Both at most once: section 6.3 would allow a length to be repeated, for senders in error."""
    facts: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key in FRAMING_HEADERS:
            if key in facts:
                raise _bad(f"{name} appears twice")
            facts[key] = value
    return facts


def _connection_options(headers: Headers) -> set[str]:
    """RFC 9110, section 7.6.1: tokens in any case, in one header or in several."""
    return {
        option.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for option in value.split(",")
    }
