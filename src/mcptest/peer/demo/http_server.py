"""The demo over HTTP: who listens where, and which part serves which request."""

from __future__ import annotations

import os
import sys

from mcptest.peer.demo.http_connection import EVENTS, JSON
from mcptest.peer.demo.http_guard import Rejected, check_accept, check_json, check_sender
from mcptest.peer.demo.http_handshake import VERSION_HEADER, Sessions
from mcptest.peer.demo.http_listener import Listener
from mcptest.peer.demo.http_sse import POST_PATH, STREAM_PATH, SseClients
from mcptest.peer.demo.http_stateless import serve_post
from mcptest.peer.demo.loop import Loop
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
from mcptest.peer.demo.stateless import is_stateless
from mcptest.peer.demo.versions import STATELESS
from mcptest.peer.demo.world import World

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.content import Content
    from mcptest.peer.demo.http_connection import HttpConnection
    from mcptest.peer.demo.http_requests import Request
    from mcptest.peer.demo.options import Options

ENDPOINT = "/mcp"


class Site:
    """Routes requests to the era and transport that they belong to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._options = world.options
        self._sessions = Sessions(world)
        self._sse_clients = SseClients(world)

    def handle(self, request: Request, connection: HttpConnection) -> None:
        try:
            check_sender(request, self._options.host)
            token = self._options.token
            if token is not None and self._turned_away(request, connection, token):
                return
            self._route(request, connection)
        except Rejected as rejected:
            connection.refuse(rejected.status, rejected.refusal)

    def _turned_away(self, request: Request, connection: HttpConnection, token: str) -> bool:
        from mcptest.peer.demo.http_auth import is_turned_away

        return is_turned_away(request, connection, token, ENDPOINT)

    def _route(self, request: Request, connection: HttpConnection) -> None:
        secret = self._options.secret
        old = bool(self._world.handshake) and not secret
        if secret:
            if not _is_below(secret, request.path):
                raise Rejected(404, "There is nothing here")
            self._endpoint(request, connection)
        elif request.path == ENDPOINT:
            self._endpoint(request, connection)
        elif request.path == STREAM_PATH and old:
            self._only("GET", request, connection, self._sse_clients.get)
        elif request.path == POST_PATH and old:
            self._only("POST", request, connection, self._sse_clients.post)
        else:
            raise Rejected(404, f"There is nothing here; the endpoint is {ENDPOINT}")

    def _only(self, method: str, request: Request, connection: HttpConnection, serve: Any) -> None:
        if request.method == method:
            serve(request, connection)
        else:
            connection.refuse(405, _not_allowed(request), Allow=method)

    def _endpoint(self, request: Request, connection: HttpConnection) -> None:
        has_sessions = self._world.handshake and not self._names_stateless(request)
        if request.method == "POST":
            self._post(request, connection)
        elif has_sessions and request.method == "GET":
            self._sessions.get(request, connection)
        elif has_sessions and request.method == "DELETE":
            self._sessions.delete(request, connection)
        else:
            allowed = "GET, POST, DELETE" if has_sessions else "POST"
            connection.refuse(405, _not_allowed(request), Allow=allowed)

    def _post(self, request: Request, connection: HttpConnection) -> None:
        check_json(request)
        check_accept(request, JSON, EVENTS)
        value: Any = None
        try:
            value = read_text(request.body)
            if self._is_stateless(value, request):
                self._stateless_post(value, request, connection)
            else:
                self._sessions.post(value, request, connection)
        except Refusal as refusal:
            connection.respond(400, encode(error_message(readable_id(value), refusal)))

    def _stateless_post(self, value: Any, request: Request, connection: HttpConnection) -> None:
        if isinstance(value, list):
            raise Refusal(INVALID_REQUEST, "Invalid request: there are no batches")
        kind = kind_of(value)
        if kind == REQUEST:
            serve_post(value, request, connection, self._world)
        elif kind == NOTIFICATION:
            connection.respond(202)
        else:
            raise Refusal(INVALID_REQUEST, "Invalid request: a client sends no responses")

    def _is_stateless(self, value: Any, request: Request) -> bool:
        if not (self._world.stateless and self._world.handshake):
            return bool(self._world.stateless)
        return self._names_stateless(request) or (isinstance(value, dict) and is_stateless(value))

    def _names_stateless(self, request: Request) -> bool:
        return bool(self._world.stateless) and request.header(VERSION_HEADER) in STATELESS


def run_http(options: Options, content: Content | None = None) -> int:
    """Serve until a signal comes."""
    loop = Loop()
    loop.stop_on_signals()
    world = World(options, loop, content)
    try:
        listener = Listener(loop, Site(world).handle, options.host, options.port)
    except OSError as error:
        why = error.strerror or error
        sys.stderr.write(f"{world.content.name}: can't listen on {options.host}: {why}\n")
        return 2
    try:
        _announce(options, listener.port)
        loop.run()
        world.end_subscriptions()
    finally:
        listener.close()
        world.close()
    return 0


def _announce(options: Options, port: int) -> None:
    if options.port_file is not None:
        partial = f"{options.port_file}.{os.getpid()}.partial"
        with open(partial, "w", encoding="ascii") as file:  # noqa: PTH123  pathlib costs start-up
            file.write(f"{port}\n")
        os.replace(partial, options.port_file)  # noqa: PTH105  as above
    host = f"[{options.host}]" if ":" in options.host else options.host
    below = f"/{options.shown_secret}" if options.shown_secret else ""
    sys.stderr.write(f"listening on http://{host}:{port}{below}{ENDPOINT}\n")
    sys.stderr.flush()


def _is_below(secret: str, path: str) -> bool:
    import hmac

    # In constant time: how long a wrong path takes must not say how much of it is right.
    return hmac.compare_digest(path.encode(), f"/{secret}{ENDPOINT}".encode())


def _not_allowed(request: Request) -> Refusal:
    return Refusal(INVALID_REQUEST, f"{request.method} is not allowed here")
