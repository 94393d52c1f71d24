"""A server played from a recorded session: what it once said, to whoever asks the same again.

Each message of the client is matched to the first unused one of the recording with the same
method and params. What the server sent on account of it is sent again, byte for byte, but for the
ids and progress tokens that the client chose differently this time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcptest.core.capture import AnyRecord, Frame, TransportName, Trouble
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.message import ABSENT, Kind, Message, id_key
from mcptest.core.safe_text import show
from mcptest.servers.demo.jsonrpc import INTERNAL_ERROR, Refusal, encode, error_message
from mcptest.servers.demo.stdio_server import (
    PATIENCE_SECONDS,
    SIGNAL_PATIENCE_SECONDS,
    StdioInput,
    StdioOutput,
)
from mcptest.transport.base import NO_HEADERS, Clock, Sink, discard
from mcptest.transport.capture_file import open_capture
from mcptest.transport.loop import Loop
from mcptest.wire.envelope import decode
from mcptest.wire.json_text import array_items, replace_members

# The first message of a session: the client may be another one today.
_MATCHED_BY_METHOD = frozenset({"initialize", "server/discover"})
# What differs from one client to the next without changing the question. In the older revisions a
# client tells of itself in initialize, which is matched by its method alone.
_VOLATILE_META = frozenset(
    {
        "progressToken",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/logLevel",
    }
)

# Says which subscriptions/listen a notification belongs to: the id of that request.
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True, slots=True)
class _AnswerTo:
    """Here the recorded server had been given the answer to its own request with this id."""

    key: Any


_Step: TypeAlias = bytes | _AnswerTo


@dataclass(slots=True)
class _Exchange:
    """One message of the recorded client, and what the server then said on account of it."""

    sent: tuple[Message, ...]
    steps: list[_Step] = field(default_factory=list)


class Replay:
    """A transport whose server is a recording."""

    name: TransportName = "replay"

    def __init__(
        self,
        records: Iterable[AnyRecord],
        *,
        sink: Sink,
        peer: str = "replay",
        clock: Callable[[], float] | None = None,
        keeps_answers: bool = False,
    ) -> None:
        """`keeps_answers`: who asks more often than the recorded client is told the last again."""
        self._sink = sink
        self._keeps_answers = keeps_answers
        self._clock = clock or Clock()
        self._inbox: list[AnyRecord] = []
        self._closed = False
        self._prelude, exchanges = _read_script(records)
        self._unused: dict[str, list[_Exchange]] = {}
        for exchange in reversed(exchanges):
            self._unused.setdefault(_question(exchange.sent), []).append(exchange)
        self._waiting: dict[Any, list[_Step]] = {}
        self._renaming = _Renaming()
        self.peer = peer

    def open(self, deadline: Deadline) -> None:
        """What the server said before it was spoken to comes first."""
        self._play(self._prelude)

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int | None:
        if self._closed:
            raise PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        self._sink(Frame(t=self._clock(), sender="client", raw=payload))
        message = decode(payload)
        if message.is_answer:
            self._play(self._waiting.pop(id_key(message.id), []))
        else:
            self._answer(message.items or (message,), payload)
        return None

    def _answer(self, asked: tuple[Message, ...], payload: bytes) -> None:
        candidates = self._unused.get(_question(asked))
        if candidates:
            last = len(candidates) == 1 and self._keeps_answers
            exchange = candidates[0] if last else candidates.pop()
            self._renaming.learn(exchange.sent, asked)
            self._play(exchange.steps)
        elif any(message.kind is not Kind.NOTIFICATION for message in asked):
            what = asked[0].method or "a message without a method"
            detail = f"the capture holds no answer to {show(what, 80)} with these params"
            error = ErrorKind.PROTOCOL.value
            self._keep(Trouble(t=self._clock(), error=error, detail=detail, excerpt=show(payload)))

    def _play(self, steps: list[_Step]) -> None:
        for place, step in enumerate(steps):
            if isinstance(step, _AnswerTo):
                self._waiting[step.key] = steps[place + 1 :]
                return
            self._keep(Frame(t=self._clock(), sender="server", raw=self._renaming.apply(step)))

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """What was played so far. With nothing there nothing can come, so nobody waits."""
        if self._closed and not self._inbox:
            raise PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        inbox, self._inbox = self._inbox, []
        return inbox

    def close(self, deadline: Deadline) -> None:
        self._closed = True

    def _keep(self, record: AnyRecord) -> None:
        self._sink(record)
        self._inbox.append(record)


def _read_script(records: Iterable[AnyRecord]) -> tuple[list[_Step], list[_Exchange]]:
    """Give each thing the server said to the client message that it was said on account of.

    An answer goes to its request and progress to the request with its token, whatever was in
    flight besides. Everything else goes to the last thing that the client had sent.
    """
    prelude = _Exchange(())
    exchanges: list[_Exchange] = []
    latest = prelude
    owners: dict[Any, _Exchange] = {}
    for record in records:
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        parts = message.items or (message,)
        if record.sender == "server":
            keys = [owners.get(_owner_key(part)) for part in parts]
            owner = next(filter(None, keys), latest)
            owner.steps.append(record.raw)
            if message.kind is Kind.REQUEST:
                owners["asked", id_key(message.id)] = owner
        elif message.is_answer:
            asker = owners.pop(("asked", id_key(message.id)), None)
            if asker is not None:
                asker.steps.append(_AnswerTo(id_key(message.id)))
                latest = asker
        else:
            latest = _Exchange(parts)
            exchanges.append(latest)
            names = [("id", part.id) for part in parts]
            names += [("token", _progress_token(part)) for part in parts]
            owners.update({(what, id_key(name)): latest for what, name in names if name != ABSENT})
    return prelude.steps, exchanges


def _owner_key(message: Message) -> tuple[str, Any]:
    if message.is_answer:
        return "id", id_key(message.id)
    if message.method == "notifications/progress":
        return "token", id_key(message.params.get("progressToken", ABSENT))
    return "none", None


def _progress_token(message: Message) -> Any:
    return _meta_in(message.params).get("progressToken", ABSENT)


def _meta_in(value: Any) -> dict[str, Any]:
    meta = value.get("_meta") if isinstance(value, dict) else None
    return meta if isinstance(meta, dict) else {}


def _question(messages: tuple[Message, ...]) -> str:
    """What was asked, without what differs from run to run: equal text means the same question."""
    return json.dumps([*map(_essence, messages)], sort_keys=True, default=repr)


def _essence(message: Message) -> Any:
    if message.method is None:
        return [repr(message.value) if message.value is not ABSENT else message.raw.hex()]
    if message.method in _MATCHED_BY_METHOD:
        return [message.method]
    params = message.member("params")
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict):
        meta = {key: value for key, value in params["_meta"].items() if key not in _VOLATILE_META}
        params = {key: value for key, value in params.items() if key != "_meta"}
        params |= {"_meta": meta} if meta else {}
    return [message.method, params or {}, message.id is ABSENT]


@dataclass(slots=True)
class _Renaming:
    """From the recorded client's ids and progress tokens to those of today's client."""

    ids: dict[Any, Any] = field(default_factory=dict)
    tokens: dict[Any, Any] = field(default_factory=dict)

    def learn(self, then: tuple[Message, ...], now: tuple[Message, ...]) -> None:
        for old, new in zip(then, now, strict=True):
            tokens = _progress_token(old), _progress_token(new)
            for names, was, becomes in ((self.ids, old.id, new.id), (self.tokens, *tokens)):
                if was is not ABSENT and becomes is not ABSENT and id_key(was) != id_key(becomes):
                    names[id_key(was)] = becomes

    def apply(self, raw: bytes) -> bytes:
        """The frame with the new names in it; one that can't be read stays as it is."""
        if not self.ids and not self.tokens:
            return raw
        message = decode(raw)
        try:
            text = raw.decode()
            if message.kind is not Kind.BATCH:
                return self._renamed(text, message).encode()
            for (start, end), item in zip(
                reversed(list(array_items(text))), reversed(message.items), strict=True
            ):
                text = text[:start] + self._renamed(text[start:end], item) + text[end:]
            return text.encode()
        except (ValueError, RecursionError):
            return raw

    def _renamed(self, text: str, message: Message) -> str:
        changes: dict[tuple[str, ...], Any] = {}
        if message.is_answer and id_key(message.id) in self.ids:
            changes["id",] = self.ids[id_key(message.id)]
        token = id_key(message.params.get("progressToken", ABSENT))
        if token in self.tokens:
            changes["params", "progressToken"] = self.tokens[token]
        for place in ("params", "result"):
            listener = id_key(_meta_in(message.member(place)).get(_SUBSCRIPTION, ABSENT))
            if listener in self.ids:
                changes[place, "_meta", _SUBSCRIPTION] = self.ids[listener]
        return replace_members(text, changes) if changes else text


