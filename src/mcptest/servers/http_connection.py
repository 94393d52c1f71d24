"""One HTTP client of a server of ours: its requests, who may send them, and their answers.

`HttpConnection` reads whole requests, one at a time, and writes their answers; the `check_…`
functions say who may talk to us, and in which form: Host, Origin, Accept, Content-Type.
"""

from __future__ import annotations

import time
from http import HTTPStatus

from mcptest.servers.demo.exchange import internal_error
from mcptest.servers.demo.jsonrpc import (
    INVALID_REQUEST,
    MAX_MESSAGE_BYTES,
    Refusal,
    encode,
    error_message,
)
from mcptest.transport.listener import AcceptedConnection, foreign_header
from mcptest.wire.http1 import EndOfMessage, RequestHead

TYPE_CHECKING = False

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from mcptest.transport.listener import Forget
    from mcptest.transport.loop import Loop
    from mcptest.wire.http1 import WireError


class Request:
    """One request. Names of headers are in lower case; repeated ones are joined with a comma."""

    def __init__(self, head: RequestHead, body: bytes = b"") -> None:
        self.head = head
        self.method = head.method
        self.path, _, self.query = head.target.partition("?")
        self.headers = headers_by_name(head.headers)
        self.body = body
        self.keep_alive = head.keeps_connection

    def header(self, name: str) -> str | None:
        return self.headers.get(name)


def headers_by_name(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Names in lower case; repeated ones are joined with a comma."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


# -- One HTTP connection on the loop -------------------------------------------------------------

MAX_UNSENT_BYTES = 16 * 1024 * 1024

_PHRASES = {status.value: status.phrase for status in HTTPStatus}

JSON = "application/json"
EVENTS = "text/event-stream"


class HttpConnection(AcceptedConnection):
    """Serves one request after the other: `respond` or a stream ends each."""

    read_bytes = 256 * 1024

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        handle: Callable[[Request, HttpConnection], None],
        closed: Forget,
    ) -> None:
        self._handle = handle
        self._body = bytearray()
        """What came of the body of the request that is being read."""
        self._continue_told = False
        self._request: Request | None = None
        """What is being answered."""
        self._chunked = False
        self._serving = False
        self.on_gone: Callable[[], None] | None = None
        """Called when the client leaves before it was answered."""
        self.on_head: Callable[[int, dict[str, Any]], None] | None = None
        """Told of the head of every answer: status and headers."""
        self.on_refused: Callable[[WireError, RequestHead | None], None] | None = None
        """Told of bytes that are no request: why, and the head if that much was read."""
        self.on_fed: Callable[[HttpConnection], None] | None = None
        """Told whenever bytes have come and were dealt with."""
        super().__init__(loop, sock, closed, MAX_MESSAGE_BYTES)

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
        self.write(self._head(status, fields) + (b"" if for_head else body))
        self._finish_request()

    def refuse(self, status: int, refusal: Refusal, **headers: str) -> None:
        """Answer the request with an error that belongs to no JSON-RPC id."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self.respond(status, encode(error_message(None, refusal)), headers=fields)

    def start_stream(self, headers: dict[str, str]) -> None:
        """Begin an event stream as the answer of the request."""
        assert self._request is not None, "a stream answers a request"
        self._chunked = self._request.head.modern
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
        self.write(self._head(200, fields))

    def stream(self, data: bytes) -> None:
        self.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end_stream(self) -> None:
        if self._chunked:
            self.write(b"0\r\n\r\n")
        self._finish_request()

    @property
    def is_busy(self) -> bool:
        return self._request is not None

    @property
    def held(self) -> int:
        return super().held + len(self._body)

    def came(self, data: bytes) -> None:
        self._reader.feed(data)
        self._serve_requests()
        if self.on_fed is not None and self.open:
            self.on_fed(self)

    def gone(self) -> None:
        gone, self.on_gone = self.on_gone, None
        if gone is not None:
            gone()

    def write(self, data: bytes) -> None:
        if self.open:
            super().write(data)
            if len(self._out) > MAX_UNSENT_BYTES:
                self.close()

    def _serve_requests(self) -> None:
        """Serve what was read, one request at a time; an answer may come at once or later."""
        if self._serving:
            return  # called from within: the loop below goes on by itself
        self._serving = True
        while self.open and self._request is None and not self._closing:
            request = self._next_request()
            if request is None:
                break
            self._request = request
            try:
                self._handle(request, self)
            except Exception as problem:  # noqa: BLE001  reported; costs one connection, not all
                internal_error(problem)
                self.close()
        self._serving = False

    def _next_request(self) -> Request | None:
        reader = self._reader
        while (event := reader.next_event()) is not None:
            if isinstance(event, bytes):
                self._body += event
            elif event is EndOfMessage.END:
                assert reader.head is not None, "a request ends after its head"
                request = Request(reader.head, bytes(self._body))
                self._body.clear()
                self._continue_told = False
                return request
        if reader.fault is not None:
            self._refuse_request(reader.fault)
        elif reader.head is not None and reader.head.expects_continue and not self._continue_told:
            self._continue_told = True
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    def _refuse_request(self, fault: WireError) -> None:
        """Answer what can't be read on, and hang up."""
        self._closing = True
        if self.on_refused is not None:
            self.on_refused(fault, self._reader.head)
        refusal = Refusal(INVALID_REQUEST, f"Bad request: {fault.detail}")
        self.refuse(self._reader.refusal_status, refusal)

    def _finish_request(self) -> None:
        request, self._request = self._request, None
        self.on_gone = None
        self._since = time.monotonic()
        if self._closing or (request is not None and not request.keep_alive):
            self._end_after_this()
        elif self._reader.held:
            # Not from within a callback of the old request: its owner is not done with it yet.
            self._loop.after(0, self._go_on)
        self._rewatch()

    def _go_on(self) -> None:
        if self.open:
            self._serve_requests()
            self._rewatch()

    def _head(self, status: int, fields: dict[str, Any]) -> bytes:
        if self._closing or (self._request is not None and not self._request.keep_alive):
            fields["Connection"] = "close"
        if self.on_head is not None:
            self.on_head(status, fields)
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n{lines}\r\n".encode("latin-1")


