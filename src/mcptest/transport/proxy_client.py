"""One client of an HTTP proxy: its requests one after the other, its answers as they come.

A client that is slow, silent or gone costs a bounded buffer and a bounded time, never a thread.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from http import HTTPStatus

from mcptest.transport.proxy_exchange import Exchange, Watch
from mcptest.transport.proxy_guard import check_sender
from mcptest.transport.proxy_requests import RefusedRequest, RequestHead, RequestReader
from mcptest.wire.http1 import End

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
REQUEST_SECONDS = 15.0
"""For a head to become whole, and for each further piece of a body."""
IDLE_SECONDS = 75.0
STALL_SECONDS = 120.0
LINGER_SECONDS = 2.0
_FULL = 256 * 1024
_EARLY = 64 * 1024
"""How much of the next requests is read while one is still being answered."""
_CHUNK = 64 * 1024


class Client:
    """Reads requests, gives each to an exchange, and writes what the exchange brings."""

    def __init__(
        self,
        sock: socket.socket,
        watch: Watch,
        begin: Callable[[RequestHead, Client], Exchange],
        *,
        refused: Callable[[str], None],
        closed: Callable[[Client], None],
    ) -> None:
        self._sock = sock
        self._watch = watch
        self._begin = begin
        self._refused = refused
        self._closed = closed
        self._reader = RequestReader()
        self._exchange: Exchange | None = None
        self._request_done = False
        self._out = bytearray()
        self._closing = False
        """No further request is read: the connection ends with what is in `_out`."""
        self._lingering = False
        self._since = time.monotonic()
        """When there was progress last."""
        self._is_pulling = False
        self.open = True
        sock.setblocking(False)
        self._rewatch()

    # -- what an exchange brings -----------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return len(self._out) >= _FULL

    def write(self, data: bytes) -> None:
        self._out += data
        self._flush()

    def answered(self, *, keep: bool) -> None:
        self._exchange = None
        self._request_done = False
        self._since = time.monotonic()
        if not keep:
            self._end_after_this()
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

    def cut(self) -> None:
        self._exchange = None
        self.close()

    # -- the requests ----------------------------------------------------------------------

    def go_on(self) -> None:
        """Take what has been read of the next request, as far as it can be passed on."""
        if self._is_pulling:
            return  # called from within: the loop below goes on by itself
        self._is_pulling = True
        try:
            while self._may_pull() and (event := self._reader.next()) is not None:
                self._take(event)
        except RefusedRequest as refused:
            self._turn_away(refused)
        finally:
            self._is_pulling = False
        self._rewatch()

    def _may_pull(self) -> bool:
        if not self.open or self._closing:
            return False
        if self._exchange is None:
            return True
        return not self._request_done and self._exchange.wants_more

    def _take(self, event: RequestHead | bytes | End) -> None:
        if isinstance(event, RequestHead):
            check_sender(event)
            self._exchange = self._begin(event, self)
            self._exchange.start()
        elif self._exchange is None:
            pass  # the rest of a request that could not be passed on
        elif isinstance(event, bytes):
            self._exchange.body(event)
        else:
            self._request_done = True
            self._exchange.finish_request()

    def _turn_away(self, refused: RefusedRequest) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            self._refused(f"a request was refused with {refused.status}: {refused.why}")
            self.refuse(refused.status, refused.why)
            return
        exchange.close(f"the request can't be read on: {refused.why}")
        if exchange.is_answering:
            self.close()
        else:
            self.refuse(refused.status, refused.why)

    # -- the socket ------------------------------------------------------------------------

    def ready(self, events: int) -> None:
        if self.open and events & WRITE:
            self._flush()
        if self.open and events & READ:
            self._read()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif not self._closing:  # else it is thrown away
            if self._reader.is_between_requests or self._request_is_body():
                self._since = time.monotonic()
            self._reader.feed(data)
            self.go_on()

    def _request_is_body(self) -> bool:
        return self._exchange is not None and not self._request_done

    def _flush(self) -> None:
        try:
            while self._out:
                sent = self._sock.send(memoryview(self._out)[:_FULL])
                del self._out[:sent]
                self._since = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if self._exchange is not None and not self.is_full:
            self._exchange.rewatch()
        if self._closing and not self._out:
            self._linger()
        self._rewatch()

    def _end_after_this(self) -> None:
        self._closing = True
        if self.open and not self._out:
            self._linger()
        self._rewatch()

    def _linger(self) -> None:
        """Let the client read the answer: closing on unread bytes would reset the connection."""
        if self._lingering:
            return
        self._lingering = True
        self._since = time.monotonic()
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()

    def _rewatch(self) -> None:
        if self.open:
            full = self._exchange is not None and self._reader.held >= _EARLY
            events = (0 if full else READ) | (WRITE if self._out else 0)
            self._watch(self._sock, events, self.ready)

    # -- time and the end ------------------------------------------------------------------

    def check_time(self, now: float) -> None:
        waited = now - self._since
        if self._lingering:
            late = waited > LINGER_SECONDS
        elif self._out:
            late = waited > STALL_SECONDS
        elif self._exchange is not None and self._request_done:
            self._exchange.check_time(now)
            return
        elif self._exchange is not None or not self._reader.is_between_requests:
            server_lags = self._exchange is not None and not self._exchange.wants_more
            if waited > REQUEST_SECONDS and not server_lags:
                self._turn_away(RefusedRequest(408, "the request did not come in time"))
            return
        else:
            late = waited > IDLE_SECONDS
        if late:
            self.close()

    def close(self, why: str = "the client left") -> None:
        """End the connection at once."""
        if not self.open:
            return
        self.open = False
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close(why)
        self._watch(self._sock, 0, None)
        self._sock.close()
        self._closed(self)
