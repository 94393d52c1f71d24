"""The demo over HTTP: sessions and their streams, and which part serves which request."""

from __future__ import annotations

import os
import sys
from collections import deque

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import ServerExchange, SharedStream
from mcptest.servers.demo.handshake_era import HandshakeSession
from mcptest.servers.demo.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOTIFICATION,
    REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
)
from mcptest.servers.demo.stateless_era import VERSION, is_stateless, serve
from mcptest.servers.demo.world import World
from mcptest.servers.http_connection import (
    EVENTS,
    JSON,
    HttpConnection,
    Rejected,
    check_accept,
    check_json,
    check_sender,
    is_turned_away,
)
from mcptest.transport.listener import Listener
from mcptest.transport.loop import Loop

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mcptest.servers.demo.exchange import InFlight
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Content
    from mcptest.servers.demo.start_options import Options
    from mcptest.servers.http_connection import Request

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
MAX_SESSIONS = 1_000
MAX_STREAMS = 64
"""Streams of one session that can still be resumed."""
MAX_KEPT_EVENTS = 256
RETRY_MS = 20
MAX_BACKLOG = 64


class ServerStream:
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
        self.session = HandshakeSession(world, self)
        self._streams: dict[int, ServerStream] = {}
        self._last_stream = 0
        self._general: ServerStream | None = None
        self._backlog: deque[Obj | list[Obj]] = deque(maxlen=MAX_BACKLOG)

    @property
    def headers(self) -> dict[str, str]:
        return {"Mcp-Session-Id": self.identifier}

    @property
    def primes(self) -> bool:
        version = self.session.version
        return version is not None and versions.since(version, versions.V2025_11_25)

    def send(self, message: Obj | list[Obj]) -> None:
        """What belongs to no request goes to the latest GET stream, or waits for the first."""
        if self._general is None:
            self._backlog.append(message)
        else:
            self._general.send(message)

    def new_stream(self) -> ServerStream:
        if len(self._streams) >= MAX_STREAMS:
            # All may be in use: then there are as many as there are connections, and no more.
            idle = next((n for n, stream in self._streams.items() if not stream.attached), None)
            self._streams.pop(idle or 0, None)
        self._last_stream += 1
        stream = self._streams[self._last_stream] = ServerStream(self._last_stream)
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


class Post(ServerExchange):
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
        self._stream: ServerStream | None = None
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

    def _begin(self) -> ServerStream | None:
        if self._stream is None and self._connection is not None:
            self._stream = self._http_session.new_stream()
            headers = self._http_session.headers
            self._stream.attach(self._connection, headers, self._http_session.primes)
        return self._stream

    def _gone(self) -> None:
        """A lost connection is no cancellation here: the work goes on, for whoever resumes."""
        self._connection = None


class Welcome(Post):
    """The POST that begins a session: only a successful answer makes the session known."""

    __slots__ = ("sessions",)
    sessions: Sessions

    def deliver(self, message: Obj | list[Obj]) -> None:
        if "error" not in message:
            self.sessions.add(self._http_session)
            super().deliver(message)
        elif self._connection is not None:
            self._connection.respond(400, encode(message))


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
            _check_version_header(request, None)
            owner = HttpSession(self._world)
            post = Welcome(value["id"], {}, owner, connection, self._mode)
            post.sessions = self
            owner.session.request(value, post)
            return
        owner = self._find(request)

        def way_back(identifier: Any, in_flight: InFlight) -> Post:
            return Post(identifier, in_flight, owner, connection, self._mode)

        try:
            if not owner.session.take(value, way_back):
                connection.respond(202, headers=owner.headers)
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


def _check_version_header(request: Request, negotiated: str | None) -> None:
    """Refuse a version that is unknown, or not the one that the session agreed on."""
    given = request.header(VERSION_HEADER)
    if given is None:
        return  # 2025-03-26 and earlier have no such header
    if given not in versions.HANDSHAKE or negotiated not in {None, given}:
        known = negotiated or ", ".join(versions.HANDSHAKE)
        raise Rejected(400, f"MCP-Protocol-Version must be {known}")


