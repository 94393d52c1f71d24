"""An answer on its way to the client of a proxy: framed anew, otherwise as it came."""

from __future__ import annotations

import re
from typing import Protocol

from mcptest.transport.proxy_guard import downstream_fields, through_us
from mcptest.transport.proxy_requests import RequestHead
from mcptest.transport.url import Origin
from mcptest.wire.http1 import Head
from mcptest.wire.http_rules import SSE_TYPE, media_type

_HELD_BACK = 64 * 1024
_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ENDPOINT = (b"event: endpoint", b"event:endpoint")
_DATA = re.compile(rb"(?m)^(data:[ ]?)([^\r\n]*)")
_BODILESS = frozenset({204, 304})


class Downstream(Protocol):
    """The client's connection, as an exchange sees it."""

    @property
    def is_full(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    def answered(self, *, keep: bool) -> None:
        """The answer is complete."""

    def refuse(self, status: int, why: str) -> None:
        """There will be no answer of the server."""

    def cut(self) -> None:
        """The answer broke off: the client has to see that."""

    def go_on(self) -> None:
        """More of the request can be taken now."""


class AnswerWriter:
    """Writes one answer. Who closes the connection when is decided with its head."""

    def __init__(self, request: RequestHead, client: Downstream, server: Origin) -> None:
        self._request = request
        self._client = client
        self._server = server
        self.began = False
        """Whether the client has seen anything of it."""
        self.ends_connection = False
        self._chunked = False
        self._rewriter: _EndpointRewriter | None = None

    def head(self, head: Head, *, request_done: bool) -> None:
        start = f"HTTP/1.1 {head.status} {head.reason}\r\n"
        if head.status < 200:
            if self._request.modern:
                self._client.write(f"{start}\r\n".encode("latin-1"))
            return
        self.began = True
        # What is left of a request that is answered early can't be told from the next one.
        self.ends_connection = not request_done or not self._request.keeps_connection
        fields = [*downstream_fields(head.headers, self._server), *self._framing(head)]
        if self.ends_connection:
            fields.append(("Connection", "close"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self._client.write(f"{start}{lines}\r\n".encode("latin-1"))

    def data(self, piece: bytes) -> None:
        self._send(self._rewriter.feed(piece) if self._rewriter is not None else piece)

    def finish(self) -> None:
        if self._rewriter is not None:
            self._send(self._rewriter.finish())
        if self._chunked:
            self._client.write(b"0\r\n\r\n")
        self._client.answered(keep=not self.ends_connection)

    def _framing(self, head: Head) -> list[tuple[str, str]]:
        told = {name.lower(): value for name, value in head.headers}
        if "content-length" in told:
            return [("Content-Length", told["content-length"])]
        if self._request.method == "HEAD" or head.status in _BODILESS:
            return []
        # One with a length could not be made shorter; such a stream never has one in practice.
        if media_type(told.get("content-type")) == SSE_TYPE and "content-encoding" not in told:
            self._rewriter = _EndpointRewriter(self._server)
        if self._request.modern:
            self._chunked = True
            return [("Transfer-Encoding", "chunked")]
        self.ends_connection = True
        return []

    def _send(self, piece: bytes) -> None:
        if piece:
            framed = b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
            self._client.write(framed)


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
        return _DATA.sub(self._through_us, event, count=1) + rest

    def finish(self) -> bytes:
        start, self._start = self._start, None
        return start or b""

    def _through_us(self, match: re.Match[bytes]) -> bytes:
        endpoint = through_us(match[2].decode("latin-1"), self._server)
        return match[1] + endpoint.encode("latin-1")
