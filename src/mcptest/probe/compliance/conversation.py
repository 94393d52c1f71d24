"""One connection to the server that is judged: ask a check, get back everything that was seen.

A check becomes a message with params, `_meta` and headers as this era sends them, but for what it
wants otherwise. Nothing in here judges, and nothing that the server does raises: an error answer,
silence and a dead process are all exchanges. Only being told to stop ends a wait early.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from mcptest.core.capture import AnyRecord, Frame, Headers, Trouble
from mcptest.core.errors import GONE, ErrorKind, PeerError
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.masking import Masker
from mcptest.core.message import ABSENT, Flaw, Kind, Message
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.rules.protocol import member_at, object_at
from mcptest.session.answers import DeclaredAnswers, answers_for, capabilities_of
from mcptest.session.connection import Pending, Stopped, encode, request_of
from mcptest.session.lifecycle import (
    CLIENT_INFO,
    PREFIX,
    HandshakeLifecycle,
    Lifecycle,
    StatelessLifecycle,
)
from mcptest.session.live import LiveSession
from mcptest.session.tape import Tape
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck, texts_in
from mcptest.transport.base import http_streams
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import PARAM_PREFIX

_CAPABILITIES = PREFIX + "clientCapabilities"
_VERSION = PREFIX + "protocolVersion"
_OWN_META = frozenset({_VERSION, _CAPABILITIES})
"""What every request says alike."""
NOT_SENT = ""
"""The value that makes a transport leave a header out."""


def outgoing(
    check: SentCheck,
    lifecycle: Lifecycle,
    revision: Revision,
    input_schema: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """The params and headers of a check that has a method; its placeholders are filled in."""
    params = _params(check, lifecycle, revision)
    usual: Mapping[str, str] = {}
    # Whoever sends initialize is a client of the handshake era, which has no headers before it.
    if check.method != "initialize":
        usual = lifecycle.headers(check.method, params, input_schema)
    return params, {**usual, **changed_headers(check.headers)}


def is_odd(check: SentCheck) -> bool:
    """Whether no well-behaved client of the revision that is judged would send this."""
    if {"_meta", "params"} & {*check.omit}:
        return True
    # How an argument is written in its header is the client's choice.
    if any(
        value is None or not name.startswith(PARAM_PREFIX) for name, value in check.headers.items()
    ):
        return True
    return any(value is None or name in _OWN_META for name, value in check.meta.items())


def may_change_era(check: SentCheck, revision: Revision) -> bool:
    """Whether a server that speaks both eras may take the connection for one of the other.

    Whoever does not say which revision a request is of speaks like a client of the handshake.
    """
    if revision.era is Era.HANDSHAKE:
        return False
    if check.method == "initialize" or {"_meta", "params"} & {*check.omit}:
        return bool(check.method)
    return _VERSION in check.meta and check.meta[_VERSION] is None


def changed_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """Headers as a transport takes them; null leaves one out."""
    return {name: NOT_SENT if value is None else str(value) for name, value in headers.items()}


def _params(check: SentCheck, lifecycle: Lifecycle, revision: Revision) -> dict[str, Any] | None:
    if "params" in check.omit:
        return None
    own_params = check.params
    if own_params is None and check.method == "initialize":
        version = revision.wire_version  # as a client without capabilities begins
        own_params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
    prepared = lifecycle.prepare(own_params)
    params = dict(prepared) if prepared is not None else None
    if params is not None and "arguments" in check.omit:
        params.pop("arguments", None)
    if "_meta" in check.omit:
        if params is not None:
            params.pop("_meta", None)
        return params
    changes = dict(check.meta)
    if check.declare and revision.era is Era.STATELESS and _CAPABILITIES not in changes:
        changes[_CAPABILITIES] = capabilities_of(check.declare, revision)
    if not changes:
        return params
    params = params or {}
    own = params.get("_meta")
    meta = {**(own if isinstance(own, Mapping) else {}), **changes}
    return {**params, "_meta": {name: value for name, value in meta.items() if value is not None}}


if TYPE_CHECKING:
    from mcptest.probe.compliance.site import Site

BODY_KEPT = 256 * 1024
"""Of a response's body: no check looks further into one, and each exchange keeps its own."""


