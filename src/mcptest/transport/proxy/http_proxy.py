"""Sitting on loopback between HTTP clients and a server: one loop, many connections.

Everything is passed on the moment it comes, and recorded. Only who is on this machine is served.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import DEFAULT_LIMITS, Deadline
from mcptest.transport.base import NO_HEADERS
from mcptest.transport.egress import Origin, Url, start_connect, usable_addresses
from mcptest.transport.http.socket_connection import SocketConnection, default_tls
from mcptest.transport.listener import LOOPBACK, AcceptedConnection, Listener
from mcptest.transport.loop import GONE, READ, Loop
from mcptest.transport.proxy.exchange_record import (
    ExchangeRecord,
    RefusedRequest,
    SessionBook,
    check_sender,
    downstream_fields,
    through_us,
    upstream_head,
)
from mcptest.wire.http1 import EndOfMessage, RequestHead, ResponseHead, ResponseReader, WireError
from mcptest.wire.mcp_headers import SSE_TYPE, media_type

if TYPE_CHECKING:
    from mcptest.transport.listener import Forget

# -- An answer on its way to the client of a proxy -----------------------------------------------

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ENDPOINT = (b"event: endpoint", b"event:endpoint")
_DATA = re.compile(rb"(?m)^(data:[ ]?)([^\r\n]*)")
_BODILESS = frozenset({204, 304})


class AnswerWriter(msgspec.Struct, eq=False):
    """Writes one answer. Who closes the connection when is decided with its head."""

    request: RequestHead
    client: DownstreamConnection
    server: Origin
    began: bool = False
    """Whether the client has seen anything of it."""
    ends_connection: bool = False
    chunked: bool = False
    rewriter: _EndpointRewriter | None = None

    def head(self, head: ResponseHead, *, request_done: bool) -> None:
        start = f"HTTP/1.1 {head.status} {head.reason}\r\n"
        if head.status < 200:
            if self.request.modern:
                self.client.write(f"{start}\r\n".encode("latin-1"))
            return
        self.began = True
        # What is left of a request that is answered early can't be told from the next one.
        self.ends_connection = not request_done or not self.request.keeps_connection
        fields = [*downstream_fields(head.headers, self.server), *self._framing(head)]
        if self.ends_connection:
            fields.append(("Connection", "close"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self.client.write(f"{start}{lines}\r\n".encode("latin-1"))

    def data(self, piece: bytes) -> None:
        if self.rewriter is not None:
            piece = self.rewriter.feed(piece)
        if piece:
            self.client.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece)

    def finish(self) -> None:
        rewriter, self.rewriter = self.rewriter, None
        if rewriter is not None:
            self.data(rewriter.finish())
        if self.chunked:
            self.client.write(b"0\r\n\r\n")
        self.client.answered(keep=not self.ends_connection)

    def _framing(self, head: ResponseHead) -> list[tuple[str, str]]:
        told = {name.lower(): value for name, value in head.headers}
        if "content-length" in told:
            return [("Content-Length", told["content-length"])]
        if self.request.method == "HEAD" or head.status in _BODILESS:
            return []
        # One with a length could not be made shorter; such a stream never has one in practice.
        if media_type(told.get("content-type")) == SSE_TYPE and "content-encoding" not in told:
            self.rewriter = _EndpointRewriter(self.server)
        if self.request.modern:
            self.chunked = True
            return [("Transfer-Encoding", "chunked")]
        self.ends_connection = True
        return []


class _EndpointRewriter:
    """The old transport names the URL for POSTs in its first event: let it lead through us.

    Everything else passes as it is. Only a beginning that may become that event is held back,
    and no longer than until its blank line has come.
    """

    def __init__(self, server: Origin) -> None:
        self._server = server
        self._start: bytes | None = b""

    def feed(self, piece: bytes) -> bytes:
        if self._start is None:
            return piece
        self._start += piece
        if not any(wanted.startswith(self._start[: len(wanted)]) for wanted in _ENDPOINT):
            return self.finish()
        end = _BLANK_LINE.search(self._start)
        if end is None:
            return b"" if len(self._start) < _HELD_BACK else self.finish()
        event, rest = self._start[: end.end()], self._start[end.end() :]
        self._start = None
        return (
            _DATA.sub(
                lambda line: (
                    line[1] + through_us(line[2].decode("latin-1"), self._server).encode("latin-1")
                ),
                event,
                count=1,
            )
            + rest
        )

    def finish(self) -> bytes:
        start, self._start = self._start, None
        return start or b""


# -- One request on its way to the server, and its answer on its way back ------------------------

CONNECT_SECONDS = 10.0
_HELD_BACK = 64 * 1024


class ProxiedExchange:
    """Alive until the client was answered, refused or cut off, or `close` was called."""

    def __init__(self, head: RequestHead, client: DownstreamConnection, proxy: HttpProxy) -> None:
        self._client = client
        self._proxy = proxy
        self._server = proxy.server
        self._record = ExchangeRecord(proxy.book, head, proxy.server)
        self._answer = AnswerWriter(head, client, proxy.server)
        self._chunked = head.header("transfer-encoding") is not None
        self._wire = bytearray(upstream_head(head, proxy.server, proxy.origin, proxy.headers))
        self._reader = ResponseReader(head.method, DEFAULT_LIMITS.header_bytes)
        self.request_done = False
        """Whether the whole request has come from the client."""
        self._addresses = list(proxy.addresses)
        self._connection: SocketConnection | None = None
        self._began = time.monotonic()

    def start(self) -> None:
        self._connect(WireError(ErrorKind.CONNECTION_REFUSED, "it has no address"))

    # -- towards the server ----------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether the client has seen the beginning of an answer."""
        return self._answer.began

    @property
    def wants_more(self) -> bool:
        """Whether there is more of the body, and the server keeps up with it."""
        unsent = self._connection is not None and self._connection.has_unsent
        return not self.request_done and not unsent and len(self._wire) < _HELD_BACK

    def body(self, piece: bytes) -> None:
        self._record.body(piece)
        self._wire += b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
        self._push()

    def finish_request(self) -> None:
        self._record.sent()
        self.request_done = True
        if self._chunked:
            self._wire += b"0\r\n\r\n"
        self._push()

    def _connect(self, why: WireError) -> None:
        while self._addresses:
            try:
                sock, connected = start_connect(self._addresses.pop(0))
                self._connection = SocketConnection(
                    self._server, sock, connected=connected, tls=self._proxy.tls
                )
            except OSError as error:  # also out of descriptors, or a family that is not there
                why = WireError(ErrorKind.CONNECTION_REFUSED, error.strerror or str(error))
            except PeerError as error:
                why = WireError(error.kind, error.message)
            else:
                self._push()
                return
        self._broken(WireError(why.kind, f"can't connect to {self._server}: {why.detail}"))

    def _push(self) -> None:
        connection = self._connection
        if connection is None:
            return
        if connection.established and self._wire and not connection.has_unsent:
            data = bytes(self._wire)
            self._wire.clear()
            connection.write(data)
        self.rewatch()

    def rewatch(self) -> None:
        """Wait for what can be used now; called when the client took some of its answer, too."""
        connection = self._connection
        if connection is None:
            return
        paused = connection.established and self._client.is_full
        events = connection.events & ~READ if paused else connection.events
        if events:
            self._proxy.loop.watch(connection.sock.fileno(), events, self._ready)
        else:  # a server that has gone meanwhile would wake us again and again
            self._proxy.loop.ignore(connection.sock.fileno())

    def check_time(self) -> None:
        connection = self._connection
        late = time.monotonic() - self._began > CONNECT_SECONDS
        if connection is not None and not connection.established and late:
            self._drop()
            why = f"could not connect to {self._server} within {CONNECT_SECONDS:g}s"
            self._broken(WireError(ErrorKind.TIMEOUT, why))

    def close(self, why: str) -> None:
        """The client is not there any more, or we are about to leave."""
        if self._connection is not None:
            self._drop()
            self._record.cut(why)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._proxy.loop.ignore(connection.sock.fileno())
            connection.close()

    # -- from the server -------------------------------------------------------------------

    def _ready(self, events: int) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if not connection.establish():
                self.rewatch()
                return
            if connection.has_unsent:
                connection.flush()
            self._push()
            if events & (READ | GONE):
                self._read(connection)
        except WireError as lost:
            connecting = not connection.established
            self._drop()
            if connecting:
                self._connect(lost)
            else:
                self._broken(lost)
            return
        if self._connection is not None:
            self.rewatch()
            if self.wants_more:
                self._client.go_on()

    def _read(self, connection: SocketConnection) -> None:
        while True:
            data = connection.read()
            if data is None:
                return
            if not data:
                self._reader.finish()
                if self._reader.fault is None:
                    self._finish()
                else:
                    self._drop()
                    self._broken(self._reader.fault)
                return
            self._take(data)
            # What TLS has decrypted already would not wake us up again.
            if self._connection is None or not connection.buffers:
                return

    def _take(self, data: bytes) -> None:
        for event in self._reader.feed(data):
            if self._connection is None:
                return  # the client hung up when it was given what came before
            if isinstance(event, ResponseHead):
                self._record.head(event)
                self._answer.head(event, request_done=self.request_done)
            elif isinstance(event, bytes):
                self._record.data(event)
                self._answer.data(event)
            else:
                self._finish()
        if self._reader.fault is not None and self._connection is not None:
            fault = self._reader.fault
            self._drop()
            self._broken(fault)

    def _finish(self) -> None:
        self._drop()
        self._record.end(self._reader.rest)
        self._answer.finish()

    def _broken(self, fault: WireError) -> None:
        self._record.fail(fault.kind, fault.detail, fault.excerpt)
        if self.is_answering:
            self._client.cut()
        else:
            self._client.refuse(502, f"{self._server}: {fault.detail}")


