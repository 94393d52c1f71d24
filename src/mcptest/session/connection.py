"""One conversation over one transport: ids, answers matched to requests, and what came unasked.

Knows JSON-RPC and nothing of eras: a lifecycle decides what is said, this decides who it is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from mcptest.core.capture import AnyRecord, Frame, HttpResponse, SseEvent, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import DEFAULT_LIMITS, MEBIBYTE, Deadline, Limits
from mcptest.core.message import ABSENT, Flaw, Kind, Message, id_key, json_type
from mcptest.core.safe_text import show
from mcptest.transport.base import NO_HEADERS, Sink, Transport, condition_of, partial_of
from mcptest.wire.correlation import IdSet, id_of_other_type
from mcptest.wire.diagnosis import diagnose
from mcptest.wire.envelope import batch_problems, decode, is_meant_as_message
from mcptest.wire.json_text import write_json
from mcptest.wire.mcp_headers import hint_for_status, is_event_stream, refusal_in_words

# -- A request on its way ------------------------------------------------------------------------

encode = write_json
"""JSON as we send it."""
Params: TypeAlias = Mapping[str, Any] | None
"""Of a request or notification; None where it has none."""


class Pending(msgspec.Struct, eq=False):
    """A request on its way: filled in as its answer, or the reason why there is none, arrives."""

    id: Any
    method: str
    params: Params
    answer: Message | None = None
    failure: PeerError | None = None
    stream: int | None = None
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    last_event_id: str | None = None
    retry_ms: int | None = None
    resumed: int = 0
    spoiled: str = ""
    """What came on its stream in place of a message."""
    sent_after: int = 0
    """How many messages that nobody had asked for had come when it was sent."""
    cancelled: bool = False

    @property
    def done(self) -> bool:
        return self.answer is not None or self.failure is not None

    def header(self, name: str) -> str | None:
        """A header of the HTTP response that carried the answer."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


def request_of(pending: Pending) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": pending.id, "method": pending.method}
    if pending.params is not None:
        message["params"] = pending.params
    return message


# -- One conversation over one transport ---------------------------------------------------------

_SECOND_ANSWERS_KEPT = 20
_NOTIFICATIONS_KEPT = 1_000
_NOTIFICATION_BYTES_KEPT = 8 * MEBIBYTE
_RESUMPTIONS = 5
_LOOKING_UP = 0.2
_ANSWERING = 1.0
"""Seconds for the answers to what came at once, also when nobody waits for anything."""
_REFUSED = 400
_BODY_SHOWN = 200
_UNREADABLE_KEPT = 64 * 1024
_TOO_MUCH = frozenset({Flaw.TOO_DEEP, Flaw.TOO_MANY_VALUES})
"""What is not read, because of what that would cost."""
_MISREAD = frozenset({ErrorKind.BAD_HTTP, ErrorKind.BAD_CONTENT_TYPE, ErrorKind.BAD_SSE})
"""What came is no answer."""
_SHOWN = _MISREAD | {ErrorKind.HTTP_STATUS}
"""The bytes that came say more than the kind of error."""
NOTHING_CAME = "it sent nothing"


class Stopped(Exception):  # noqa: N818 - nothing went wrong: somebody asked us to stop
    """The wait was given up because the whole run is to end."""