class Asked(msgspec.Struct, frozen=True):
    """One thing that was sent and what came of it. The bytes are for people, headers included."""

    exchange: SeenExchange
    sent: bytes
    received: bytes
    identifier: Any = ABSENT
    answers: tuple[Message, ...] = ()
    """Every answer that came: to a batch there are several."""
    seconds: float = 0.0
    stream: int | None = None
    """The HTTP exchange that carried it."""
    place: int = 0
    """How many records its connection had carried before."""
    cut_short: bool = False
    """A request got no answer, and less than the timeout was waited for one."""
    unusable: str = ""
    """What came in place of the answer, in words."""
    unsent: str = ""
    """Why it could not be sent, where it could not."""


Act: TypeAlias = Literal["start", "finish", "notify", "give_up"]
"""What is done on a connection, and can be done again on another."""


class Started(msgspec.Struct):
    """A check that is under way; `Conversation.finish` collects what came of it."""

    check: SentCheck
    conversation: Conversation
    waiting: tuple[Pending, ...] = ()
    """Whoever may be answered: one request, or several ids for bytes that were sent as they are."""
    id: Any = ABSENT
    """The id that it was to be sent with; ABSENT where any will do."""
    body: bytes = b""
    stream: int | None = None
    at: float = 0.0
    place: int = 0
    notifications: int = 0
    asked: int = 0
    wants_all: bool = False
    """A batch: every id is waited for."""
    cut_short: bool = False
    """It was taken back before the timeout was over."""
    given_up: bool = False
    """We took it back: whether an answer comes is not waited for."""
    unsent: str = ""
    """Why it could not be sent, where it could not."""

    @property
    def identifier(self) -> Any:
        return self.waiting[0].id if self.waiting else ABSENT

    @property
    def done(self) -> bool:
        done = [one.done for one in self.waiting]
        return all(done) if self.wants_all else any(done)


def trouble_of(records: Sequence[AnyRecord], stream: int | None) -> str:
    """The first thing that went wrong with an HTTP exchange, in words."""
    if stream is None:
        return ""
    troubles = (one for one in records if isinstance(one, Trouble) and one.stream == stream)
    return show(next((one.detail for one in troubles), ""), 300)


def input_requests(result: Any) -> Sequence[Any]:
    """What an input-required result asks for."""
    asks = member_at(result, "resultType") == "input_required"
    return tuple(object_at(result, "inputRequests").values()) if asks else ()


def body_text(bodies: Iterable[bytes]) -> str:
    """The body of a response as a text, as far as anyone looks into it."""
    kept: list[bytes] = []
    left = BODY_KEPT
    for body in bodies:
        kept.append(body[:left])
        left -= len(kept[-1])
        if not left:
            break
    return b"\n".join(kept).decode("utf-8", "backslashreplace")


def http_facts(tape: Tape, stream: int) -> dict[str, Any]:
    """Status, headers and body of a response that has come."""
    response, trouble = tape.responses[stream], tape.troubles.get(stream)
    text = body_text(frame.raw for frame in tape.bodies.get(stream, ()))
    text = text or (trouble.excerpt if trouble else "")
    headers = {name.lower(): value for name, value in response.headers}
    return {"status": response.status, "headers": headers, "body": text}


_DULL = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "connection", "date", "server"}
)
"""Headers that no rule is about."""


def sent_text(tape: Tape, stream: int | None, body: bytes, masker: Masker) -> bytes:
    request = tape.posted.get(stream) if stream is not None else None
    if request is None:
        return masker.message(body)
    head = f"{request.method} {masker.text(request.url)}{_headers(request.headers, masker)}"
    return _joined(head, masker.message(body))


