"""A server made of a script, in virtual time: what it delivers when the client sends something.

Nobody waits for real. A receive with nothing to give out moves the clock to its deadline, as if
that time had passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcptest.core.capture import AnyRecord, Frame, HttpResponse, StreamEnd, TransportName
from mcptest.core.errors import PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.base import NO_HEADERS, Sink, discard


@dataclass
class VirtualTime:
    """What `time.monotonic` says; it moves only when somebody waits."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


@dataclass(frozen=True)
class Later:
    """Something that is delivered after a while."""

    seconds: float
    what: Any


@dataclass
class Sent:
    """One message as the client sent it."""

    message: Any
    headers: Mapping[str, str]
    stream: int | None = None
    raw: bytes = b""

    @property
    def method(self) -> str | None:
        return self.message.get("method") if isinstance(self.message, dict) else None


Reaction = Callable[[Sent], list[Any]]


@dataclass
class Scripted:
    """A transport whose server reacts by a table: method to what is delivered.

    A reaction gives objects (sent as messages on the request's stream), bytes (the same, but raw),
    records (as they are), `Later`, or a PeerError (the end of the connection).
    """

    clock: VirtualTime
    reactions: dict[str, Reaction]
    name: TransportName = "stdio"
    peer: str = "scripted"
    sent: list[Sent] = field(default_factory=list)
    opened_streams: list[tuple[Mapping[str, str], str | None]] = field(default_factory=list)
    abandoned: list[int] = field(default_factory=list)
    deleted: list[Mapping[str, str]] = field(default_factory=list)
    closed: bool = False
    has_unread_input: bool = False
    is_without_stream: bool = False
    sink: Sink = discard
    """Told of every message, as a transport does."""
    _queue: list[tuple[float, int, Any]] = field(default_factory=list)
    _streams: int = 0
    _order: int = 0

    # -- the contract of a transport -------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        self._react("open", Sent({}, {}))

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int | None:
        try:
            message = json.loads(payload)
        except ValueError:
            message = None
        sent = Sent(message, dict(headers), self._stream(), payload)
        self.sent.append(sent)
        self.sink(Frame(sender="client", raw=payload, stream=sent.stream))
        key = "batch" if isinstance(message, list) else sent.method or "answer"
        self._react(key, sent)
        return sent.stream

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        self._queue.sort(key=lambda entry: entry[:2])
        if not self._queue or self._queue[0][0] > deadline.at:
            self.clock.now = max(self.clock.now, deadline.at)
            return []
        self.clock.now = max(self.clock.now, self._queue[0][0])
        due = [what for at, _, what in self._queue if at <= self.clock.now]
        if isinstance(due[0], PeerError):
            raise due[0]  # and again, should anybody ask once more
        end = next((n for n, what in enumerate(due) if isinstance(what, PeerError)), len(due))
        del self._queue[:end]
        for record in due[:end]:
            self.sink(record)
        return due[:end]

    def close(self, deadline: Deadline) -> None:
        self.closed = True

    # -- the streams of HTTP ---------------------------------------------------------------

    def request(
        self, method: str, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int:
        fields = dict(headers)
        last_event_id = fields.pop("Last-Event-ID", None)
        if method == "DELETE":
            self.deleted.append(fields)
        else:
            self.opened_streams.append((fields, last_event_id))
        sent = Sent({}, fields, self._stream())
        self._react(method if last_event_id is None else "resume", sent)
        assert sent.stream is not None
        return sent.stream

    def abandon(self, stream: int) -> None:
        self.abandoned.append(stream)

    # -- the script ------------------------------------------------------------------------

    def deliver(self, what: Any, stream: int | None = None, after: float = 0.0) -> None:
        if isinstance(what, Later):
            self.deliver(what.what, stream, after + what.seconds)
            return
        if isinstance(what, dict | list):
            what = json.dumps(what).encode()
        if isinstance(what, bytes):
            what = Frame(sender="server", raw=what, stream=stream)
        self._order += 1
        self._queue.append((self.clock.now + after, self._order, what))

    @property
    def methods(self) -> list[str | None]:
        """The methods that the client sent, in order."""
        return [sent.method for sent in self.sent]

    def last(self, method: str) -> Sent:
        return next(sent for sent in reversed(self.sent) if sent.method == method)

    def _stream(self) -> int | None:
        if self.name != "http":
            return None
        self._streams += 1
        return self._streams

    def _react(self, key: str, sent: Sent) -> None:
        for what in self.reactions.get(key, nothing)(sent):
            self.deliver(what, sent.stream)


def nothing(sent: Sent) -> list[Any]:
    """Silence."""
    return []


def result(value: Any) -> Reaction:
    """A result with the id of the request."""
    return lambda sent: [{"jsonrpc": "2.0", "id": sent.message["id"], "result": value}]


def error(code: int, message: str = "no", data: Any = None) -> Reaction:
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return lambda sent: [{"jsonrpc": "2.0", "id": sent.message["id"], "error": body}]


def in_turn(*reactions: Reaction) -> Reaction:
    """One reaction after the other; the last one from then on."""
    left = list(reactions)

    def react(sent: Sent) -> list[Any]:
        return (left.pop(0) if len(left) > 1 else left[0])(sent)

    return react


def http(status: int, *reactions: Reaction, headers: Mapping[str, str] = NO_HEADERS) -> Reaction:
    """A whole HTTP response: its head, what the reactions give, its end."""

    def react(sent: Sent) -> list[Any]:
        assert sent.stream is not None
        head = HttpResponse(stream=sent.stream, status=status, headers=tuple(headers.items()))
        body = [what for reaction in reactions for what in reaction(sent)]
        return [head, *body, StreamEnd(stream=sent.stream)]

    return react


def raw(payload: bytes) -> Reaction:
    return lambda sent: [payload]


def notification(method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


# -- servers -------------------------------------------------------------------------------

PREFIX = "io.modelcontextprotocol/"
SERVER_INFO = {"name": "scripted", "version": "1"}


def initialized(version: str = "2025-11-25", **capabilities: Any) -> Reaction:
    return result(
        {"protocolVersion": version, "capabilities": capabilities, "serverInfo": SERVER_INFO}
    )


def discovered(*versions: str, **capabilities: Any) -> Reaction:
    return result(
        {
            "resultType": "complete",
            "supportedVersions": list(versions or ("2026-07-28",)),
            "capabilities": capabilities,
            "_meta": {PREFIX + "serverInfo": SERVER_INFO},
        }
    )
