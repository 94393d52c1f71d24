"""Following a session: which request an answer belongs to, and what was agreed by then.

The tracker turns records into steps, one at a time, and forgets what is settled: memory is
bounded by what is in flight, not by the length of the capture. It judges nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Leftover,
    Opened,
    StreamEnd,
    TransportName,
    Trouble,
)
from mcptest.core.errors import ErrorKind
from mcptest.core.message import ABSENT, Kind, Message
from mcptest.core.revision import STATELESS_REVISIONS, Era, Revision, revision_of_wire
from mcptest.rules.protocol import CLIENT_CAPABILITIES, PROTOCOL_VERSION, STATELESS_CODES
from mcptest.wire.capture_forms import CaptureForm, SessionSource
from mcptest.wire.correlation import InFlight
from mcptest.wire.envelope import decode, is_meant_as_message
from mcptest.wire.mcp_headers import is_event_stream, may_say_anything


def is_routine(step: Step) -> bool:
    """A request or result that is well formed, has a new id, or answers what was asked and waits.

    Nearly all steps are, so the rules about messages as such need not look at each of them.
    """
    message = step.message
    value = message.value
    if message.problems or step.in_batch or value.__class__ is not dict:
        return False
    if value.get("jsonrpc") != "2.0":
        return False
    if step.kind is Kind.RESULT:
        request = step.request
        if request is None or request.cancelled is not None or step.result.__class__ is not dict:
            return False
        if "error" in value:
            return False
        posted = step.stream.posted
        return posted is None or posted.kind is not Kind.NOTIFICATION
    return (
        step.kind is Kind.REQUEST
        and not step.id_was_used
        and (step.id.__class__ is int or step.id.__class__ is str)
        and value["method"].__class__ is str
        and value.get("params", _EMPTY).__class__ is dict
        and not step.method.startswith("notifications/")
    )


_STATELESS = STATELESS_REVISIONS  # a tuple: two comparisons by identity
_EMPTY: dict[str, Any] = {}
_BEFORE_THE_ANSWER = frozenset({"", "ping"})
"""Who sends no more than this may still wait for the answer to `initialize`."""
_CROWD = 10_000
_KEPT_PARAMS = ("_meta", "name", "uri", "cursor", "level", "requestState", "protocolVersion")
_GIVEN_UP = frozenset({ErrorKind.TIMEOUT.value, ErrorKind.CLOSED.value})
_ID_IN_TEXT = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")')
_SEARCHED = 64 * 1024
NO_MESSAGE = Message(b"", Kind.INVALID, ABSENT)


class AnswerMismatch(enum.Enum):
    """Why an answer belongs to no waiting request."""

    UNKNOWN = "no request has this id"
    AGAIN = "the request with this id already has a response"
    OTHER_TYPE = "the request's id has another JSON type"


def other_side(sender: str) -> str:
    return "server" if sender == "client" else "client"


@dataclass(slots=True, eq=False)
class SessionStream:
    """One HTTP exchange, or one entry of a public capture."""

    request: HttpRequest | None = None
    response: HttpResponse | None = None
    posted: Step | None = None
    """The first message that the client sent on it."""
    troubled: bool = False
    """Something went wrong on it, so that it was not simply we who closed it."""

    def carries_messages_of(self, sender: str) -> bool | None:
        """Whether a body of `sender` has to be a message; None where it may be one.

        A client POSTs messages. What comes back is one where it answers a request, or is an event.
        A refused request and an accepted notification may have an answer in words of HTTP alone,
        and on a GET or DELETE nothing but events is a message.
        """
        if self.request is None or (self.response is None and sender == "server"):
            return True  # the capture has no facts of HTTP
        if sender == "client":
            return self.request.method == "POST"
        response = self.response
        assert response is not None
        if is_event_stream(response.headers):
            return True
        method = self.request.method
        if method != "POST":
            return False
        free = may_say_anything(method, response.status, response.headers)
        return True if self.wants_answer and not free else None

    @property
    def wants_answer(self) -> bool:
        """Whether the client sent a request on it, alone or in a batch."""
        if self.posted is None:
            return False
        message = self.posted.message
        return any(one.kind is Kind.REQUEST for one in message.items or (message,))

    @property
    def was_refused(self) -> bool:
        """Whether the server answered with an error status, as far as the capture tells."""
        return self.response is not None and self.response.status >= 400

    def sent_header(self, name: str) -> str | None:
        headers = self.request.headers if self.request else ()
        return next((value for key, value in headers if key.lower() == name), None)


NO_STREAM = SessionStream()
"""Of a step that no HTTP exchange carried. Nothing is ever noted on it."""


@dataclass(slots=True, eq=False)
class Step:
    """One message (or other record) in its place, with what was known when it passed."""

    place: int
    record: AnyRecord
    message: Message
    sender: str
    kind: Kind = field(init=False)
    method: str = ""
    """Of a request or notification; of an answer, that of the request it belongs to."""
    request: Step | None = None
    """What an answer answers, or what a cancellation cancels."""
    mismatch: AnswerMismatch | None = None
    revision: Revision | None = None
    """None: a revision with the handshake, but the capture does not say which."""
    stream: SessionStream = NO_STREAM
    in_batch: bool = False
    id_was_used: bool = False
    id_was_waiting: bool = False
    cancelled: Step | None = None
    """What cancelled this request."""
    routine: bool = False
    """Nothing about it as a message is odd: see `is_routine`."""
    stateless: bool = False
    """Is `revision` one of the stateless era?"""
    probes: bool = False
    """A request of the stateless era before `initialize`, to find out which era the server speaks;
    or the answer to it."""
    id: Any = ABSENT
    params: dict[str, Any] = field(init=False)
    """The params, or an empty object where there are none or they are not an object."""
    meta: dict[str, Any] = field(init=False)
    """The `_meta` of the params or the result, or an empty object."""
    result: Any = ABSENT

    def __post_init__(self) -> None:
        message = self.message
        self.kind = message.kind
        self.params = self.meta = _EMPTY
        value = message.value
        if type(value) is dict:
            self.id = value.get("id", ABSENT)
            if "result" in value:
                holder = self.result = value["result"]
            else:
                holder = value.get("params")
                if type(holder) is dict:
                    self.params = holder
            if type(holder) is dict and "_meta" in holder:
                meta = holder["_meta"]
                self.meta = meta if type(meta) is dict else _EMPTY

    @property
    def error(self) -> Any:
        return self.message.error

    @property
    def error_code(self) -> int | None:
        code = self.error.get("code") if isinstance(self.error, dict) else None
        return code if type(code) is int else None

    def in_result(self, member: str) -> Any:
        """A member of the result, or ABSENT."""
        result = self.result
        return result.get(member, ABSENT) if isinstance(result, dict) else ABSENT

    def in_request(self, member: str) -> Any:
        """A member of the params of the request that this answers, or ABSENT."""
        return self.request.params.get(member, ABSENT) if self.request is not None else ABSENT

    @property
    def t(self) -> float:
        return self.record.t


class Session:
    """What is known of the session so far. Rules read it; only the tracker writes it."""

    def __init__(self, source: SessionSource, forced: Revision | None = None) -> None:
        self.form: CaptureForm = source.form
        self.transport: TransportName | None = source.transport
        self.forced = forced
        self.wanted = forced or revision_of_wire(source.spec_version)
        """The revision that was asked for, whatever is spoken in the end."""
        self.revision: Revision | None = self.wanted
        known = source.server_capabilities
        self.server_capabilities: Any = known if isinstance(known, dict) else None
        """None while nothing is known about them."""
        self.client_capabilities: Any = None
        self.in_flight: dict[str, InFlight[Step]] = {"client": InFlight(), "server": InFlight()}
        self.last_answered = {"client": -1, "server": -1}
        """The place of each side's latest request that was answered."""
        self.streams: dict[int, SessionStream] = {}
        self.initialize_sent = False
        self.initialize_answered = False
        self.initialized = False
        self.answer_was_read = False
        """The client has read the answer to its latest `initialize`: it has gone on, with
        `notifications/initialized` or any message but a ping."""
        self.agreed_version: str | None = None
        """What the server's initialize result said, whether that revision exists or not."""
        self.handshake_revision: Revision | None = None
        self.stateless_revision: Revision | None = None
        if self.revision is not None and self.revision.era is Era.STATELESS:
            self.stateless_revision = self.revision  # asked for, whatever the client then sends
        self.stateless_answers = 0
        self.stateless_came_first = False
        """A request of the stateless era was served before `initialize` was sent."""
        self.probe_refused = False
        """A request of the stateless era was refused as by a server that does not speak it."""
        self.messages = 0
        self.exited: Exited | None = None
        self.gave_up: Trouble | None = None
        """Set when the client waited for an answer as long as it was told to, and none came."""
        self.cut_off: set[int] = set()
        """The places of requests whose answers were not waited for, or were cut off by us."""
        self.crowded = False
        """So many requests waited at once that their arguments were not kept."""
        self.ends_whole = source.form == "exchanges"
        """False for a capture that was cut short."""

    def eras(self) -> list[Era]:
        """The eras that the session really spoke.

        A refused probe is not speaking, and neither is a handshake that was asked for and never
        completed beside stateless requests that were answered.
        """
        if self.forced is not None:
            return [self.forced.era]
        spoke: list[Era] = []
        shook_hands = self.initialize_sent and (self.initialized or not self.stateless_answers)
        if shook_hands or self.stateless_revision is None:
            spoke.append(Era.HANDSHAKE)
        if self.stateless_revision and (self.stateless_answers or not self.initialize_sent):
            spoke.insert(0 if self.stateless_came_first else len(spoke), Era.STATELESS)
        return spoke

    @property
    def is_refused_probe(self) -> bool:
        """Is there nothing but a question in a revision that the server never spoke?"""
        spoken = self.wanted or self.stateless_answers or self.initialize_sent
        return self.probe_refused and not spoken

    def revisions(self) -> list[Revision | None]:
        """The revisions to judge by; None stands for an unknown one with the handshake."""
        if self.forced is not None:
            return [self.forced]
        known = {Era.HANDSHAKE: self.handshake_revision, Era.STATELESS: self.stateless_revision}
        if Era.HANDSHAKE in self.eras() and self.handshake_revision is None and self.revision:
            known[Era.HANDSHAKE] = self.revision if self.revision.era is Era.HANDSHAKE else None
        return [known[era] for era in self.eras()]


