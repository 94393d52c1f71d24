"""The HTTP+SSE transport of 2024-11-05: one stream down, and a place to POST to."""

from __future__ import annotations

import os

from mcptest.peer.demo.exchange import SharedStream
from mcptest.peer.demo.handshake import Batch, Session, check_batch, check_new_request
from mcptest.peer.demo.http_connection import EVENTS
from mcptest.peer.demo.http_guard import Rejected, check_accept, check_json
from mcptest.peer.demo.protocol import (
    NOTIFICATION,
    REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
)

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.exchange import InFlight
    from mcptest.peer.demo.http_connection import HttpConnection
    from mcptest.peer.demo.http_requests import Request
    from mcptest.peer.demo.protocol import Obj
    from mcptest.peer.demo.world import World

STREAM_PATH = "/sse"
POST_PATH = "/messages"


class SseClient:
    """One client: its stream carries every message of the server."""

    def __init__(self, world: World, connection: HttpConnection) -> None:
        self.identifier = os.urandom(16).hex()
        self.in_flight: InFlight = {}
        self.session = Session(world, self, self.in_flight)
        self._connection = connection

    def begin(self) -> None:
        self._connection.start_stream({})
        place = f"{POST_PATH}?session_id={self.identifier}"
        self._connection.stream(f"event: endpoint\ndata: {place}\n\n".encode())

    def send(self, message: Obj | list[Obj]) -> None:
        self._connection.stream(b"event: message\ndata: %b\n\n" % encode(message))

    def take(self, value: Any) -> None:
        if isinstance(value, list):
            check_batch(self.session, value)
            Batch(self.session, SharedStream(None, {}, self), self.in_flight).run(value)
            return
        kind = kind_of(value)
        if kind == REQUEST:
            check_new_request(value, self.in_flight)
            self.session.request(value, SharedStream(value["id"], self.in_flight, self))
        elif kind == NOTIFICATION:
            self.session.notified(value)
        else:
            self.session.answered(value)


class SseClients:
    """All clients of this transport."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._clients: dict[str, SseClient] = {}

    def get(self, request: Request, connection: HttpConnection) -> None:
        check_accept(request, EVENTS)
        client = SseClient(self._world, connection)
        self._clients[client.identifier] = client

        def gone() -> None:
            del self._clients[client.identifier]
            client.session.close()

        connection.on_gone = gone
        client.begin()

    def post(self, request: Request, connection: HttpConnection) -> None:
        check_json(request)
        client = self._clients.get(request.query.removeprefix("session_id="))
        if client is None:
            raise Rejected(404, "There is no such session")
        value: Any = None
        try:
            value = read_text(request.body)
            client.take(value)
        except Refusal as refusal:
            message = error_message(readable_id(value), refusal, client.session.null_id)
            connection.respond(400, encode(message))
        else:
            connection.respond(202)