# -- One client of an HTTP proxy -----------------------------------------------------------------

_FULL = 256 * 1024
_LEFT = "the client left"


class DownstreamConnection(AcceptedConnection):
    """Reads requests, gives each to an exchange, and writes what the exchange brings."""

    stall_seconds = 120.0

    def __init__(self, sock: socket.socket, proxy: HttpProxy, closed: Forget) -> None:
        self._proxy = proxy
        self._exchange: ProxiedExchange | None = None
        self._is_pulling = False
        super().__init__(proxy.loop, sock, closed)

    # -- what an exchange brings -----------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return len(self._out) >= _FULL

    @property
    def is_busy(self) -> bool:
        return self._exchange is not None

    @property
    def waits_for_request(self) -> bool:
        exchange = self._exchange
        return super().waits_for_request if exchange is None else exchange.wants_more

    def answered(self, *, keep: bool) -> None:
        """The answer is complete."""
        self._exchange = None
        self._since = time.monotonic()
        if not keep:
            self._end_after_this()
            self._rewatch()
        else:
            self.go_on()

    def refuse(self, status: int, why: str) -> None:
        """Answer for the server, in one line, and hang up."""
        self._exchange = None
        line = f"mcptest proxy: {why}\n".encode("utf-8", "backslashreplace")
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(line)}\r\n"
            "Connection: close\r\n\r\n"
        )
        self.write(head.encode("ascii") + line)
        self._end_after_this()
        self._rewatch()

    def cut(self) -> None:
        """The answer broke off: the client has to see that."""
        self._exchange = None
        self.close()

    # -- the requests ----------------------------------------------------------------------

    def go_on(self) -> None:
        """Take what has been read of the next request, as far as it can be passed on."""
        if self._is_pulling:
            return  # called from within: the loop below goes on by itself
        self._is_pulling = True
        try:
            while self.open and not self._closing:
                exchange = self._exchange
                if exchange is not None and not exchange.wants_more:
                    break
                event = self._reader.next_event()
                if event is None:
                    if self._reader.fault is not None:
                        raise RefusedRequest(self._reader.refusal_status, self._reader.fault.detail)
                    break
                self._take(event)
        except RefusedRequest as refused:
            self._turn_away(refused)
        finally:
            self._is_pulling = False
        self._rewatch()

    def _take(self, event: RequestHead | bytes | EndOfMessage) -> None:
        if isinstance(event, RequestHead):
            check_sender(event)
            self._exchange = ProxiedExchange(event, self, self._proxy)
            self._exchange.start()
        elif self._exchange is None:
            pass  # the rest of a request that could not be passed on
        elif isinstance(event, bytes):
            self._exchange.body(event)
        else:
            self._exchange.finish_request()

    def _turn_away(self, refused: RefusedRequest) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            why = f"{refused.status}: {refused.why}"
            self._proxy.book.note(f"a request was refused with {why}")
        else:
            exchange.close(f"the rest of the request is unreadable: {refused.why}")
        if exchange is not None and exchange.is_answering:
            self.close()
        else:
            self.refuse(refused.status, refused.why)

    # -- the socket ------------------------------------------------------------------------

    def came(self, data: bytes) -> None:
        if self._exchange is not None and not self._exchange.request_done:
            self._since = time.monotonic()  # each further piece of a body has its own time
        self._reader.feed(data)
        self.go_on()

    def _flush(self) -> None:
        super()._flush()
        if self._exchange is not None and not self.is_full:
            self._exchange.rewatch()

    def _check_time(self) -> None:
        super()._check_time()
        if self._exchange is not None:
            self._exchange.check_time()

    def gone(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            is_ours = self._proxy.is_closing
            exchange.close("still open when the proxy was stopped" if is_ours else _LEFT)


# -- Sitting on loopback between HTTP clients and a server ---------------------------------------


class HttpProxy:
    """Listens from the moment it is made; serves while `run` runs."""

    def __init__(
        self,
        url: Url,
        book: SessionBook,
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        headers: Mapping[str, str] = NO_HEADERS,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self.book = book
        self.headers = headers
        """Those that go along with every request."""
        self._flush = flush
        self.is_closing = False
        self.loop = Loop()
        self.server = url.origin
        self.addresses = usable_addresses(url.origin, Deadline.after(CONNECT_SECONDS))
        try:
            self._listener = Listener(self.loop, listen, self._connect)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"can't listen on {listen[0]}, port {listen[1]}: {reason}") from None
        port = self._listener.port
        self.origin = Origin("http", listen[0], port)
        self.url = f"{self.origin}{url.target}"
        if url.origin.port == port and url.origin.host in LOOPBACK:
            self._listener.close()
            raise UsageError(f"the proxy would be its own server: {url.origin}")
        self.tls = default_tls(url.origin)
        self._wake, self._stop = os.pipe()
        self.loop.watch(self._wake, READ, lambda events: self.loop.stop())

    def run(self, until: Deadline | None = None) -> bool:
        """Serve until `stop` is called; True when `until` has passed instead."""
        while not self.loop.stopped and not (until is not None and until.expired):
            self._flush()
            self.loop.turn(until.remaining() if until is not None else math.inf)
        return not self.loop.stopped

    def stop(self) -> None:
        """May be called from a signal handler or another thread."""
        with contextlib.suppress(OSError):  # gone already
            os.write(self._stop, b".")

    def close(self) -> None:
        """Cut off whoever is still there, and let go of the port."""
        self.is_closing = True
        self._listener.close()
        self._flush()
        os.close(self._wake)
        os.close(self._stop)

    def _connect(self, sock: socket.socket, forget: Forget) -> DownstreamConnection:
        return DownstreamConnection(sock, self, forget)