# -- The HTTP+SSE transport of 2024-11-05 --------------------------------------------------------

STREAM_PATH = "/sse"
POST_PATH = "/messages"


class SseClient:
    """One client: its stream carries every message of the server."""

    def __init__(self, world: World, connection: HttpConnection) -> None:
        self.identifier = os.urandom(16).hex()
        self.session = HandshakeSession(world, self)
        self._connection = connection

    def begin(self) -> None:
        self._connection.start_stream({})
        place = f"{POST_PATH}?session_id={self.identifier}"
        self._connection.stream(f"event: endpoint\ndata: {place}\n\n".encode())

    def send(self, message: Obj | list[Obj]) -> None:
        self._connection.stream(b"event: message\ndata: %b\n\n" % encode(message))

    def take(self, value: Any) -> None:
        self.session.take(value, lambda name, in_flight: SharedStream(name, in_flight, self))


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


# -- The stateless era over HTTP -----------------------------------------------------------------

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 500}


class StatelessPost(ServerExchange):
    """One POST. It is answered with JSON, or with a stream once there is more than an answer."""

    __slots__ = ("_connection", "_mode", "_streaming")

    def __init__(self, identifier: Any, connection: HttpConnection, mode: str) -> None:
        super().__init__(identifier, {})
        self._connection = connection
        self._mode = mode
        self._streaming = False
        connection.on_gone = self.cancel  # closing the stream is how this era cancels

    @property
    def can_notify(self) -> bool:  # type: ignore[override]  # decided when the server starts
        return self._mode != "json"

    def send(self, message: Obj) -> None:
        if not self._streaming:
            self._streaming = True
            self._connection.start_stream({})
        self._connection.stream(b"event: message\ndata: %b\n\n" % encode(message))

    def deliver(self, message: Obj | list[Obj]) -> None:
        assert isinstance(message, dict), "this era has no batches"
        if self._streaming or (self._mode == "sse" and "result" in message):
            self.send(message)
            self._connection.end_stream()
            return
        status = 200
        if "error" in message:
            status = _STATUS.get(message["error"]["code"], 400)
        self._connection.respond(status, encode(message))

    def drop(self) -> None:
        self._connection.close()


def serve_post(message: Obj, request: Request, connection: HttpConnection, world: World) -> None:
    """Serve one request of this era, if its headers agree with it."""
    exchange = StatelessPost(message["id"], connection, world.options.response)
    try:
        if message["method"] != "initialize" or is_stateless(message):
            name = message.get("params", {}).get("name")
            calls = message["method"] == "tools/call" and isinstance(name, str)
            tool = world.content.tool_named.get(name) if calls else None
            check_headers(message, request.headers, {} if tool is None else tool.header)
    except Refusal as refusal:
        exchange.refuse(refusal)
    else:
        serve(message, world, exchange)


def check_headers(message: Obj, headers: Mapping[str, str], mirrored: dict[str, str]) -> None:
    """Each header says what the body says. Raises Refusal. `mirrored` are the arguments of the tool
    that is called which have a header, with its name."""
    params = message.get("params", {})
    meta = params.get("_meta")
    if isinstance(meta, dict) and isinstance(meta.get(VERSION), str):
        _compare("MCP-Protocol-Version", headers, meta[VERSION])
    _compare("Mcp-Method", headers, message["method"])
    named_by = _NAMED_BY.get(message["method"])
    if named_by is not None and isinstance(params.get(named_by), str):
        _compare("Mcp-Name", headers, params[named_by])
    arguments = params.get("arguments", {})
    for argument, header in mirrored.items() if isinstance(arguments, dict) else ():
        _compare_param(f"Mcp-Param-{header}", headers, arguments.get(argument))


def _compare(header: str, headers: Mapping[str, str], expected: str | int) -> None:
    given = headers.get(header.lower())
    if given is None:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is missing")
    said = decode_header(header, given)
    if not (_is_number(said, expected) if isinstance(expected, int) else said == expected):
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} differs from the body")