_AT_ONCE = 1.0
"""A recording answers from memory; nothing is waited for."""


class ReplayedServer:
    """One client, and the first session of a capture."""

    def __init__(self, records: Iterator[AnyRecord], loop: Loop) -> None:
        self._loop = loop
        self._replay = Replay(records, sink=discard, keeps_answers=True)
        self._in = StdioInput(loop, self._take_line, self._flush)
        self._out = StdioOutput(loop, self._in.accept)

    def run(self) -> None:
        self._replay.open(Deadline.after(_AT_ONCE))
        self._say(ABSENT)
        self._in.accept(True)
        self._loop.run()
        self._out.finish(PATIENCE_SECONDS if self._in.ended else SIGNAL_PATIENCE_SECONDS)

    def _flush(self) -> None:
        self._out.flush()

    def _take_line(self, line: bytes | None) -> None:
        if line is None or not line.strip():
            return
        message = decode(line)
        self._replay.send(line, Deadline.after(_AT_ONCE))
        asks = message.method is not None and isinstance(message.id, str | int)
        self._say(message.id if asks else ABSENT)

    def _say(self, asked: object) -> None:
        for record in self._replay.receive(Deadline.after(_AT_ONCE)):
            if isinstance(record, Frame):
                self._out.write(on_one_line(record.raw) + b"\n")
            elif isinstance(record, Trouble) and asked is not ABSENT:
                refusal = Refusal(INTERNAL_ERROR, record.detail)
                self._out.write(encode(error_message(asked, refusal)) + b"\n")


def on_one_line(raw: bytes) -> bytes:
    """Over HTTP a message may have been written on several lines; a pipe takes them for several."""
    if b"\n" not in raw and b"\r" not in raw:
        return raw
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False).encode()
    except ValueError:
        return raw.replace(b"\n", b" ").replace(b"\r", b" ")


def serve_recording(path: str) -> None:
    """Be the server of a capture until standard input ends. UsageError when it is no capture."""
    for session in open_capture(path):
        records = [record for _, record in session.records]
        if any(isinstance(record, Frame) for record in records):
            loop = Loop()
            loop.stop_on_signals()
            ReplayedServer(iter(records), loop).run()
            return
    raise UsageError(f"{path}: there is no message in it to be played")