def follow(
    records: Iterable[tuple[int, AnyRecord]],
    session: Session,
    read: Callable[[bytes], Message] = decode,
) -> Iterator[Step]:
    """The steps of a session, or of a further piece of it; `session` is kept up to date on the way.

    `read` is how a frame becomes a message.
    """
    tracker = _Tracker(session, read)
    for place, record in records:
        if type(record) is not Frame:
            other = tracker.other(place, record)
            if other is not None:
                yield other
            continue
        step = tracker.first_step(place, record)
        yield step
        if step.kind is Kind.REQUEST:
            tracker.lighten(step, record)
        for item in step.message.items:
            yield tracker.step(place, record, item, step.stream, in_batch=True)


class _Tracker:
    def __init__(self, session: Session, read: Callable[[bytes], Message]) -> None:
        self.session = session
        self.read = read

    def first_step(self, place: int, frame: Frame) -> Step:
        """The step of a frame; the members of a batch come after it."""
        message = self.read(frame.raw)
        stream = self.stream(frame.stream) if frame.stream is not None else NO_STREAM
        if self.holds_message(frame, message, stream):
            return self.step(place, frame, message, stream)
        known = stream.posted or self.session
        return Step(place, frame, NO_MESSAGE, frame.sender, revision=known.revision, stream=stream)

    def holds_message(self, frame: Frame, message: Message, stream: SessionStream) -> bool:
        """Not all that is recorded is a message: noise on stdout, the body of a refusal."""
        if self.session.transport == "stdio":
            owed = None
        else:
            owed = self.session.form != "full" or stream.carries_messages_of(frame.sender)
        return is_meant_as_message(message) if owed is None else owed

    def lighten(self, step: Step, frame: Frame) -> None:
        """Where very many requests wait, each is kept without its bytes and its arguments."""
        if len(self.session.in_flight[step.sender].waiting) < _CROWD:
            return
        self.session.crowded = True
        step.params = {key: step.params[key] for key in _KEPT_PARAMS if key in step.params}
        value = {"jsonrpc": "2.0", "id": step.id, "method": step.method, "params": step.params}
        step.message = Message(b"", step.kind, value)
        step.record = Frame(t=frame.t, sender=frame.sender, raw=b"", stream=frame.stream)

    def stream(self, number: int) -> SessionStream:
        streams = self.session.streams
        found = streams.get(number)
        if found is None:
            if self.session.form == "exchanges":
                for over in streams.values():  # an exchange is over when the next one begins
                    over.posted = None  # and no cycle is left for the collector
                streams.clear()
            found = streams[number] = SessionStream()
        return found

    def other(self, place: int, record: AnyRecord) -> Step | None:
        session = self.session
        step = Step(place, record, NO_MESSAGE, "", revision=session.revision)
        if type(record) is HttpRequest:
            step.stream = self.stream(record.stream)
            step.stream.request = record
            step.sender = "client"
        elif type(record) is HttpResponse:
            step.stream = self.stream(record.stream)
            step.stream.response = record
            step.sender = "server"
            if step.stream.posted is not None:
                step.revision = step.stream.posted.revision
        elif type(record) is StreamEnd:
            step.stream = session.streams.pop(record.stream, NO_STREAM)
            self.settle(step, record)
        elif type(record) is Closed:
            session.ends_whole = not record.interrupted
        elif type(record) is Leftover:
            self.cut_off(record)
        elif type(record) is Exited:
            session.exited = record
        elif type(record) is Trouble:
            self.trouble(step, record)
        elif type(record) is Opened:
            return None
        return step

    def settle(self, step: Step, end: StreamEnd) -> None:
        """What the end of an HTTP exchange means for the request that it carried.

        An error status is an answer. In the stateless era closing the stream is a cancellation.
        """
        stream, request = step.stream, step.stream.posted
        if request is None or request.kind is not Kind.REQUEST:
            return
        in_flight = self.session.in_flight["client"]
        if in_flight.find(request.id) is not request:
            return
        if stream.was_refused:
            in_flight.answered(request.id)
            if request.probes:
                self.learn_from_refusal()
        elif not end.complete and request.stateless:
            request.cancelled = step
        elif not end.complete and not stream.troubled:
            self.session.cut_off.add(request.place)

    def trouble(self, step: Step, trouble: Trouble) -> None:
        if trouble.stream in self.session.streams:
            step.stream = self.session.streams[trouble.stream]
            step.stream.troubled = True
        if trouble.error in _GIVEN_UP:
            self.session.gave_up = trouble

    def cut_off(self, leftover: Leftover) -> None:
        """Part of a message had come when we ended it: nobody knows which request it answers."""
        session = self.session
        number = leftover.stream
        posted = session.streams[number].posted if number in session.streams else None
        waiting = session.in_flight["client"].waiting.values()
        session.cut_off.update(
            request.place for request in waiting if posted is None or request is posted
        )

    def step(
        self,
        place: int,
        frame: Frame,
        message: Message,
        stream: SessionStream,
        in_batch: bool = False,
    ) -> Step:
        step = Step(place, frame, message, frame.sender, stream=stream, in_batch=in_batch)
        kind = message.kind
        if kind is Kind.REQUEST:
            step.method = message.method or ""
            self.request(step)
        elif kind is Kind.RESULT or kind is Kind.ERROR:
            self.answer(step)
        elif kind is Kind.NOTIFICATION:
            step.method = message.method or ""
            self.notification(step)
        elif kind is Kind.INVALID:
            self.malformed(step)
        if step.revision is None or (self.session.forced and not step.probes):
            step.revision = self.session.revision
        step.stateless = step.revision in _STATELESS
        if frame.sender == "client" and step.method not in _BEFORE_THE_ANSWER:
            self.session.answer_was_read = step.method != "initialize"
        if stream is not NO_STREAM and stream.posted is None and frame.sender == "client":
            stream.posted = step
        step.routine = is_routine(step)
        self.session.messages += 1
        return step

    def request(self, step: Step) -> None:
        session = self.session
        if step.sender == "client":
            self.learn_from_request(step)
        in_flight = session.in_flight[step.sender]
        identifier = step.id
        step.id_was_waiting = in_flight.find(identifier) is not None
        step.id_was_used = not in_flight.sent(identifier, step)

    def learn_from_request(self, step: Step) -> None:
        session = self.session
        if step.method == "initialize":
            if not session.initialize_sent:
                session.in_flight["client"].forget_settled()  # what was tried before is no session
            session.initialize_sent = True
            session.initialize_answered = session.initialized = False
            session.client_capabilities = step.params.get("capabilities")
            if session.revision and session.revision.era is Era.STATELESS and not session.forced:
                session.revision = None
            return
        meta = step.meta
        named = revision_of_wire(meta.get(PROTOCOL_VERSION)) if meta else None
        if named is None and step.method == "server/discover":
            named = session.stateless_revision or Revision.V2026_07_28
        if named is None or named.era is not Era.STATELESS:
            return
        step.revision = session.stateless_revision = named
        step.probes = not session.initialize_sent
        session.client_capabilities = meta.get(CLIENT_CAPABILITIES)
        if not session.initialize_sent and not session.forced:
            session.revision = named

    def answer(self, step: Step) -> None:
        session = self.session
        asker = other_side(step.sender)
        in_flight = session.in_flight[asker]
        identifier = step.id
        request = in_flight.answered(identifier) or self.request_of_exchange(step, in_flight)
        if request is None:
            if identifier not in in_flight.malformed:
                step.mismatch = self.mismatch(in_flight, identifier)
                self.malformed(step)
            return
        step.request = request
        if request.place > session.last_answered[asker]:
            session.last_answered[asker] = request.place
        step.method = request.method
        step.revision = request.revision
        step.probes = request.probes
        if step.kind is Kind.RESULT and asker == "client":
            self.learn_from_result(step, request)
        elif request.probes:
            self.learn_from_refusal(step)

    def request_of_exchange(self, step: Step, in_flight: InFlight[Step]) -> Step | None:
        """An error without an id answers the request of its HTTP exchange, if there is one."""
        posted, response = step.stream.posted, step.stream.response
        if step.kind is not Kind.ERROR or step.id not in (ABSENT, None):
            return None
        if posted is None or response is None or in_flight.find(posted.id) is not posted:
            return None
        return in_flight.answered(posted.id)

    def malformed(self, step: Step) -> None:
        """What can't be a request, or answers nothing, may be answered by an error with its id."""
        malformed = self.session.in_flight[step.sender].malformed
        if step.id not in (ABSENT, None):
            malformed.add(step.id)
        elif step.message.value is ABSENT:
            for found in _ID_IN_TEXT.finditer(step.message.raw[:_SEARCHED]):
                malformed.add(decode(found[1]).value)

    def mismatch(self, in_flight: InFlight[Step], identifier: Any) -> AnswerMismatch:
        if identifier in in_flight.seen:
            return AnswerMismatch.AGAIN
        if in_flight.twin_of_other_type(identifier) is not None:
            return AnswerMismatch.OTHER_TYPE
        return AnswerMismatch.UNKNOWN

    def learn_from_result(self, step: Step, request: Step) -> None:
        session = self.session
        result = step.result if isinstance(step.result, dict) else {}
        if request.method == "initialize":
            session.initialize_answered = True
            version = result.get("protocolVersion")
            session.agreed_version = version if isinstance(version, str) else None
            agreed = revision_of_wire(version)
            if agreed is not None and agreed.era is Era.HANDSHAKE:
                session.handshake_revision = agreed
                session.revision = session.forced or agreed
            step.revision = session.revision
        elif request.revision in _STATELESS and _offers_statelessness(request, result):
            session.stateless_answers += 1
            session.stateless_came_first = session.stateless_came_first or request.probes
        elif request.probes:
            self.learn_from_refusal()
        if request.method in {"initialize", "server/discover"}:
            capabilities = result.get("capabilities")
            if isinstance(capabilities, dict):
                session.server_capabilities = capabilities

    def learn_from_refusal(self, error: Step | None = None) -> None:
        """A probe was refused: unless another was served, what follows is not stateless."""
        session = self.session
        if error is None or error.error_code not in STATELESS_CODES:
            session.probe_refused = True
        if session.forced is None and not session.stateless_answers and not session.initialize_sent:
            session.revision = session.wanted

    def notification(self, step: Step) -> None:
        session = self.session
        if step.method == "notifications/initialized" and step.sender == "client":
            session.initialized = True
        elif step.method == "notifications/cancelled":
            request = session.in_flight[step.sender].find(step.params.get("requestId", ABSENT))
            if request is not None:
                step.request = request
                request.cancelled = step


def _offers_statelessness(request: Step, result: dict[str, Any]) -> bool:
    """Every result of the stateless era does, except a discovery that names older revisions only:
    it sends the client on to `initialize`."""
    versions = result.get("supportedVersions")
    if request.method != "server/discover" or not isinstance(versions, list):
        return True
    known = [revision_of_wire(one) for one in versions]
    return not any(known) or any(one in _STATELESS for one in known)
