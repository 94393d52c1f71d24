"""Telling the sessions of one capture apart, so that each is judged by itself.

A client that opens a second session counts its ids from the beginning again, and shakes hands
again. What separates sessions depends on the transport:

- Streamable HTTP: an `initialize` without a session id begins a session. Requests belong to it by
  the `Mcp-Session-Id` that it was given or, where the server gives none, by coming after it.
- HTTP+SSE: each event stream is a session. Its `endpoint` event names the address of its requests.
- stdio: what comes after the process has ended belongs to the next one.
- The stateless era has no sessions. Over HTTP a request whose id is in flight on another stream is
  taken for one of a second client: each answer comes on the stream of its request, and a capture
  does not show connections.

A probe of the stateless era and the `initialize` that follows it are one session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    SseEvent,
    StreamEnd,
)
from mcptest.core.message import Kind, Message, id_key
from mcptest.core.revision import STATELESS_REVISIONS, revision_of_wire
from mcptest.rules.protocol import PROTOCOL_VERSION, object_at
from mcptest.wire.capture_forms import SessionSource

Numbered: TypeAlias = tuple[int, AnyRecord]
Routed: TypeAlias = tuple[int, Numbered]
"""The number of the session, and the record with its place in the capture."""
Read: TypeAlias = Callable[[bytes], Message]
_SESSION_ID = "mcp-session-id"
_INITIALIZE = b'"initialize"'
_NAMES_VERSION = PROTOCOL_VERSION.encode()


def routed(source: SessionSource, read: Read) -> Iterator[Routed]:
    """Every record with the number of its session; the end of the capture is given to each."""
    if source.form == "exchanges":
        return ((0, numbered) for numbered in source.records)
    router = _OverSse() if source.transport == "sse" else _Router()
    return router.route(source.records, read)


class _Router:
    """stdio and streamable HTTP: which of the two it is, the records themselves tell."""

    def __init__(self) -> None:
        self.count = 1
        self.latest = 0
        self._has_begun: set[int] = set()
        """Sessions in which `initialize` was sent."""
        self._by_id: dict[str, int] = {}
        self._by_stream: dict[int, int] = {}
        self._held: dict[int, tuple[int, HttpRequest]] = {}
        """Requests without a session id, until their body shows whether they begin a session."""
        self._in_flight: dict[int, dict[Any, int]] = {}
        """Of the stateless era over HTTP: by session, the ids of open requests and their streams"""
        self._is_over = False
        """The server process has ended."""

    def new(self) -> int:
        self.latest = self.count
        self.count += 1
        return self.latest

    def route(self, records: Iterator[Numbered], read: Read) -> Iterator[Routed]:
        for numbered in records:
            record = numbered[1]
            stream: int | None = getattr(record, "stream", None)
            if stream is not None:
                yield from self._on_stream(numbered, stream, read)
            elif type(record) is Closed:
                yield from ((self.latest, held) for held in self._held.values())
                self._held.clear()
                yield from ((number, numbered) for number in range(self.count))
            else:
                if self._is_over and type(record) is Frame:
                    self._is_over = False
                    self.new()
                self._is_over = self._is_over or type(record) is Exited
                yield self.latest, numbered
        yield from ((self.latest, held) for held in self._held.values())

    def _on_stream(self, numbered: Numbered, stream: int, read: Read) -> Iterator[Routed]:
        place, record = numbered
        if type(record) is HttpRequest:
            number = self.session_of_request(record)
            if number is None:
                self._held[stream] = (place, record)
                return
            self._by_stream[stream] = number
        elif stream in self._held:
            number = self._by_stream[stream] = self._session_of_body(record, stream, read)
            yield number, self._held.pop(stream)
        number = self._by_stream.get(stream, self.latest)
        self.learn(record, number)
        yield number, numbered
        if type(record) is StreamEnd:
            self._by_stream.pop(stream, None)
            self._settle(stream, number)

    def session_of_request(self, request: HttpRequest) -> int | None:
        """None where the body has to be seen first."""
        identifier = _header(request, _SESSION_ID)
        if identifier is None:
            return None if request.method == "POST" else self.latest
        if identifier not in self._by_id:
            # A session that began before the capture did; otherwise an id that nobody gave, which
            # is for the rules to see.
            if self._has_begun:
                return self.latest
            self._by_id[identifier] = self.new() if self._by_id else self.latest
        return self._by_id[identifier]

    def learn(self, record: AnyRecord, number: int) -> None:
        """The answer to `initialize` gives the session its id."""
        if type(record) is HttpResponse:
            identifier = record.header(_SESSION_ID)
            if identifier is not None:
                self._by_id.setdefault(identifier, number)

    def _session_of_body(self, record: AnyRecord, stream: int, read: Read) -> int:
        if type(record) is not Frame or record.sender != "client":
            return self.latest
        if _INITIALIZE in record.raw and _begins(read(record.raw)):
            number = self.new() if self.latest in self._has_begun else self.latest
            self._has_begun.add(number)
            return number
        message = read(record.raw) if _NAMES_VERSION in record.raw else None
        if message is not None and message.kind is Kind.REQUEST:
            named = object_at(message.value, "params", "_meta").get(PROTOCOL_VERSION)
            if revision_of_wire(named) in STATELESS_REVISIONS:
                return self._lane(id_key(message.value.get("id")), stream)
        return self.latest

    def _lane(self, key: Any, stream: int) -> int:
        """The first place where no request with this id is in flight."""
        lanes = [self.latest, *(one for one in self._in_flight if one != self.latest)]
        free = (one for one in lanes if key not in self._in_flight.get(one, ()))
        number = next(free, None)
        if number is None:
            number, self.count = self.count, self.count + 1
        self._in_flight.setdefault(number, {})[key] = stream
        return number

    def _settle(self, stream: int, number: int) -> None:
        open_ids = self._in_flight.get(number, {})
        for key in [key for key, carrier in open_ids.items() if carrier == stream]:
            del open_ids[key]


class _OverSse(_Router):
    """HTTP with one event stream for each session."""

    def __init__(self) -> None:
        super().__init__()
        self._endpoints: dict[str, int] = {}
        self._has_stream = False

    def session_of_request(self, request: HttpRequest) -> int:
        if request.method == "GET":
            number = self.new() if self._has_stream else self.latest
            self._has_stream = True
            return number
        return self._endpoints.get(_target(request.url), self.latest)

    def learn(self, record: AnyRecord, number: int) -> None:
        if type(record) is SseEvent and record.sse.event == "endpoint":
            self._endpoints[_target(record.data.strip())] = number


def _target(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # whatever a server calls its endpoint
        return url
    return f"{parts.path}?{parts.query}"


def _header(request: HttpRequest, name: str) -> str | None:
    return next((value for key, value in request.headers if key.lower() == name), None)


def _begins(message: Message) -> bool:
    items = message.items if message.kind is Kind.BATCH else (message,)
    return any(one.kind is Kind.REQUEST and one.method == "initialize" for one in items)
