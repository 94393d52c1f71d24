"""The scripted server over HTTP: where it listens, who may come in, and what a script is told.

It listens on loopback only, on ports that the system chooses. Whoever comes with a foreign Host or
Origin is recorded and sent away. Whatever a client sends costs bounded time and memory.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from mcptest.model.errors import ErrorKind
from mcptest.model.limits import MEBIBYTE
from mcptest.model.revision import Revision
from mcptest.peer.demo.http_connection import HttpConnection
from mcptest.peer.demo.http_guard import Rejected, check_sender
from mcptest.peer.demo.http_listener import Listener
from mcptest.peer.demo.http_requests import BadRequest, Request
from mcptest.peer.demo.protocol import (
    INVALID_REQUEST,
    NOTIFICATION,
    REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
)
from mcptest.peer.scripted.performance import Performance
from mcptest.peer.scripted.script import MCP, Obj, Stage
from mcptest.peer.scripted.visits import WAITING, Batch, HttpCall, HttpEvents, HttpVisit

NAME = "localhost"
IPV4, IPV6 = "127.0.0.1", "::1"
HELD_BYTES = 32 * MEBIBYTE
"""What all connections may have in their buffers together."""
LARGE = 256 * 1024
MAX_BATCH = 1_000
_TRIES = 8
_KINDS = {
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.BODY_TOO_LARGE,
    431: ErrorKind.HEADERS_TOO_LARGE,
}


class ScriptedSite(Stage):
    """All origins of one script, for one client."""

    transport = "http"

    def __init__(
        self,
        performance: Performance,
        offered: Collection[Revision],
        port: int = 0,
        *,
        asks_for_capabilities: bool = True,
    ) -> None:
        """Listens at once, and lets the script begin. `port` is that of the first origin."""
        self.offered = tuple(sorted(offered))
        self.revision = self.offered[-1]
        self.asks_for_capabilities = asks_for_capabilities
        self._performance = performance
        self._script = performance.script
        self._tape = performance.tape
        self._listeners: list[Listener] = []
        self._ports: dict[str, int] = {}
        self._general: list[HttpEvents] = []
        try:
            for origin in self._script.origins:
                self._ports[origin] = self._listen(origin, port)
                port = 0
        except OSError:
            self.close()
            raise
        self._tape.origins({origin: self.url(origin) for origin in self._ports})
        performance.play(self._script.begin, self)

    # What a script may do

    def url(self, origin: str = MCP) -> str:
        return f"http://{NAME}:{self._ports[origin]}"

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self._performance.later(seconds, action)

    def note(self, text: str) -> None:
        self._tape.note(text)

    def send(self, message: Obj | bytes) -> bool:
        self._general = [events for events in self._general if events.is_open]
        if not self._general:
            return False
        self._general[-1].message(message)
        return True

    @property
    def urls(self) -> dict[str, str]:
        return {origin: self.url(origin) for origin in self._ports}

    def close(self) -> None:
        self._performance.end()
        for listener in self._listeners:
            listener.close()

    # Listening

    def _listen(self, origin: str, port: int) -> int:
        """On both loopback addresses: `localhost` is the one or the other, as the client likes."""
        for _ in range(_TRIES):
            first = self._listener(origin, IPV4, port)
            try:
                second = self._listener(origin, IPV6, first.port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # there is no IPv6 here
                    self._listeners.append(first)
                    return first.port
                first.close()
                if port:
                    raise
                continue
            self._listeners += [first, second]
            return first.port
        raise OSError(errno.EADDRINUSE, "no port is free on both loopback addresses")

    def _listener(self, origin: str, host: str, port: int) -> Listener:
        handle = partial(self._handle, origin)
        greet = partial(self._greet, origin)
        return Listener(self._performance.loop, handle, host, port, greet, makes_room=True)

    def _greet(self, origin: str, connection: HttpConnection) -> None:
        connection.on_refused = partial(self._refused, origin, connection)
        connection.on_fed = self._fed

    def _refused(
        self,
        origin: str,
        connection: HttpConnection,
        problem: BadRequest,
        request: Request | None,
        beginning: bytes,
    ) -> None:
        """Bytes that are no request of HTTP: they are recorded, and answered by the connection."""
        kind = _KINDS.get(problem.status, ErrorKind.BAD_HTTP)
        stream = self._tape.new_stream() if request is not None else None
        connection.on_head = None
        if request is not None and stream is not None:
            url = self.url(origin) + request.target
            self._tape.request(stream, request.method, url, request.header_lines)
            connection.on_head = partial(self._tape.response, stream)
        self._tape.trouble(kind, problem.reason, beginning, stream)

    def _fed(self, connection: HttpConnection) -> None:
        if connection.held < LARGE:
            return
        held = sum(one.held for listener in self._listeners for one in listener.connections)
        if held > HELD_BYTES:
            detail = f"all connections together hold more than {HELD_BYTES} bytes"
            self._tape.trouble(ErrorKind.BODY_TOO_LARGE, detail)
            connection.close()

    # Requests

    def _handle(self, origin: str, request: Request, connection: HttpConnection) -> None:
        url = self.url(origin) + request.target
        visit = HttpVisit(self._performance, connection, request, origin, url)
        try:
            check_sender(request, IPV4)
        except Rejected as rejected:
            visit.remark(f"refused: {rejected.refusal.message}")
            visit.respond(rejected.status, error_message(None, rejected.refusal))
            return
        if not self._performance.play(self._script.visit, visit) and visit.state == WAITING:
            self._route(visit)

    def _route(self, visit: HttpVisit) -> None:
        if self._performance.over:
            visit.cut()
        elif visit.origin != MCP or visit.path != (self._script.endpoint or "/"):
            visit.respond(404, error_message(None, Refusal(INVALID_REQUEST, "Not found")))
        elif visit.method == "POST":
            self._post(visit)
        elif visit.method == "GET" and not self.stateless:
            events = visit.stream()
            assert isinstance(events, HttpEvents), "this is how a visit makes them"
            self._general.append(events)
        else:
            allowed = "POST" if self.stateless else "GET, POST"
            refusal = Refusal(INVALID_REQUEST, f"{visit.method} is not allowed here")
            visit.respond(405, error_message(None, refusal), headers={"Allow": allowed})

    def _post(self, visit: HttpVisit) -> None:
        value: Any = None
        try:
            value = read_text(visit.body)
            if isinstance(value, list):
                self._batch(visit, value)
            else:
                self._message(visit, value, kind_of(value))
        except Refusal as refusal:
            if self._performance.play(self._script.broken, visit.body):
                if visit.state == WAITING:
                    visit.respond(202)
            else:
                visit.respond(400, encode(error_message(readable_id(value), refusal)))

    def _message(self, visit: HttpVisit, value: Obj, kind: str) -> None:
        if kind == REQUEST:
            self._performance.play(self._script.request, HttpCall(visit, value))
        elif self.stateless and kind != NOTIFICATION:
            raise Refusal(INVALID_REQUEST, "Invalid request: a client sends no responses")
        else:
            visit.respond(202)
            self._tell(value, kind)

    def _batch(self, visit: HttpVisit, values: list[Any]) -> None:
        if self.revision is not Revision.V2025_03_26:
            raise Refusal(INVALID_REQUEST, "Invalid request: there are no batches")
        if not 0 < len(values) <= MAX_BATCH:
            raise Refusal(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages")
        kinds = [kind_of(value) for value in values]
        asked = kinds.count(REQUEST)
        batch = Batch(visit, asked) if asked else None
        for value, kind in zip(values, kinds, strict=True):
            if kind == REQUEST:
                self._performance.play(self._script.request, HttpCall(visit, value, batch))
            else:
                self._tell(value, kind)
        if batch is None:
            visit.respond(202)

    def _tell(self, value: Obj, kind: str) -> None:
        script = self._script
        self._performance.play(script.notified if kind == NOTIFICATION else script.answered, value)
