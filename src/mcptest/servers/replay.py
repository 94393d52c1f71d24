"""A server played from a recorded session: what it once said, to whoever asks the same again.

Each message of the client is matched to the first unused one of the recording with the same
method and params. What the server sent on account of it is sent again, byte for byte, but for the
ids and progress tokens that the client chose differently this time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcptest.core.capture import AnyRecord, Frame
from mcptest.core.errors import UsageError
from mcptest.core.message import ABSENT, Kind, Message, id_key
from mcptest.core.safe_text import show
from mcptest.servers.demo.jsonrpc import INTERNAL_ERROR, Refusal, encode, error_message
from mcptest.servers.demo.stdio_server import StdioPipes
from mcptest.transport.capture_file import open_capture
from mcptest.transport.loop import Loop
from mcptest.wire.capture_forms import replace_members
from mcptest.wire.envelope import decode

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
    """What the server of a recording says to today's client."""

    def __init__(self, records: Iterable[AnyRecord]) -> None:
        self._prelude, exchanges = _read_script(records)
        self._unused: dict[str, list[_Exchange]] = {}
        for exchange in reversed(exchanges):
            self._unused.setdefault(_question(exchange.sent), []).append(exchange)
        self._waiting: dict[Any, list[_Step]] = {}
        self._renaming = _Renaming()

    def begin(self) -> list[bytes]:
        """What the server said before it was spoken to."""
        return self._play(self._prelude)

    def take(self, message: Message) -> list[bytes]:
        """What it said on account of this message. Refusal: that was never asked.

        Who asks more often than the recorded client is told the last again.
        """
        if message.is_answer:
            return self._play(self._waiting.pop(id_key(message.id), []))
        asked = message.items or (message,)
        candidates = self._unused.get(_question(asked))
        if candidates:
            exchange = candidates.pop() if len(candidates) > 1 else candidates[0]
            self._renaming.learn(exchange.sent, asked)
            return self._play(exchange.steps)
        if all(one.kind is Kind.NOTIFICATION for one in asked):
            return []
        what = show(asked[0].method or "a message without a method", 80)
        raise Refusal(INTERNAL_ERROR, f"the capture has no response to {what} with these params")

    def _play(self, steps: list[_Step]) -> list[bytes]:
        said: list[bytes] = []
        for place, step in enumerate(steps):
            if isinstance(step, _AnswerTo):
                self._waiting[step.key] = steps[place + 1 :]
                break
            said.append(self._renaming.apply(step))
        return said


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
        changes: dict[tuple[str | int, ...], Any] = dict(self._changes(message))
        for place, item in enumerate(message.items):
            changes |= {(place, *path): name for path, name in self._changes(item)}
        try:
            return replace_members(raw, changes) if changes else raw
        except UsageError:
            return raw

    def _changes(self, message: Message) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Where in a message a name stands that is another one today, and which."""
        if message.is_answer and id_key(message.id) in self.ids:
            yield ("id",), self.ids[id_key(message.id)]
        token = id_key(message.params.get("progressToken", ABSENT))
        if token in self.tokens:
            yield ("params", "progressToken"), self.tokens[token]
        for place in ("params", "result"):
            listener = id_key(_meta_in(message.member(place)).get(_SUBSCRIPTION, ABSENT))
            if listener in self.ids:
                yield (place, "_meta", _SUBSCRIPTION), self.ids[listener]


def _play(records: Iterable[AnyRecord], loop: Loop) -> None:
    """Be the server of these records to one client."""
    replay = Replay(records)

    def take_line(line: bytes | None) -> None:
        if line is None or not line.strip():
            return
        message = decode(line)
        try:
            say(replay.take(message))
        except Refusal as refusal:
            if message.method is not None and isinstance(message.id, str | int):
                say([encode(error_message(message.id, refusal))])

    def say(messages: list[bytes]) -> None:
        for raw in messages:
            pipes.write(on_one_line(raw) + b"\n")

    pipes = StdioPipes(loop, take_line)
    say(replay.begin())
    pipes.run()
    pipes.finish()


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
            _play(records, loop)
            return
    raise UsageError(f"{path}: it has no message to replay")
