"""Many HTTP exchanges at once: requests out, responses in, each told as records of its stream.

Nothing is hidden: every request that goes out is recorded when it does, and a request is sent
again in one case only, with a note: the server had closed an idle connection before it could see
the request.
"""

from __future__ import annotations

import functools
import re
import time
from collections import deque
from collections.abc import Mapping

import msgspec

from mcptest import __version__
from mcptest.core.capture import Frame, Headers, HttpRequest, Note, Trouble
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline, Limits
from mcptest.core.safe_text import show
from mcptest.transport.base import LARGE_BYTES, LARGE_IDLE_SECONDS, Clock, Sink, large_messages
from mcptest.transport.egress import Url
from mcptest.transport.http.response import Answer, EnoughError
from mcptest.transport.http.socket_connection import ConnectionPool, SocketConnection
from mcptest.transport.loop import GONE, READ, WRITE, wait_for
from mcptest.wire.http1 import ResponseHead, ResponseReader, WireError
from mcptest.wire.mcp_headers import JSON_TYPE, POST_ACCEPT, SSE_TYPE

# -- One HTTP request as values and as bytes -----------------------------------------------------

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSENDABLE = re.compile(r"[\r\n\x00]")
_KEPT_HEADS = 256

_ACCEPT = {"POST": POST_ACCEPT, "GET": SSE_TYPE}


class OutgoingRequest(msgspec.Struct, frozen=True):
    method: str
    url: Url
    headers: Headers
    """Complete and in order, as they are sent."""
    wire: bytes
    body: bytes | None = None


class RequestWriter:
    """Builds requests; remembers the last heads, since a session repeats the same few."""

    def __init__(self, own_headers: Mapping[str, str]) -> None:
        self._own = dict(own_headers)
        self._heads: dict[tuple[object, ...], tuple[Headers, bytes, bool]] = {}

    def write(
        self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None = None
    ) -> OutgoingRequest:
        key = (method, url, *headers.items())
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _KEPT_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._write_head(method, url, headers)
        fields, start, sized = head
        if body is None:
            return OutgoingRequest(method, url, fields, start + b"\r\n")
        if sized:
            return OutgoingRequest(method, url, fields, start + b"\r\n" + body, body)
        size = str(len(body))
        wire = b"%bContent-Length: %d\r\n\r\n%b" % (start, len(body), body)
        return OutgoingRequest(method, url, (*fields, ("Content-Length", size)), wire, body)

    def _write_head(
        self, method: str, url: Url, headers: Mapping[str, str]
    ) -> tuple[Headers, bytes, bool]:
        """The headers, their bytes, and whether the caller has said what the length is."""
        merged: dict[str, tuple[str, str]] = {}
        defaults = {
            "Host": url.origin.authority,
            "User-Agent": f"mcptest/{__version__}",
            "Accept": _ACCEPT.get(method, ""),
            "Accept-Encoding": "identity",
            "Content-Type": JSON_TYPE if method == "POST" else "",
        }
        for name, value in (*defaults.items(), *self._own.items(), *headers.items()):
            merged[name.lower()] = (name, value)
        fields = tuple((name, value) for name, value in merged.values() if value != "")
        lines = [f"{method} {url.target} HTTP/1.1\r\n"]
        lines += (_header_line(name, value) for name, value in fields)
        sized = "content-length" in merged
        return fields, "".join(lines).encode("utf-8", "surrogateescape"), sized


