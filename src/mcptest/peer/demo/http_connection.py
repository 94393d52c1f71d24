"""One HTTP connection on the loop: requests in, answers and event streams out.

A client that is slow, silent or gone costs a bounded buffer and a bounded time, never a thread.
"""

from __future__ import annotations

from http import HTTPStatus
from socket import SHUT_WR

from mcptest.peer.demo.exchange import internal_error
from mcptest.peer.demo.http_requests import BadRequest, RequestReader
from mcptest.peer.demo.loop import GONE, READ, WRITE
from mcptest.peer.demo.protocol import INVALID_REQUEST, Refusal, encode, error_message

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from mcptest.peer.demo.http_requests import Request
    from mcptest.peer.demo.loop import Loop

REQUEST_SECONDS = 15
IDLE_SECONDS = 75
STALL_SECONDS = 30
LINGER_SECONDS = 2
MAX_UNSENT_BYTES = 16 * 1024 * 1024
MAX_EARLY_BYTES = 256 * 1024
"""How much of the next requests is read while one is still being answered."""
CHUNK = 256 * 1024

_PHRASES = {status.value: status.phrase for status in HTTPStatus}

JSON = "application/json"
EVENTS = "text/event-stream"


class HttpConnection:
    """Serves one request after the other: `respond` or a stream ends each."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        handle: Callable[[Request, HttpConnection], None],
        closed: Callable[[HttpConnection], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._handle = handle
        self._closed = closed
        self._reader = RequestReader()
        self._request: Request | None = None
        self._out = bytearray()
        self._chunked = False
        self._close_after = False
        self._events = 0
        self._serving = False
        self._ended = False
        self._lingering = False
        """The last answer was sent; what still comes is thrown away."""
        self.open = True
        self.on_gone: Callable[[], None] | None = None
        """Called when the client leaves before it was answered."""
        self.on_head: Callable[[int, dict[str, Any]], None] | None = None
        """Told of the head of every answer: status and headers."""
        self.on_refused: Callable[[BadRequest, Request | None, bytes], None] | None = None
        """Told of bytes that are no request: why, what was read of it, and how it begins."""
        self.on_fed: Callable[[HttpConnection], None] | None = None
        """Told whenever bytes have come and were dealt with."""
        self._timer = loop.after(IDLE_SECONDS, self.close)
        sock.setblocking(False)
        self._update_events()

    # Answering

    def respond(
        self,
        status: int,
        body: bytes = b"",
        kind: str = JSON,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer the request with one whole body."""
        fields = dict(headers or {})
        if body:
            fields["Content-Type"] = kind
        if status != HTTPStatus.NO_CONTENT:
            fields["Content-Length"] = str(len(body))
        for_head = self._request is not None and self._request.method == "HEAD"
        self._write(self._head(status, fields) + (b"" if for_head else body))
        self._finish_request()

    def refuse(self, status: int, refusal: Refusal, **headers: str) -> None:
        """Answer the request with an error that belongs to no JSON-RPC id."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self.respond(status, encode(error_message(None, refusal)), headers=fields)

    def start_stream(self, headers: dict[str, str]) -> None:
        """Begin an event stream as the answer of the request."""
        assert self._request is not None, "a stream answers a request"
        self._chunked = self._request.chunks_allowed
        fields = {
            "Content-Type": EVENTS,
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            **headers,
        }
        if self._chunked:
            fields["Transfer-Encoding"] = "chunked"
        else:
            self._request.keep_alive = False
        self._write(self._head(200, fields))

    def stream(self, data: bytes) -> None:
        self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end_stream(self) -> None:
        if self._chunked:
            self._write(b"0\r\n\r\n")
        self._finish_request()

    def close(self) -> None:
        """End the connection at once."""
        if not self.open:
            return
        self.open = False
        self._timer.cancel()
        self._loop.ignore(self._socket.fileno())
        self._socket.close()
        self._tell_gone()
        self._closed(self)

    @property
    def waits_for_client(self) -> bool:
        """Nothing is being answered: it costs a client nothing that was promised to close it."""
        return self._request is None and not self._out

    @property
    def held(self) -> int:
        """Bytes that wait here, to be read by us or by the client."""
        return self._reader.held + len(self._out)

    # The socket

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if self.open and events & (READ | GONE):
            self._read()

    def _read(self) -> None:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._read_end()
        elif not self._lingering:
            self._take(data)

    def _read_end(self) -> None:
        """The client sends no more. It may still be reading an answer that was given."""
        if self._out and self._request is None and not self._lingering:
            self._close_after = self._ended = True
            self._update_events()
        else:
            self.close()

    def _take(self, data: bytes) -> None:
        self._reader.feed(data)
        self._serve_requests()
        if self.on_fed is not None and self.open:
            self.on_fed(self)
        self._update_events()

    def _serve_requests(self) -> None:
        """Serve what was read, one request at a time; an answer may come at once or later."""
        if self._serving:
            return  # called from within: the loop below goes on by itself
        self._serving = True
        while self.open and self._request is None and not self._close_after:
            request = self._next_request()
            if request is None:
                break
            self._request = request
            self._set_timer(None)
            try:
                self._handle(request, self)
            except Exception as problem:  # noqa: BLE001  reported; costs one connection, not all
                internal_error(problem)
                self.close()
        self._serving = False

    def _next_request(self) -> Request | None:
        was_in_progress = self._reader.in_progress
        beginning = self._reader.beginning if self.on_refused is not None else b""
        try:
            request = self._reader.next()
        except BadRequest as problem:
            self._close_after = True
            if self.on_refused is not None:
                self.on_refused(problem, self._reader.unfinished, beginning)
            refusal = Refusal(INVALID_REQUEST, f"Bad request: {problem.reason}")
            self.refuse(problem.status, refusal)
            return None
        if request is None and was_in_progress:
            if self._reader.continue_wanted:
                self._reader.continue_wanted = False
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._expect_rest()
        return request

    def _write(self, data: bytes) -> None:
        if not self.open:
            return
        self._out += data
        if len(self._out) > MAX_UNSENT_BYTES:
            self.close()
        else:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                done = self._socket.send(memoryview(self._out)[:CHUNK])
                del self._out[:done]
        except BlockingIOError:
            self._set_timer(STALL_SECONDS)
        except OSError:
            self.close()
            return
        if not self._out and not self._lingering:
            if self._close_after and self._request is None:
                self._close_gently()
                return
            self._set_timer(IDLE_SECONDS if self._request is None else None)
        self._update_events()

    def _close_gently(self) -> None:
        """Let the client read the answer: closing on unread bytes would reset the connection."""
        self._lingering = True
        try:
            self._socket.shutdown(SHUT_WR)
        except OSError:
            self._ended = True
        if self._ended:
            self.close()
            return
        self._set_timer(LINGER_SECONDS)
        self._update_events()

    def _finish_request(self) -> None:
        request, self._request = self._request, None
        self.on_gone = None
        if request is not None and not request.keep_alive:
            self._close_after = True
        if not self.open or self._lingering:
            return
        if not self._out:
            if self._close_after:
                self._close_gently()
                return
            self._set_timer(IDLE_SECONDS)
        if self._reader.buffered:
            # Not from within a callback of the old request: its owner is not done with it yet.
            self._loop.after(0, self._go_on)

    def _go_on(self) -> None:
        if self.open:
            self._serve_requests()
            if self.open:
                self._update_events()

    def _update_events(self) -> None:
        if not self.open:
            return
        full = self._request is not None and self._reader.buffered > MAX_EARLY_BYTES
        events = (0 if full or self._ended else READ) | (WRITE if self._out else 0)
        if events != self._events:
            self._events = events
            self._loop.watch(self._socket.fileno(), events, self._ready)

    # Time

    def _expect_rest(self) -> None:
        """A request has begun: it has a limited time to become whole, however often bytes come."""
        if self._timer.action != self._give_up_reading:
            self._set_timer(REQUEST_SECONDS, self._give_up_reading)

    def _give_up_reading(self) -> None:
        self._close_after = True
        problem = BadRequest(408, "The request did not come in time")
        if self.on_refused is not None:
            self.on_refused(problem, self._reader.unfinished, self._reader.beginning)
        self.refuse(408, Refusal(INVALID_REQUEST, problem.reason))

    def _set_timer(self, seconds: float | None, action: Callable[[], None] | None = None) -> None:
        self._timer.cancel()
        if seconds is not None:
            self._timer = self._loop.after(seconds, action or self.close)

    def _tell_gone(self) -> None:
        gone, self.on_gone = self.on_gone, None
        if gone is not None:
            gone()

    def _head(self, status: int, fields: dict[str, Any]) -> bytes:
        if self._close_after or (self._request is not None and not self._request.keep_alive):
            fields["Connection"] = "close"
        if self.on_head is not None:
            self.on_head(status, fields)
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n{lines}\r\n".encode("latin-1")