def received_text(
    tape: Tape, stream: int | None, answers: Sequence[Message], masker: Masker
) -> bytes:
    bodies = [masker.message(one.raw or encode(one.value)) for one in answers]
    response = tape.responses.get(stream) if stream is not None else None
    if response is None:
        return b" ".join(bodies)
    if not bodies and stream is not None:
        bodies = [masker.message(frame.raw) for frame in tape.bodies.get(stream, ())[:3]]
        trouble = tape.troubles.get(stream)
        if not bodies and trouble is not None and trouble.excerpt:
            bodies = [masker.text(trouble.excerpt).encode("utf-8", "backslashreplace")]
    head = f"HTTP {response.status}{_headers(response.headers, masker)}"
    return _joined(head, b" ".join(bodies))


def _headers(headers: Headers, masker: Masker) -> str:
    told = [f"{name}: {value}" for name, value in masker.headers(headers)]
    kept = [one for one in told if one.partition(":")[0].lower() not in _DULL]
    return f" ({'; '.join(kept)})" if kept else ""


def _joined(head: str, body: bytes) -> bytes:
    start = head.encode("utf-8", "backslashreplace")
    return start + b" " + body if body else start


_AFTER_THE_FENCE = 0.25
"""A server may work on two messages at once: how far the first may fall behind the second."""
_WHOLE = 0.99
"""The share of the timeout that counts as all of it: clocks are not that exact."""
_KEPT = 1_000
_KEPT_BYTES = 4 * MEBIBYTE
_KEPT_ANYWAY = 64 * 1024
"""Of one connection, however much came on others."""
_VALUE_COST = 800
"""What a small message takes as a value, in round numbers."""
_REFUSED = 400
_CLOSING = 2.0
AT_WORK = frozenset({"tools/call", "prompts/get", "resources/read", "tasks/result"})
"""Requests that may take their time: only the timeout bounds them."""
_MADE_UP = ("unknown_tool", "unknown_prompt", "unknown_uri", "unknown_task")
"""Unless they are about something that there is not."""