@functools.lru_cache(_KEPT_HEADS)
def _header_line(name: str, value: str) -> str:
    """Most are the same in every session."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"invalid header name: {show(name, 80)!r}")
    if _UNSENDABLE.search(value):
        raise UsageError(
            f"the value of header {name} contains a line break or NUL",
            hint="such a value would end the header and start another",
        )
    return f"{name}: {value}\r\n"


def redirect_target(request: OutgoingRequest, status: int, location: str) -> tuple[Url | None, str]:
    """Where a redirect may be followed to; otherwise None and the reason against it.

    Only to the same origin, so that no header of the user's goes elsewhere; and only where the
    request stays what it is: 301, 302 and 303 would turn a POST into a GET.
    """
    where = f"{status} to {show(location, 120)!r}"
    try:
        url = request.url.join(location)
    except ValueError as error:
        return None, f"{where}: {error}"
    if url.origin != request.url.origin:
        return None, f"{where} leads from {request.url.origin} to another server: {url.origin}"
    if request.method != "GET" and status not in {307, 308}:
        return None, f"{where} asks to turn a {request.method} into a GET"
    return url, ""


def moved(request: OutgoingRequest, target: str) -> OutgoingRequest:
    """The same request, sent to another path of the same server."""
    url = Url(request.url.origin, target)
    _, _, rest = request.wire.partition(b"\r\n")
    line = f"{request.method} {target} HTTP/1.1\r\n".encode()
    return OutgoingRequest(request.method, url, request.headers, line + rest, request.body)


# -- Many HTTP exchanges at once -----------------------------------------------------------------

AT_ONCE = 32
_REDIRECTS = 5
_MOST_QUEUED = 256
"""Requests that wait for a connection; beyond, streams of events are not read on."""
_HELD_IN_ALL = 3
"""All unfinished bodies together may hold this many times the limit for one."""


class HttpExchange(msgspec.Struct, eq=False):
    stream: int
    request: OutgoingRequest
    answer: Answer
    redirects: int = 0
    connection: SocketConnection | None = None
    reader: ResponseReader | None = None
    ended: bool = False


class Exchanges:
    """Sends requests over pooled connections and feeds what comes back to their answers."""

    def __init__(
        self, pool: ConnectionPool, say: Sink, clock: Clock, limits: Limits, at_once: int = AT_ONCE
    ) -> None:
        self._say = say
        self._clock = clock
        self._limits = limits
        self._at_once = at_once
        self._pool = pool
        self._queue: deque[HttpExchange] = deque()
        self._running: dict[int, HttpExchange] = {}
        self._standing = 0
        self._large: HttpExchange | None = None
        """The exchange whose large response is read now."""
        self._large_waited = 0.0
        """For how long we have looked for more of it."""

    # -- what the transport asks for -------------------------------------------------------

    def warm_up(self, deadline: Deadline) -> None:
        """Make the first connection, so that a server that can't be reached is known at once."""
        if not self._pool.has_established:
            self._pool.first(deadline)

    def submit(self, exchange: HttpExchange, deadline: Deadline) -> None:
        """Send the request now, or queue it while every connection is busy. Raises PeerError."""
        if self._is_full() and exchange.request.method != "GET":
            self._queue.append(exchange)
            return
        connection = self._reusable()
        if connection is None and not self._pool.has_established:
            connection = self._pool.first(deadline)
        self._start(exchange, connection or self._pool.another())

    def poll(self, seconds: float) -> None:
        """Wait for the network once, for no longer than `seconds`, and act on what it brings."""
        begun, large = time.monotonic(), self._large
        if large is not None and (large.ended or large.answer.held <= LARGE_BYTES):
            self._leave_large()
        for connection, events in self._pool.select(seconds):
            if connection not in self._pool:
                continue  # closed by what came before it in this round
            try:
                self._advance(connection, events)
            except WireError as lost:
                self._lose(connection, lost)
        while self._queue and not self._is_full():
            self._start_unattended(self._queue.popleft())
        if len(self._queue) < self._at_once:
            self._pool.resume()
        self._large_waited += time.monotonic() - begun

    def is_writing(self, exchange: HttpExchange) -> bool:
        """Are bytes of this request still waiting for the server to take them?"""
        connection = exchange.connection
        return not exchange.ended and connection is not None and connection.has_unsent

    def wait_until_writable(self, exchange: HttpExchange, seconds: float) -> None:
        """Wait for one connection only, leaving all others unread."""
        connection = exchange.connection
        assert connection is not None
        if wait_for(connection.sock.fileno(), WRITE, seconds) and connection.established:
            self._write_on(connection)

    def abandon(self, stream: int, why: str) -> None:
        """Close the connection of one exchange now; nothing happens if it has ended."""
        exchange = self._running.get(stream)
        if exchange is not None:
            self._cut(exchange, why)
            return
        for queued in self._queue:
            if queued.stream == stream:
                self._queue.remove(queued)
                queued.ended = True
                self._say(Note(t=self._clock(), text=f"stream {stream}: never sent; {why}"))
                return

    def close(self, *, keep: bool) -> None:
        """`keep`: idle connections may serve a later session."""
        for stream in [*self._running, *(queued.stream for queued in self._queue)]:
            self.abandon(stream, "still open when the transport was closed")
        self._pool.close(keep=keep)
        self._leave_large()

    # -- one exchange ----------------------------------------------------------------------

    def _is_full(self) -> bool:
        # Standing GET streams are not counted: they would starve the requests.
        return len(self._running) - self._standing >= self._at_once

    def _reusable(self) -> SocketConnection | None:
        """An idle connection that the server has not closed meanwhile."""
        while (connection := self._pool.find_idle()) is not None:
            try:
                data = connection.read()
            except WireError:
                data = b""
            if data is None:
                return connection
            self._found_while_idle(connection, data)
        return None

    def _found_while_idle(self, connection: SocketConnection, data: bytes) -> None:
        """Nothing is due on an idle connection: an end is normal, bytes are not."""
        self._pool.discard(connection)
        if data:
            self._say(
                Trouble(
                    t=self._clock(),
                    error=ErrorKind.BAD_HTTP.value,
                    detail="the server sent bytes after the complete response",
                    excerpt=show(data),
                )
            )

    def _start(self, exchange: HttpExchange, connection: SocketConnection) -> None:
        request = exchange.request
        record = HttpRequest(
            t=self._clock(),
            stream=exchange.stream,
            method=request.method,
            url=str(request.url),
            headers=request.headers,
        )
        self._say(record)
        if request.body is not None and not exchange.redirects:
            self._say(Frame(t=record.t, sender="client", raw=request.body, stream=exchange.stream))
        self._send(exchange, connection)

    def _send(self, exchange: HttpExchange, connection: SocketConnection) -> None:
        exchange.connection = connection
        exchange.reader = ResponseReader(exchange.request.method, self._limits.header_bytes)
        connection.exchange = exchange
        if exchange.stream not in self._running:
            self._running[exchange.stream] = exchange
            self._standing += exchange.request.method == "GET"
        connection.write(exchange.request.wire)
        self._pool.watch(connection)

    def _start_unattended(self, exchange: HttpExchange) -> None:
        """As `submit`, but what goes wrong is told to the stream: nobody is there to catch it."""
        try:
            connection = self._reusable() or self._pool.another()
        except PeerError as error:
            exchange.ended = True
            exchange.answer.fail(error.kind, error.message)
            return
        self._start(exchange, connection)

    def _advance(self, connection: SocketConnection, events: int) -> None:
        if not connection.established:
            if not connection.establish():
                self._pool.watch(connection)
                return
            self._write_on(connection)
        elif events & WRITE:
            self._write_on(connection)
        if events & (READ | GONE):
            # Whether a stream of events asks for more than we get to say.
            exchange = connection.exchange
            if exchange is not None and exchange.answer.is_events and self.is_backlogged:
                self._pool.pause(connection)
            else:
                self._read_on(connection)

    @property
    def is_backlogged(self) -> bool:
        """Whether more requests wait for a connection than should."""
        return len(self._queue) >= _MOST_QUEUED

    def _write_on(self, connection: SocketConnection) -> None:
        connection.flush()
        self._pool.watch(connection)

    def _read_on(self, connection: SocketConnection) -> None:
        while True:
            exchange = connection.exchange
            if exchange is not None and not self._may_read(exchange):
                return
            data = connection.read()
            if data is None:
                return
            if exchange is None:
                self._found_while_idle(connection, data)
            elif data:
                self._take(exchange, connection, data)
            else:
                self._peer_closed(exchange, connection)
            if not connection.buffers or connection not in self._pool:
                return

    def _may_read(self, exchange: HttpExchange) -> bool:
        """False: the response is large, and it is another one's turn."""
        if exchange.answer.held <= LARGE_BYTES:
            return True
        if self._large not in (None, exchange) and self._large_waited < LARGE_IDLE_SECONDS:
            return False
        if not large_messages.may_read(self):
            return False
        self._large, self._large_waited = exchange, 0.0
        return True

    def _leave_large(self) -> None:
        self._large = None
        large_messages.leave(self)

    def _take(self, exchange: HttpExchange, connection: SocketConnection, data: bytes) -> None:
        reader, answer = exchange.reader, exchange.answer
        assert reader is not None
        try:
            for event in reader.feed(data):
                if type(event) is bytes:
                    answer.data(event)
                elif type(event) is ResponseHead:
                    answer.head(event)
                else:
                    self._complete(exchange, connection, reader)
                    return
            if reader.fault is not None:
                raise reader.fault
            if answer.held > self._limits.message_bytes // 8:
                allowed = _HELD_IN_ALL * self._limits.message_bytes
                if self.held > allowed:
                    raise WireError(
                        ErrorKind.BODY_TOO_LARGE,
                        f"{len(self._running)} unfinished responses hold more than {allowed} bytes",
                    )
        except WireError as fault:
            self._give_up(exchange, fault)
        except EnoughError:
            self._cut(exchange, "the rest of the body was not read")

    @property
    def held(self) -> int:
        """Bytes that came of responses which are not complete yet."""
        return sum(exchange.answer.held for exchange in self._running.values())

    def _complete(
        self, exchange: HttpExchange, connection: SocketConnection, reader: ResponseReader
    ) -> None:
        rest = reader.rest
        # A server that answered before it took the whole request can't be sent another.
        if reader.keep_alive and not (rest or connection.broken or connection.has_unsent):
            connection.used = True
            connection.exchange = None
        else:
            self._pool.discard(connection)
        self._end(exchange)
        if exchange.answer.location is None:
            exchange.answer.end(rest)
        else:
            self._redirect(exchange, exchange.answer.location)

    def _redirect(self, exchange: HttpExchange, location: str) -> None:
        answer, request = exchange.answer, exchange.request
        url, refusal = redirect_target(request, answer.status or 0, location)
        if url is None or exchange.redirects >= _REDIRECTS:
            refusal = refusal or f"more than {_REDIRECTS} redirects, the last to {show(location)!r}"
            answer.trouble(ErrorKind.REDIRECT_REFUSED, refusal)
            answer.end()
            return
        answer.note(f"following the redirect to {show(str(url))}")
        answer.begin_again()
        exchange.redirects += 1
        exchange.ended = False
        exchange.request = moved(request, url.target)
        self._start_unattended(exchange)

    def _end(self, exchange: HttpExchange) -> None:
        exchange.ended = True
        if self._running.pop(exchange.stream, None) is not None:
            self._standing -= exchange.request.method == "GET"

    def _cut(self, exchange: HttpExchange, why: str) -> None:
        self._pool.discard(exchange.connection)
        self._end(exchange)
        exchange.answer.cut(why)

    def _give_up(self, exchange: HttpExchange, fault: WireError) -> None:
        self._pool.discard(exchange.connection)
        self._end(exchange)
        exchange.answer.fail(fault.kind, fault.detail, fault.excerpt)

    def _peer_closed(self, exchange: HttpExchange, connection: SocketConnection) -> None:
        reader = exchange.reader
        assert reader is not None
        try:
            reader.finish()
            if reader.fault is not None:
                raise reader.fault
            self._complete(exchange, connection, reader)
        except WireError as fault:
            if reader.is_untouched:
                why = "the server closed the connection without a response"
                self._lose(connection, WireError(ErrorKind.CONNECTION_LOST, why))
                return
            if exchange.answer.is_events:
                # To whoever reads events, how the stream broke off makes no difference.
                fault.kind = ErrorKind.CONNECTION_LOST
            self._give_up(exchange, fault)

    def _lose(self, connection: SocketConnection, lost: WireError) -> None:
        exchange, used = connection.exchange, connection.used
        taken = connection.was_taken
        self._pool.discard(connection)
        if exchange is None or exchange.ended:
            return
        untouched = exchange.reader is not None and exchange.reader.is_untouched
        if used and untouched and not taken:  # nothing is asked for twice
            exchange.answer.note("the server closed the idle connection; sent again on a new one")
            try:
                self._send(exchange, self._pool.another())
            except PeerError as error:
                lost = WireError(error.kind, error.message)
            else:
                return
        self._end(exchange)
        exchange.answer.fail(lost.kind, lost.detail)