def _compare_param(header: str, headers: Mapping[str, str], value: Any) -> None:
    given = headers.get(header.lower())
    if value is None:
        if given is not None:
            raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} has no value in the body")
    elif given is None or type(value) in (str, int):
        _compare(header, headers, value)
    # A value of another type is for the check of the arguments to refuse.


def _is_number(text: str, expected: int) -> bool:
    """42 and 42.0 are the same number."""
    whole, _, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) < 20
        and int(whole) == expected
        and not fraction.strip("0")
    )


def decode_header(header: str, value: str) -> str:
    """What a header stands for: itself, or UTF-8 in base64 between `=?base64?` and `?=`."""
    if not all(" " <= letter <= "~" or letter == "\t" for letter in value):
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} has invalid characters")
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    import binascii

    try:
        return binascii.a2b_base64(value[9:-2], strict_mode=True).decode()
    except ValueError:
        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is not valid base64") from None


# -- The demo over HTTP --------------------------------------------------------------------------

ENDPOINT = "/mcp"


class DemoSite:
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
            if token is None or not is_turned_away(request, connection, token, ENDPOINT):
                self._route(request, connection)
        except Rejected as rejected:
            connection.refuse(rejected.status, rejected.refusal)

    def _route(self, request: Request, connection: HttpConnection) -> None:
        secret = self._options.secret
        old = bool(self._world.handshake) and not secret
        if secret:
            import hmac

            # In constant time: how long a wrong path takes must not say how much of it is right.
            if not hmac.compare_digest(request.path.encode(), f"/{secret}{ENDPOINT}".encode()):
                raise Rejected(404, "There is nothing here")
            self._endpoint(request, connection)
        elif request.path == ENDPOINT:
            self._endpoint(request, connection)
        elif request.path == STREAM_PATH and old:
            _by_method({"GET": self._sse_clients.get}, request, connection)
        elif request.path == POST_PATH and old:
            _by_method({"POST": self._sse_clients.post}, request, connection)
        else:
            raise Rejected(404, f"There is nothing here; the endpoint is {ENDPOINT}")

    def _endpoint(self, request: Request, connection: HttpConnection) -> None:
        served: Obj = {"POST": self._post}
        if self._world.handshake and not self._names_stateless(request):
            served = {"GET": self._sessions.get, **served, "DELETE": self._sessions.delete}
        _by_method(served, request, connection)

    def _post(self, request: Request, connection: HttpConnection) -> None:
        check_json(request)
        check_accept(request, JSON, EVENTS)
        value: Any = None
        try:
            value = read_text(request.body)
            if not self._is_stateless(value, request):
                self._sessions.post(value, request, connection)
            elif isinstance(value, list):
                raise Refusal(INVALID_REQUEST, "Invalid request: there are no batches")
            elif (kind := kind_of(value)) == REQUEST:
                serve_post(value, request, connection, self._world)
            elif kind == NOTIFICATION:
                connection.respond(202)
            else:
                raise Refusal(INVALID_REQUEST, "Invalid request: a client sends no responses")
        except Refusal as refusal:
            connection.respond(400, encode(error_message(readable_id(value), refusal)))

    def _is_stateless(self, value: Any, request: Request) -> bool:
        if not (self._world.stateless and self._world.handshake):
            return bool(self._world.stateless)
        return self._names_stateless(request) or (isinstance(value, dict) and is_stateless(value))

    def _names_stateless(self, request: Request) -> bool:
        return bool(self._world.stateless) and request.header(VERSION_HEADER) in versions.STATELESS


def _by_method(served: Obj, request: Request, connection: HttpConnection) -> None:
    serve = served.get(request.method)
    if serve is None:
        refusal = Refusal(INVALID_REQUEST, f"{request.method} is not allowed here")
        connection.refuse(405, refusal, Allow=", ".join(served))
    else:
        serve(request, connection)


def run_http(options: Options, content: Content | None = None) -> int:
    """Serve until a signal comes."""
    loop = Loop()
    loop.stop_on_signals()
    world = World(options, loop, content)
    handle = DemoSite(world).handle
    try:
        listener = Listener(
            loop,
            (options.host, options.port),
            lambda sock, forget: HttpConnection(loop, sock, handle, forget),
        )
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
        world.content.close()
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