class Conversation:
    """One connection, begun or not. Everything that goes over it is on its tape."""

    def __init__(
        self, site: Site, live: LiveSession, revision: Revision, answers: DeclaredAnswers
    ) -> None:
        self.site = site
        self.live = live
        self.client = live.prepare()
        self.tape = live.tape
        self.revision = revision
        self.answers = answers
        self.transport: str = self.client.connection.transport.name
        self.polite = True
        """Nothing was sent that a well-behaved client would not send."""
        self.may_be_of_other_era = False
        """Something was sent that a server of both eras may have read as the other one."""
        self.beginning = False
        """The first request of the session was sent."""
        self.is_quiet = False
        """No stream for the server's own messages stands open."""
        self.toured = False
        """A tour was taken on it before anything else was asked."""
        self.gone: PeerError | None = None
        """Why nothing can be asked any more."""
        self.mute = False
        """It lives, and answers nothing any more."""
        self.notifications: list[Any] = []
        self.asked: list[Any] = []
        self._unasked_bytes = 0
        self.said: list[tuple[Act, Started]] = []
        """What was sent and waited for, in this order, so that it can be done again."""
        self._own_lifecycle: Lifecycle | None = None
        self._fenced = 0.0
        self.is_closed = False
        self._usual: object = None
        """How the alive check was answered before anything else was asked."""
        self.tour_ends: int | None = None
        """Of a tour that others ask on: the place of the first record that is theirs."""
        self.ends: int | None = None
        """The place of the first record that is not its own, once it was handed over."""
        self.goes_on = False
        """Whether it was handed over to a conversation that is judged as well."""

    # -- beginning and ending --------------------------------------------------------------

    def listen(self) -> None:
        """Note what the server sends unasked. To be called once the session has begun, or won't."""
        connection = self.client.connection
        self.transport = self.tape.transport = connection.transport.name
        self.hear()
        for message in connection.notifications:
            self._take_notification(message)

    def hear(self) -> None:
        """From now on it is this conversation that notes it."""
        self.client.connection.on_notification = self._take_notification
        self.client.connection.on_request = self._take_request

    def _take_notification(self, message: Message) -> None:
        if len(self.notifications) < _KEPT and self._has_room_for(message):
            self.notifications.append(message.value)

    def _has_room_for(self, message: Message) -> bool:
        """Whether what came unasked is still little enough to be kept as values."""
        cost = len(message.raw) + _VALUE_COST
        self._unasked_bytes += cost
        if self._unasked_bytes <= _KEPT_ANYWAY:
            return True
        return self._unasked_bytes <= _KEPT_BYTES and self.site.unasked_room.take_bytes(cost)

    def _take_request(self, message: Message) -> None:
        method, params = message.method or "", message.params
        if len(self.asked) < _KEPT and self._has_room_for(message):
            self.asked.append({"method": method, "params": params})
        if self.revision.era is Era.HANDSHAKE:
            outcome = self.answers.reply_to(message, self.revision)
            answer, headers = self.client.connection.answer, self.lifecycle.headers("", None)
            self._guarded(lambda: answer(message.id, outcome, headers))

    @property
    def lifecycle(self) -> Lifecycle:
        if self.client.has_begun:
            return self.client.lifecycle
        if self._own_lifecycle is None:
            era = HandshakeLifecycle if self.revision.era is Era.HANDSHAKE else StatelessLifecycle
            self._own_lifecycle = era(self.client.connection, self.revision, self.answers)
        return self._own_lifecycle

    def begin_without_listening(self, deadline: Deadline) -> None:
        """Begin a session without the stream on which a server may talk unasked."""
        connection = self.client.connection
        lifecycle = HandshakeLifecycle(connection, self.revision, self.answers, listens=False)
        lifecycle.finish(lifecycle.begin(deadline), deadline)
        connection.on_request = self._take_request
        self._own_lifecycle = lifecycle

    def declare_nothing(self) -> None:
        """From now on it is like a fresh one, where each request says what the client can do."""
        assert isinstance(self.lifecycle, StatelessLifecycle)  # a handshake is for good
        self.tour_ends = len(self.tape.records)
        self.answers = answers_for(())
        self.lifecycle.answer_with(self.answers)

    def handed_over(self, site: Site) -> Conversation:
        """The same connection for something else. This conversation ends here, for who judges."""
        other = copy.copy(self)
        other.site, other.said = site, [*self.said]
        other.hear()
        self.ends, self.is_closed = len(self.tape.records), True
        self.goes_on = site is self.site
        site.conversations.append(other)
        return other

    def close(self) -> None:
        """End it, in a short time whatever the server does."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            with contextlib.suppress(Stopped):  # leaving is what we are told to do, and do
                if self._own_lifecycle is not None and self.gone is None:
                    self._own_lifecycle.leave(Deadline.after(_CLOSING))
        finally:
            try:
                self.live.drop(_CLOSING)
            finally:
                self.tape.end()
                self.client.connection.notifications.clear()  # ours has those that are judged

    def forget(self) -> None:
        """Let go of what was said. To be called once it is closed and nobody judges it any more."""
        self.tape.forget_records()
        for kept in (self.said, self.notifications, self.asked):
            kept.clear()

    @property
    def last_sent(self) -> bytes:
        """The last request of ours, as it may be shown."""
        for one in reversed(self.tape.records):
            if not isinstance(one, Frame) or one.sender != "client":
                continue
            if decode(one.raw).kind is Kind.REQUEST:
                return self.site.masker.message(one.raw)
        return b""

    @property
    def usable(self) -> bool:
        """Whether asking still makes sense."""
        return self.gone is None and not self.mute and not self.is_closed

    def answers_as_before(self) -> bool:
        """Whether what was said so far left no trace: the alive check is answered as at first.

        To be called before the first question, and then before each that needs to know.
        """
        if self.may_be_of_other_era or not self.usable:
            return False
        exchange = self.ask(self.site.alive_check).exchange
        result = object_at(exchange.result)
        answer = (exchange.answer, result.get("supportedVersions"), result.get("capabilities"))
        if self._usual is None:
            self._usual = answer
        return self._usual == answer and self.usable

    # -- asking ----------------------------------------------------------------------------

    def ask(self, check: SentCheck, *, identifier: Any = ABSENT) -> Asked:
        """Send it and wait, as long as it may take. The placeholders are filled in already."""
        return self.finish(self.start(check, identifier=identifier))

    def start(self, check: SentCheck, *, identifier: Any = ABSENT) -> Started:
        """Send it and return at once."""
        started = self._begun(check, "start", identifier)
        if self.gone is None and not self.mute:
            error = self._guarded(lambda: self._send(started))
            if error is not None and self.transport != "stdio" and started.stream is None:
                started.unsent = error.message  # over a pipe, bytes may have been written
        return started

    def notify(self, check: SentCheck) -> Asked:
        """Send a notification; over HTTP its status is waited for."""
        started = self._begun(check, "notify")
        if self.gone is None and not self.mute:
            self._guarded(lambda: self._notify(started))
        return self.seen(started)

    def finish(self, started: Started) -> Asked:
        """Wait for the answer, or until it is clear that none comes."""
        self.said.append(("finish", started))
        self._guarded(lambda: self._await(started))
        if started.check.method and not self._is_over(started):
            seconds = time.monotonic() - started.at
            detail = (
                f"the server did not answer {show(started.check.method, 80)} within {seconds:.1f}s"
            )
            self.tape(Trouble(error=ErrorKind.TIMEOUT.value, detail=detail, stream=started.stream))
        for pending in started.waiting:
            self.client.connection.forget(pending)
        for pending in started.waiting:
            if pending.answer is not None:
                self.tape.has_read(pending.answer)
        asked = self.seen(started)
        self.tape.forget_large()
        for pending in started.waiting:
            if pending.answer is not None:  # that it came is remembered, its bytes are on the tape
                pending.answer = msgspec.structs.replace(pending.answer, raw=b"", value=ABSENT)
        return asked

    def give_up(self, started: Started) -> None:
        """Take a request back that is still open: from then on nothing is waited for."""
        self.said.append(("give_up", started))
        for pending in started.waiting:
            if pending.done:
                continue
            pending.failure = PeerError(ErrorKind.CLOSED, "cancelled by mcptest")
            try:
                self.lifecycle.cancel(pending, "no longer needed", self._deadline())
            except PeerError as error:
                self.gone = self.gone or error

    def pump(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Take in what comes until something holds; False when it did not in that time."""
        self._guarded(lambda: self.client.connection.pump_until(until, Deadline.after(seconds)))
        return until()

    def _begun(self, check: SentCheck, act: Act, identifier: Any = ABSENT) -> Started:
        started = Started(check, self, id=identifier, at=time.monotonic())
        started.place = len(self.tape.records)
        started.notifications, started.asked = len(self.notifications), len(self.asked)
        self.said.append((act, started))
        return started

    def _guarded(self, act: Callable[[], object]) -> PeerError | None:
        """Whatever the server does to the connection is something seen, not an error of ours."""
        try:
            act()
        except PeerError as error:
            # Over a pipe nothing more can be said behind what the server did not take in time.
            takes_nothing = error.kind is ErrorKind.TIMEOUT and self.transport == "stdio"
            if error.kind in GONE or takes_nothing:
                self.gone = self.gone or error
            return error
        return None

    def _deadline(self) -> Deadline:
        return Deadline.after(self.site.order.timeout)

    def _send(self, started: Started) -> None:
        check, connection, identifier = started.check, self.client.connection, started.id
        if check.http is not None:
            self.polite = False
            self._send_http(started)
        elif check.is_raw:
            self.polite = False
            started.body = check.raw.encode("utf-8", "surrogateescape")
            headers = self.lifecycle.headers("", None)
            started.stream = connection.transport.send(started.body, self._deadline(), headers)
            self._expect_answers_to_raw(started)
        else:
            self.polite = self.polite and not is_odd(check)
            self.may_be_of_other_era |= may_change_era(check, self.revision)
            schema = self.site.header_schemas.of(check.method, check.params)
            params, headers = outgoing(check, self.lifecycle, self.revision, schema)
            pending = Pending(identifier, check.method, params)
            started.waiting = (pending,)  # known also where sending fails
            deadline = self._deadline()
            pending = connection.request(check.method, params, deadline, headers, identifier)
            started.waiting = (pending,)
            started.stream = pending.stream
            started.body = encode(request_of(pending))

    def _expect_answers_to_raw(self, started: Started) -> None:
        """By any id in it; by no id, since a server may not have been able to read one."""
        connection = self.client.connection
        message = decode(started.body)
        items = message.items or (message,)
        ids = [one.id for one in items if one.id not in (ABSENT, None)]
        started.wants_all = len(ids) > 1
        own = [connection.expect(one, "raw", started.stream) for one in ids]
        if started.stream is not None and not own:
            own = [connection.expect(("stream", started.stream), "raw", started.stream)]
        unnamed = [connection.expect(one, "raw") for one in (None, ABSENT)]
        started.waiting = tuple(own + unnamed)

    def _send_http(self, started: Started) -> None:
        request = started.check.http
        streams = http_streams(self.client.connection.transport)
        if request is None or streams is None:
            return
        started.body = request.body.encode("utf-8", "surrogateescape")
        body = started.body if request.body or request.method in {"POST", "PUT"} else None
        headers = {**self.lifecycle.headers("", None), **changed_headers(request.headers)}
        stream = streams.request(request.method, self._deadline(), headers, body)
        started.stream = stream
        started.waiting = (self.client.connection.expect(("stream", stream), "http", stream),)

    def _notify(self, started: Started) -> None:
        check = started.check
        # A notification carries no _meta of its own accord; one that is asked for is kept.
        headers = {**self.lifecycle.headers(check.method, check.params)}
        headers.update(changed_headers(check.headers))
        deadline = self._deadline()
        params = None if "params" in check.omit else check.params
        connection = self.client.connection
        stream = connection.notify(check.method, params, deadline, headers)
        message = {"jsonrpc": "2.0", "method": check.method}
        started.body = encode(message if params is None else {**message, "params": params})
        started.stream = stream
        if self.transport != "stdio":
            self.client.connection.pump_until(lambda: self._status(started) is not None, deadline)

    # -- waiting ---------------------------------------------------------------------------

    def _await(self, started: Started) -> None:
        if not started.waiting or self.mute:
            return
        begun, waits = time.monotonic(), self.site.waits
        made_up = {self.site.known.get(name) for name in _MADE_UP}
        at_work = started.check.method in AT_WORK and made_up.isdisjoint(
            texts_in(started.check.params)
        )
        starting = self.transport == "stdio" and not self.tape.last_answer
        limit = _until(started.at, waits.left(at_work=at_work, starting=starting))
        if started.check.http is not None:
            self._await_http(started, limit)
        elif started.check.is_raw and started.stream is None:
            self._await_behind_fence(started, limit)
        else:
            self.client.connection.pump_until(lambda: self._is_over(started), limit)
        if started.check.method and not self._is_over(started):
            self._await_behind_fence(started, _until(started.at, 0.0))
        if self.mute or (started.check.method and not self._is_over(started)):
            waits.in_vain(begun, time.monotonic())
            if started.check.method == "tools/call" and at_work:
                name, hung = str((started.check.params or {}).get("name")), self.site.hung_tools
                hung[name] = hung.get(name) or self._came_instead(started)

    def _is_over(self, started: Started) -> bool:
        """Answered; or refused on the way, where answers come on another stream."""
        if started.done or self.transport != "sse":
            return started.done
        status = self._status(started)
        return status is not None and status >= _REFUSED

    def _status(self, started: Started) -> int | None:
        """The HTTP status of what was sent, once it is there."""
        if started.stream is None:
            started.stream = self.tape.stream_of(started.body, started.place)
        response = self.tape.responses.get(started.stream or 0)
        return response.status if response is not None else None

    def _await_http(self, started: Started, limit: Deadline) -> None:
        """A stream that stays open is not read to its end: that it was opened is what was asked."""
        stream = started.stream
        assert stream is not None  # it was sent

        def enough() -> bool:
            response = self.tape.responses.get(stream)
            if stream in self.tape.ended:
                return True
            kind = response.header("content-type") if response is not None else None
            return "event-stream" in (kind or "")

        if self.client.connection.pump_until(enough, limit) and stream not in self.tape.ended:
            streams = http_streams(self.client.connection.transport)
            assert streams is not None  # only there bare requests can be made
            streams.abandon(stream)

    def _await_behind_fence(self, started: Started, limit: Deadline) -> None:
        """Ask something that is always answered: what was not answered before it, won't be.

        Only where the fence is not answered either, the server may be busy, and is waited for.
        """
        patience = _until(time.monotonic(), self.site.order.patience)
        limit = max(limit, patience, key=lambda one: one.at)
        if self._fenced < started.at:
            connection, begun = self.client.connection, time.monotonic()
            alive = self.site.alive_check
            params, headers = outgoing(alive, self.lifecycle, self.revision)
            fence = connection.request(alive.method, params, limit, headers)
            answered = self.client.connection.pump_until(lambda: fence.done or started.done, limit)
            if not fence.done:
                connection.forget(fence)
            elif fence.answer is not None:
                self._fenced = begun
            if not answered:
                self.mute = not started.done
                return
        if not started.done:
            self.client.connection.pump_until(
                lambda: started.done, Deadline.after(_AFTER_THE_FENCE)
            )

    # -- what was seen ---------------------------------------------------------------------

    def seen(self, started: Started) -> Asked:
        """What came of it so far."""
        answers = tuple(one.answer for one in started.waiting if one.answer is not None)
        masker = self.site.masker
        received = received_text(self.tape, started.stream, answers, masker)[:BODY_KEPT]
        for one in started.waiting:  # what was said is remembered, and this with it
            one.answer = self.site.large_answers.kept(one.answer) if one.answer else None
        answers = tuple(one.answer for one in started.waiting if one.answer is not None)
        first = answers[0] if answers else None
        result, error = (first.result, first.error) if first is not None else (ABSENT, ABSENT)
        answered = self.transport != "stdio" and self._status(started) is not None
        http = http_facts(self.tape, started.stream or 0) if answered else None
        exchange = SeenExchange(
            result=result,
            error=error,
            http=http,
            notifications=tuple(self.notifications[started.notifications :]),
            asked=(*self.asked[started.asked :], *input_requests(result)),
            transport=self.observation(answered=first is not None),
        )
        return Asked(
            exchange,
            sent_text(self.tape, started.stream, started.body, masker),
            received,
            started.identifier,
            answers,
            time.monotonic() - started.at,
            started.stream,
            started.place,
            cut_short=http is None and first is None and self._was_cut_short(started),
            unusable=self._came_instead(started) if first is None else _not_kept(first),
            unsent=self.site.masker.text(started.unsent),
        )

    def _came_instead(self, started: Started) -> str:
        """What may have been meant as the answer to a request, and could not be used as one."""
        if not started.check.method or not started.waiting:
            return ""
        seconds = round(time.monotonic() - started.at, 1)
        error = self.client.connection.why_unanswered(started.waiting[0], seconds)
        return self.site.masker.text(error.message.partition("\n")[0]) if error.unusable else ""

    def _was_cut_short(self, started: Started) -> bool:
        """Bytes that are no request are followed by one: the answer to that ends the wait."""
        is_settled = not started.waiting or any(one.failure for one in started.waiting)
        if is_settled or self.gone is not None or self.tape.exited is not None:
            return started.cut_short
        ended_by_answer = not started.check.method and not self.mute
        waited = time.monotonic() - started.at
        return not ended_by_answer and waited < _WHOLE * self.site.order.timeout

    def observation(self, *, answered: bool) -> Mapping[str, Any]:
        """How the connection fared: what `transport_observation` looks at."""
        exited = self.tape.exited is not None
        return {
            "transport": self.transport,
            "alive": self.gone is None and not exited and (answered or not self.mute),
            "unusable": len(self.tape.unusable),
        }


def _not_kept(answer: Message) -> str:
    """That an answer came of which nothing can be judged, in words."""
    if answer.result is not ABSENT or answer.error is not ABSENT:
        return ""
    return "; ".join(one.reason for one in answer.problems if one.flaw is Flaw.TOO_MANY_VALUES)


def _until(begun: float, seconds: float) -> Deadline:
    return Deadline(begun + seconds, seconds)