class Connection:
    """Sends requests and collects what comes back. All waiting happens in `pump`."""

    def __init__(
        self,
        transport: Transport,
        limits: Limits = DEFAULT_LIMITS,
        before_waiting: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        sink: Sink | None = None,
    ) -> None:
        """`before_waiting` is called whenever we are about to wait: a recorder writes then.

        `should_stop` is asked a few times a second while we wait; True ends it with `Stopped`.
        `sink` is told when we give up on an answer, which no transport can know.
        """
        self._sink = sink
        self.transport = transport
        self.limits = limits
        self._before_waiting = before_waiting
        self._should_stop = should_stop
        self.notifications: deque[Message] = deque()
        """The latest ones, as far as there is room for them."""
        self.notifications_seen = 0
        self._notification_bytes = 0
        self.on_request: Callable[[Message], None] | None = None
        self.resume: Callable[[Pending, Deadline], int] | None = None
        """Takes up a stream that ended before its answer; returns the new stream's number."""
        self.on_notification: Callable[[Message], None] | None = None
        self.last_status: int | None = None
        """The status of the last HTTP response, where there are any."""
        self._next_id = 0
        self._pending: dict[Any, Pending] = {}
        self._by_stream: dict[int, list[Pending]] = {}
        """Whom a stream is for: several where a batch was sent."""
        self._last_stray = ""
        self._strays_seen = 0
        self._last_unusable = 0
        """The number of the last stray that may have been meant as the answer to what waits."""
        self._unreadable: list[bytes] = []
        """The first lines that are no messages, to say what they are."""
        self._unreadable_bytes = 0
        self._bodies: dict[int | None, HttpResponse] = {}
        """Streams whose body is no stream of events."""
        self._answered = IdSet()
        self._given_up_on = IdSet()
        self.has_given_up = False
        """Whether a request of ours was not answered in its time."""
        self._second_answers: deque[Message] = deque(maxlen=_SECOND_ANSWERS_KEPT)
        self._to_resume: list[tuple[Deadline, Pending]] = []
        self._waiting_until: Deadline | None = None
        self._answer_by: Deadline | None = None

    # -- sending ---------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Params,
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
        identifier: Any = ABSENT,
    ) -> Pending:
        """Send a request and return at once. The id is the next integer unless one is given."""
        if identifier is ABSENT:
            pending = self._numbered(method, params)
        else:
            pending = self._await(Pending(identifier, method, params))
        self.follow(pending, self.transport.send(encode(request_of(pending)), deadline, headers))
        return pending

    def _numbered(self, method: str, params: Params) -> Pending:
        self._next_id += 1
        return self._await(Pending(self._next_id, method, params))

    def _await(self, pending: Pending) -> Pending:
        if not self._pending:  # what came before was not meant for this one
            self._unreadable.clear()
            self._unreadable_bytes = 0
        self._pending[id_key(pending.id)] = pending
        pending.sent_after = self._strays_seen
        return pending

    def burst(
        self, calls: Sequence[tuple[str, Params, Mapping[str, str]]], deadline: Deadline
    ) -> list[Pending]:
        """Send many requests (method, params, headers) at once, each as its own message."""
        send_many = getattr(self.transport, "send_many", None)
        if send_many is None:
            return [self.request(method, params, deadline, h) for method, params, h in calls]
        made = [self._numbered(method, params) for method, params, _ in calls]
        send_many([encode(request_of(pending)) for pending in made], deadline)
        return made

    def batch(
        self,
        calls: Sequence[tuple[str, Params]],
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> list[Pending]:
        """Send many requests as one JSON-RPC batch."""
        made = [self._numbered(method, params) for method, params in calls]
        messages = [request_of(pending) for pending in made]
        stream = self.transport.send(encode(messages), deadline, headers)
        for pending in made:
            self.follow(pending, stream)
        return made

    def notify(
        self,
        method: str,
        params: Params,
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> int | None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        return self.transport.send(encode(message), deadline, headers)

    def answer(
        self, identifier: Any, outcome: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Answer a request of the server's; `outcome` holds `result` or `error`.

        That takes from the time for what we wait for. A server that never stops asking gets no
        answer any more when it is up.
        """
        if self._answer_by is None:
            usual = Deadline.after(_ANSWERING)
            self._answer_by = max(self._waiting_until or usual, usual, key=lambda one: one.at)
        if not self._answers_no_more:
            message = {"jsonrpc": "2.0", "id": identifier, **outcome}
            self.transport.send(encode(message), self._answer_by, headers)

    @property
    def _answers_no_more(self) -> bool:
        """Whether the time for answers is up: what is still asked is not even looked at."""
        return self._answer_by is not None and self._answer_by.expired

    def expect(self, identifier: Any, method: str, stream: int | None = None) -> Pending:
        """Wait for an answer to a request that was sent as raw bytes."""
        pending = self._await(Pending(identifier, method, None))
        self.follow(pending, stream)
        return pending

    def await_status(self, stream: int | None, what: str, deadline: Deadline) -> int | None:
        """Wait for the HTTP status of something that has no answer; None where there is no HTTP."""
        if stream is None:
            return None
        pending = self.expect(("stream", stream), what, stream)
        while pending.status is None and not pending.done and self.pump(deadline):
            if deadline.expired:
                break
        self.forget(pending)
        return pending.status

    def follow(self, pending: Pending, stream: int | None) -> None:
        """Take what comes on `stream` as meant for `pending`."""
        pending.stream = stream
        if stream is not None:
            self._by_stream.setdefault(stream, []).append(pending)

    def forget(self, pending: Pending) -> None:
        """Stop waiting; an answer that still comes counts as unasked."""
        self._given_up_on.add(pending.id)
        self._pending.pop(id_key(pending.id), None)
        self._unfollow(pending)

    def _unfollow(self, pending: Pending) -> None:
        if pending.stream is None:
            return
        others = [each for each in self._on_stream(pending.stream) if each is not pending]
        if others:
            self._by_stream[pending.stream] = others
        else:
            self._by_stream.pop(pending.stream, None)

    def _on_stream(self, stream: int | None) -> Sequence[Pending]:
        return self._by_stream.get(stream, ()) if stream is not None else ()

    # -- waiting ---------------------------------------------------------------------------

    def pump(self, deadline: Deadline) -> bool:
        """Take in what has arrived, waiting if nothing has. False when the deadline passed."""
        self._waiting_until, self._answer_by = deadline, None
        while True:
            until = self._resume_what_is_due(deadline) if self._to_resume else deadline
            if self._should_stop is not None:
                if self._should_stop():
                    raise Stopped
                until = until.within(_LOOKING_UP)
            if self._before_waiting is not None:
                self._before_waiting()
            records = self.transport.receive(until)
            for record in records:
                if type(record) is Frame:
                    self._take_frame(record)
                else:
                    self._take_fact(record)
            if records or until is deadline:
                return bool(records)

    def pump_until(self, until: Callable[[], bool], deadline: Deadline) -> bool:
        """Take in what comes until something holds; False when it did not in that time."""
        while not until():
            if not self.pump(deadline) or deadline.expired:
                return until()
        return True

    def settle(self, pending: Pending, deadline: Deadline) -> Message:
        """Wait for the answer. PeerError says what came instead when none does."""
        while pending.answer is None:
            if pending.failure is not None:
                self.forget(pending)
                raise pending.failure
            # A server that never stops talking does not stop the clock.
            if not self.pump(deadline) or (deadline.expired and not pending.done):
                self.forget(pending)
                self.has_given_up = True
                if self._sink is not None:
                    kind, detail = ErrorKind.TIMEOUT.value, _gave_up(pending, deadline.limit)
                    self._sink(Trouble(error=kind, detail=detail, stream=pending.stream))
                raise self.why_unanswered(pending, deadline.limit, deadline.option)
        return pending.answer

    def why_unanswered(
        self, pending: Pending, seconds: float, option: str = "--timeout"
    ) -> PeerError:
        """Why a request has no answer yet, with what came in its place."""
        if pending.failure is not None:
            return pending.failure
        unfinished = bytes(getattr(self.transport, "unfinished", b""))
        known = diagnose(self._unreadable, unfinished)
        words = _gave_up(pending, seconds)
        came = self.what_came_instead(pending.sent_after)
        unusable = bool(known) or self._last_unusable > pending.sent_after
        if unusable:
            words = words.replace("did not answer", "gave no usable answer to", 1)
        if known:
            words = f"{words}: {known}"
        if partial := partial_of(self.transport):
            came = partial if came == NOTHING_CAME else f"{came}; {partial}"
        came = "" if known and came == NOTHING_CAME else f"; {came}"
        message = f"{words}{came}{condition_of(self.transport)}"
        hint = "" if known else f"raise {option} if the server is only slow"
        return PeerError(ErrorKind.TIMEOUT, message, hint=hint, unusable=unusable)

    def what_came_instead(self, since: int = 0) -> str:
        """A clause for error messages: what arrived that nobody had asked for.

        `since`: how many of them had come before.
        """
        parts = []
        seen = self._strays_seen - since
        if seen == 1:
            parts.append(f"it sent only {self._last_stray}")
        elif seen:
            parts.append(f"it sent {seen} unusable messages, the last one {self._last_stray}")
        if self.notifications_seen:
            parts.append(f"it sent {self.notifications_seen} notifications")
        return "; ".join(parts) or NOTHING_CAME

    # -- taking in -------------------------------------------------------------------------

    def _take_frame(self, frame: Frame) -> None:
        message = decode(frame.raw, self.limits.depth)
        stream = frame.stream
        body = self._bodies.get(stream)
        if body is not None and (not self._on_stream(stream) or _is_refusal(body, message)):
            self._take_body(body, frame)
        elif stream is None and not is_meant_as_message(message):
            self._take_noise(message, frame)
        else:
            self._take_message(message, frame)

    def _take_body(self, response: HttpResponse, frame: Frame) -> None:
        """A body that is no message: of a refusal, or where nobody waits for one (GET, 202)."""
        why = refusal_in_words(response.status, response.headers)
        said = f"refused ({why}): {show(frame.raw, _BODY_SHOWN)!r}"
        for pending in self._on_stream(frame.stream):
            words = f"{show(pending.method, 80)} was {said}"
            hint = hint_for_status(response.status)
            pending.failure = PeerError(ErrorKind.HTTP_STATUS, words, hint=hint)
        if response.status >= _REFUSED and self.transport.name == "sse":
            self._unusable(f"a POST was {said}")  # that has no answer on any stream

    def _take_message(self, message: Message, frame: Frame) -> None:
        kind = message.kind
        if kind is Kind.RESULT or kind is Kind.ERROR:
            self._take_answer(message, frame)
        elif kind is Kind.NOTIFICATION:
            self.notifications_seen += 1
            self.notifications.append(message)
            self._notification_bytes += len(message.raw)
            while (
                len(self.notifications) > _NOTIFICATIONS_KEPT
                or self._notification_bytes > _NOTIFICATION_BYTES_KEPT
            ):
                self._notification_bytes -= len(self.notifications.popleft().raw)
            if self.on_notification is not None:
                self.on_notification(message)
        elif kind is Kind.REQUEST:
            if self.on_request is not None and not self._answers_no_more:
                self.on_request(message)
        elif kind is Kind.BATCH and message.items:
            for item in message.items:
                self._take_message(item, frame)
        else:
            self._take_invalid(message, frame)
        if frame.sse is not None:
            self._note_event(frame.stream, frame.sse.id, frame.sse.retry)

    def claim(self, accept: Callable[[Message], bool]) -> Message | None:
        """Take the first kept notification that is wanted out of those kept."""
        for place, message in enumerate(self.notifications):
            if accept(message):
                del self.notifications[place]
                self._notification_bytes -= len(message.raw)
                return message
        return None

    def _take_answer(self, message: Message, frame: Frame) -> None:
        identifier = message.id
        pending = self._pending.pop(id_key(identifier), None)
        if pending is None and identifier in (ABSENT, None):
            # A server that could not read the id of a request sends none. Over HTTP the stream
            # still says whose answer it is, unless it carries a batch.
            waiting = self._on_stream(frame.stream)
            if len(waiting) == 1:
                pending = waiting[0]
                self._pending.pop(id_key(pending.id), None)
        if pending is None or pending.done:
            self._take_unasked(message)
            return
        self._answer(pending, message)

    def _answer(self, pending: Pending, message: Message) -> None:
        pending.answer = message
        self._answered.add(pending.id)
        if pending.stream is not None:
            self._unfollow(pending)

    def _take_unasked(self, message: Message) -> None:
        """An answer that no waiting request has the id of."""
        identifier = message.id
        shown = show(repr(identifier), 40)
        raw = show(message.raw or encode(message.value), 100)
        if identifier is ABSENT:
            self._unusable(f"a response without an id: {raw}")
        elif identifier in self._answered:
            self._second_answers.append(message)
            self._stray(f"a second response with id {shown}: {raw}")
        elif identifier in self._given_up_on:
            self._stray(f"a late response with id {shown}: {raw}")
        elif (twin := self._pending.pop(id_of_other_type(identifier), None)) is not None:
            self._unfollow(twin)
            name = json_type(identifier)
            twin.failure = PeerError(
                ErrorKind.PROTOCOL,
                f"{show(twin.method, 80)}: the response has the id {shown}, a {name}; "
                f"the request has {show(repr(twin.id), 40)}, a {json_type(twin.id)}: {raw}",
                unusable=True,
            )
        else:
            name = "null" if identifier is None else shown
            self._unusable(f"a response with the unknown id {name}: {raw}")

    def second_answers(self, late: Iterable[bytes] = ()) -> Iterator[Message]:
        """Answers to requests that were answered before; `late` came when we had closed."""
        yield from self._second_answers
        for raw in late:
            message = decode(raw, self.limits.depth)
            if message.is_answer and message.id in self._answered:
                yield message

    def _take_invalid(self, message: Message, frame: Frame) -> None:
        """A message that is no valid one may still be meant as the answer to a request."""
        is_answer = message.result is not ABSENT or message.error is not ABSENT
        if is_answer or (isinstance(message.value, dict) and "method" not in message.value):
            pending = self._pending.pop(id_key(message.id), None)
            if pending is not None:
                self._answer(pending, message)
                return
        self._take_noise(message, frame)

    def _take_noise(self, message: Message, frame: Frame) -> None:
        """What is no message at all; worth saying when nothing better comes."""
        raw = message.raw or encode(message.value)
        value = message.value
        first_of_it = value[:1] if isinstance(value, list) else value
        problems = message.problems or batch_problems(first_of_it)
        reason = problems[0].reason if problems else "no answer"
        is_too_much = bool(problems) and problems[0].flaw in _TOO_MUCH
        shown = f"{show(raw, 100)!r}"
        description = f"{reason}: {shown}" if is_too_much else f"{shown} ({reason})"
        for waiting in self._on_stream(frame.stream):
            first = not waiting.spoiled  # of a flood, one is looked at closely
            looks_closely = first and not is_too_much
            known = diagnose([message.raw[:_UNREADABLE_KEPT]], lines=False) if looks_closely else ""
            waiting.spoiled = f"{known}: {description}" if known else description
        if frame.stream not in self._bodies:
            self._unusable(description)
            if message.raw and self._unreadable_bytes < _UNREADABLE_KEPT:
                self._unreadable.append(message.raw[:_UNREADABLE_KEPT])
                self._unreadable_bytes += len(message.raw)

    def _unusable(self, description: str) -> None:
        self._stray(description)
        self._last_unusable = self._strays_seen

    def _stray(self, description: str) -> None:
        self._last_stray = description
        self._strays_seen += 1

    def _take_fact(self, record: AnyRecord) -> None:
        if isinstance(record, HttpResponse):
            self.last_status = record.status
            if not is_event_stream(record.headers):
                self._bodies[record.stream] = record
            for pending in self._on_stream(record.stream):
                pending.status = record.status
                pending.headers = record.headers
        elif isinstance(record, Trouble):
            self._take_trouble(record)
        elif isinstance(record, SseEvent):
            self._note_event(record.stream, record.sse.id, record.sse.retry)
            # An event that is not of the type `message` may hold the answer all the same.
            if record.data and self._on_stream(record.stream):
                raw = record.data.encode("utf-8", "backslashreplace")
                if is_meant_as_message(decode(raw, self.limits.depth)):
                    name = show(record.sse.event or "", 40)
                    self._unusable(f"an event of the type {name!r}, not message: {show(raw, 100)}")
        elif isinstance(record, StreamEnd):
            self._take_stream_end(record)

    def _take_trouble(self, record: Trouble) -> None:
        waiting = self._on_stream(record.stream)
        kind = ErrorKind(record.error)
        if not waiting:
            self._unusable(record.detail)
        for pending in waiting:
            if not (kind is ErrorKind.CONNECTION_LOST and self._will_resume(pending)):
                said = record.in_words if kind in _SHOWN else record.detail
                detail = f"{show(pending.method, 80)}: {said}"
                hint = hint_for_status(pending.status)
                pending.failure = PeerError(kind, detail, hint=hint, unusable=kind in _MISREAD)

    def _note_event(self, stream: int | None, event_id: str | None, retry: int | None) -> None:
        for pending in self._on_stream(stream):
            if event_id:
                pending.last_event_id = event_id
                pending.resumed = 0  # it gets on; the deadline is the only limit then
            pending.retry_ms = retry if retry is not None else pending.retry_ms

    def _take_stream_end(self, record: StreamEnd) -> None:
        self._bodies.pop(record.stream, None)
        for pending in self._by_stream.pop(record.stream, ()):
            if not pending.done and not self._will_resume(pending):
                pending.failure = self._ended_without_answer(pending, record)

    def _ended_without_answer(self, pending: Pending, record: StreamEnd) -> PeerError:
        method = show(pending.method, 80)
        status = f" (HTTP {pending.status})" if pending.status is not None else ""
        if pending.spoiled:
            refused = pending.status is not None and pending.status >= _REFUSED
            kind = ErrorKind.HTTP_STATUS if refused else ErrorKind.NOT_A_MESSAGE
            spoiled = f"the response{status} to {method} is not a message: {pending.spoiled}"
            hint = hint_for_status(pending.status)
            return PeerError(kind, spoiled, hint=hint, unusable=not refused)
        kind = ErrorKind.PROTOCOL if record.complete else ErrorKind.TRUNCATED
        how = "ended" if record.complete else "was cut off"
        came = self.what_came_instead(pending.sent_after)
        unusable = self._last_unusable > pending.sent_after
        message = f"the HTTP response{status} to {method} {how} without a message; {came}"
        return PeerError(kind, message, unusable=unusable)

    def _will_resume(self, pending: Pending) -> bool:
        """Plan to take up a stream again: after the pause that the server's `retry` orders."""
        if self.resume is None or pending.last_event_id is None:
            return False
        if any(planned is pending for _, planned in self._to_resume):
            return True
        if pending.resumed >= _RESUMPTIONS:
            return False
        pending.resumed += 1
        self._to_resume.append((Deadline.after((pending.retry_ms or 0) / 1000), pending))
        return True

    def _resume_what_is_due(self, deadline: Deadline) -> Deadline:
        """Resume streams whose pause is over; returns how long the next wait may last."""
        planned, self._to_resume = self._to_resume, []
        for due, pending in planned:
            if pending.done or pending.cancelled:
                continue
            if not due.expired:
                self._to_resume.append((due, pending))
            elif self.resume is not None:
                self.follow(pending, self.resume(pending, deadline))
        return min([deadline, *(due for due, _ in self._to_resume)], key=lambda each: each.at)


def _gave_up(pending: Pending, seconds: float) -> str:
    return f"the server did not answer {show(pending.method, 80)} within {seconds:g}s"


def _is_refusal(response: HttpResponse, message: Message) -> bool:
    """JSON below a status that refuses, but no attempt at a message: of OAuth, or a gateway."""
    return response.status >= _REFUSED and not is_meant_as_message(message)