# -- Who may talk to the server, and in which form ------------------------------------------------


class Rejected(Exception):  # noqa: N818  an answer, not a defect
    """The request is answered with this status, before anyone looks at its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = Refusal(INVALID_REQUEST, message)


def check_sender(request: Request, bound_to: str) -> None:
    """Refuse what a web page of another site could send, by its own name or by DNS rebinding."""
    foreign = foreign_header(request.head.headers, bound_to)
    if foreign is not None:
        raise Rejected(403, f"Forbidden: unknown {foreign[0]}")


def check_json(request: Request) -> None:
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Rejected(415, "Content-Type must be application/json")


def check_accept(request: Request, *kinds: str) -> None:
    """Refuse a client that does not take what it may get."""
    header = request.header("accept") or ""
    accepted = {part.partition(";")[0].strip().lower() for part in header.split(",")}
    for kind in kinds:
        family = kind.partition("/")[0]
        if not accepted & {kind, f"{family}/*", "*/*"}:
            raise Rejected(406, f"Accept must list {' and '.join(kinds)}")


# -- The demo as a protected resource ------------------------------------------------------------

METADATA_PATH = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "https://auth.demo.example"
SCOPE = "demo"


def is_turned_away(request: Request, connection: HttpConnection, token: str, endpoint: str) -> bool:
    """Answer whoever has no right to more: with the metadata, or with a challenge."""
    if request.path in {METADATA_PATH, METADATA_PATH + endpoint} and request.method == "GET":
        connection.respond(200, encode(_metadata(request, endpoint)))
        return True
    if request.header("authorization") == f"Bearer {token}":
        return False
    place = f"{_origin(request)}{METADATA_PATH}{endpoint}"
    challenge = f'Bearer resource_metadata="{place}", scope="{SCOPE}"'
    connection.refuse(
        401, Refusal(INVALID_REQUEST, "A valid token is required"), WWW_Authenticate=challenge
    )
    return True


def _metadata(request: Request, endpoint: str) -> dict[str, object]:
    return {
        "resource": f"{_origin(request)}{endpoint}",
        "authorization_servers": [AUTHORIZATION_SERVER],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
    }


def _origin(request: Request) -> str:
    """As the client named us; the name was checked before."""
    return f"http://{request.header('host') or 'localhost'}"
