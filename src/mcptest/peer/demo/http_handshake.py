"""The handshake era over streamable HTTP: sessions, streams of events, and resuming them."""

from __future__ import annotations

import os
from collections import deque

from mcptest.peer.demo import versions
from mcptest.peer.demo.exchange import Exchange
from mcptest.peer.demo.handshake import Batch, Session, check_batch, check_new_request
from mcptest.peer.demo.http_connection import EVENTS
from mcptest.peer.demo.http_guard import Rejected, check_accept
from mcptest.peer.demo.protocol import (
    NOTIFICATION,
    REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
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

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
MAX_SESSIONS = 1_000
MAX_STREAMS = 64
"""Streams of one session that can still be resumed."""
MAX_KEPT_EVENTS = 256
RETRY_MS = 20
MAX_BACKLOG = 64


class Stream:
    """Events in order, with ids, for one connection at a time; kept so that it can be resumed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=MAX_KEPT_EVENTS)
        self._last = 0
        self._connection: HttpConnection | None = None
        self.finished = False

    @property
    def attached(self) -> bool:
        return self._connection is not None

    def attach(self, connection: HttpConnection, headers: dict[str, str], prime: bool) -> None:
        """Begin on a new connection. From 2025-11-25 on the first event only gives an id."""
        self._take_over(connection, headers)
        if prime:
            connection.stream(b"id: %d-0\ndata: \n\n" % self._number)

    def resume(self, connection: HttpConnection, headers: dict[str, str], after: int) -> None:
        """Go on on another connection with what came after this event."""
        self._take_over(connection, headers)
        for place, event in self._kept:
            if place > after:
                connection.stream(event)
        if self.finished:
            connection.end_stream()

    def send(self, message: Obj | list[Obj]) -> None:
        self._last += 1
        event = b"id: %d-%d\nevent: message\ndata: %b\n\n" % (
            self._number,
            self._last,
            encode(message),
        )
        self._kept.append((self._last, event))
        if self._connection is not None:
            self._connection.stream(event)

    def pause(self) -> None:
        """Let go of the connection; the client may come back for the rest after this time."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.stream(b"retry: %d\n\n" % RETRY_MS)
            connection.end_stream()

    def finish(self) -> None:
        self.finished = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end_stream()

    def _take_over(self, connection: HttpConnection, headers: dict[str, str]) -> None:
        if self._connection is not None:
            self._connection.end_stream()
        connection.start_stream(headers)
        self._connection = None if self.finished else connection

        def gone() -> None:
            if self._connection is connection:
                self._connection = None

        connection.on_gone = gone


class HttpSession:
    """One session with all its streams."""

    def __init__(self, world: World) -> None:
        self.identifier = os.urandom(16).hex()
        self.in_flight: InFlight = {}
        self.session = Session(world, self, self.in_flight)
        self._streams: dict[int, Stream] = {}
        self._last_stream = 0
        self._general: Stream | None = None
        self._backlog: deque[Obj] = deque(maxlen=MAX_BACKLOG)

    @property
    def headers(self) -> dict[str, str]:
        return {"Mcp-Session-Id": self.identifier}

    @property
    def primes(self) -> bool:
        version = self.session.version
        return version is not None and versions.since(version, versions.V2025_11_25)

    def send(self, message: Obj) -> None:
        """What belongs to no request goes to the latest GET stream, or waits for the first."""
        if self._general is None:
            self._backlog.append(message)
        else:
            self._general.send(message)

    def new_stream(self) -> Stream:
        if len(self._streams) >= MAX_STREAMS:
            # All may be in use: then there are as many as there are connections, and no more.
            idle = next((n for n, stream in self._streams.items() if not stream.attached), None)
            self._streams.pop(idle or 0, None)
        self._last_stream += 1
        stream = self._streams[self._last_stream] = Stream(self._last_stream)
        return stream

    def listen(self, connection: HttpConnection, last_event: str | None) -> None:
        """Serve a GET: resume the stream of the event that was seen last, or begin a new one."""
        number, _, place = (last_event or "").partition("-")
        if number.isdigit() and place.isdigit() and len(number) + len(place) < 30:
            known = self._streams.get(int(number))
            if known is not None:
                known.resume(connection, self.headers, int(place))
                return
        stream = self.new_stream()
        stream.attach(connection, self.headers, self.primes)
        self._general = stream
        while self._backlog:
            stream.send(self._backlog.popleft())

    def close(self) -> None:
        self.session.close()
        for stream in self._streams.values():
            stream.finish()


class Post(Exchange):
    """One POST of a session, answered with JSON or, once there is more to say, with a stream."""

    __slots__ = ("_connection", "_http_session", "_mode", "_stream")

    def __init__(
        self,
        identifier: Any,
        in_flight: InFlight,
        owner: HttpSession,
        connection: HttpConnection,
        mode: str,
    ) -> None:
        super().__init__(identifier, in_flight)
        self._http_session = owner
        self._connection: HttpConnection | None = connection
        self._mode = mode
        self._stream: Stream | None = None
        connection.on_gone = self._gone

    @property
    def can_notify(self) -> bool:  # type: ignore[override]  # decided when the server starts
        return self._mode != "json" and (self._stream is not None or self._connection is not None)

    def send(self, message: Obj | list[Obj]) -> None:
        stream = self._begin()
        if stream is not None:
            stream.send(message)

    def deliver(self, message: Obj | list[Obj]) -> None:
        if self._stream is not None or self._mode == "sse":
            self.send(message)
            self.drop()
        elif self._connection is not None:
            headers = self._http_session.headers
            self._connection.respond(200, encode(message), headers=headers)

    def drop(self) -> None:
        stream = self._begin()
        if stream is not None:
            stream.finish()

    def pause(self) -> None:
        # Without an event that gave an id, the client could not come back.
        stream = self._begin() if self._mode != "json" and self._http_session.primes else None
        if stream is not None:
            stream.pause()

    def _begin(self) -> Stream | None:
        if self._stream is None and self._connection is not None:
            self._stream = self._http_session.new_stream()
            headers = self._http_session.headers
            self._stream.attach(self._connection, headers, self._http_session.primes)
        return self._stream

    def _gone(self) -> None:
        """A lost connection is no cancellation here: the work goes on, for whoever resumes."""
        self._connection = None


class Welcome(Exchange):
    """The POST that begins a session: only a successful answer makes the session known."""

    __slots__ = ("_connection", "_mode", "_owner", "_sessions")

    def __init__(
        self,
        identifier: Any,
        owner: HttpSession,
        sessions: Sessions,
        connection: HttpConnection,
        mode: str,
    ) -> None:
        super().__init__(identifier, {})
        self._owner = owner
        self._sessions = sessions
        self._connection = connection
        self._mode = mode

    def deliver(self, message: Obj | list[Obj]) -> None:
        if "error" in message:
            self._connection.respond(400, encode(message))
            return
        self._sessions.add(self._owner)
        if self._mode == "sse":
            stream = self._owner.new_stream()
            stream.attach(self._connection, self._owner.headers, self._owner.primes)
            stream.send(message)
            stream.finish()
        else:
            self._connection.respond(200, encode(message), headers=self._owner.headers)


class Sessions:
    """All sessions of the streamable HTTP endpoint."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._mode = world.options.response
        self._sessions: dict[str, HttpSession] = {}

    def add(self, session: HttpSession) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            oldest = next(iter(self._sessions))
            self._sessions.pop(oldest).close()
        self._sessions[session.identifier] = session

    def post(self, value: Any, request: Request, connection: HttpConnection) -> None:
        begins = isinstance(value, dict) and value.get("method") == "initialize"
        if begins and request.header(SESSION_HEADER) is None and kind_of(value) == REQUEST:
            self._initialize(value, request, connection)
            return
        owner = self._find(request)
        try:
            self._take(value, owner, connection)
        except Refusal as refusal:
            null_id = owner.session.null_id
            body = encode(error_message(readable_id(value), refusal, null_id))
            connection.respond(400, body, headers=owner.headers)

    def get(self, request: Request, connection: HttpConnection) -> None:
        check_accept(request, EVENTS)
        self._find(request).listen(connection, request.header("last-event-id"))

    def delete(self, request: Request, connection: HttpConnection) -> None:
        session = self._find(request)
        del self._sessions[session.identifier]
        session.close()
        connection.respond(200)

    def _initialize(self, value: Obj, request: Request, connection: HttpConnection) -> None:
        _check_version_header(request, None)
        owner = HttpSession(self._world)
        owner.session.request(value, Welcome(value["id"], owner, self, connection, self._mode))

    def _find(self, request: Request) -> HttpSession:
        identifier = request.header(SESSION_HEADER)
        if identifier is None:
            raise Rejected(400, "Mcp-Session-Id is missing; begin with initialize")
        session = self._sessions.pop(identifier, None)
        if session is None:
            raise Rejected(404, "There is no such session")
        self._sessions[identifier] = session  # now the one used last
        _check_version_header(request, session.session.version)
        return session

    def _take(self, value: Any, owner: HttpSession, connection: HttpConnection) -> None:
        session = owner.session
        if isinstance(value, list):
            check_batch(session, value)
            self._take_batch(value, owner, connection)
            return
        kind = kind_of(value)
        if kind == REQUEST:
            check_new_request(value, owner.in_flight)
            post = Post(value["id"], owner.in_flight, owner, connection, self._mode)
            session.request(value, post)
            return
        if kind == NOTIFICATION:
            session.notified(value)
        else:
            session.answered(value)
        connection.respond(202, headers=owner.headers)

    def _take_batch(self, items: list[Any], owner: HttpSession, connection: HttpConnection) -> None:
        if any(_wants_answer(item) for item in items):
            parent = Post(None, {}, owner, connection, self._mode)
            Batch(owner.session, parent, owner.in_flight).run(items)
            return
        for item in items:
            take = owner.session.notified if "method" in item else owner.session.answered
            take(item)
        connection.respond(202, headers=owner.headers)


def _wants_answer(item: Any) -> bool:
    try:
        return kind_of(item) == REQUEST
    except Refusal:
        return True


def _check_version_header(request: Request, negotiated: str | None) -> None:
    """Refuse a version that is unknown, or not the one that the session agreed on."""
    given = request.header(VERSION_HEADER)
    if given is None:
        return  # 2025-03-26 and earlier have no such header
    if given not in versions.HANDSHAKE or negotiated not in {None, given}:
        known = negotiated or ", ".join(versions.HANDSHAKE)
        raise Rejected(400, f"MCP-Protocol-Version must be {known}")
