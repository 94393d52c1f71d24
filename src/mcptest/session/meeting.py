"""Meeting a server: which revision is spoken with it, and on which connection.

Unless a revision was asked for, the first connection is asked `server/discover`, as the
specification tells a client to that speaks both eras. A discovery that lists a stateless revision
settles it there and then. Whatever is no discovery (an error, a refused HTTP request, a process
that ended) means handshake, and so does a discovery that lists older revisions only. The handshake
always has a fresh process, or a fresh connection over HTTP: what a server makes of its first
message must not follow it into the session.

No time limit says what a server speaks. One that is silent may be slow to start, so a *twin* is
started beside it, another process or connection, and asked `initialize`. The twin's answer shows
how long a start takes here and now. A server that has read the question, and has had twice as long
as the twin (and a tenth of the time that a start may take), is one that ignores `server/discover`;
over HTTP, where nothing is started, half of that time has to be over. Then the twin becomes the
session. If the first one answers before that, its answer decides. A twin that ends may have been
kept out by the first: if that stays silent, it is ended and `initialize` is asked on a process that
has the machine for itself. Decision 0011 has the reasons.

What is recorded is held back until it is settled which connection is the session: the others leave
nothing in a capture but the reason for the revision.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TypeAlias, TypedDict, Unpack

import msgspec

from mcptest.core.capture import AnyRecord, Frame, TransportName
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import MEBIBYTE, Deadline, now
from mcptest.core.message import Kind, Message
from mcptest.core.revision import (
    HANDSHAKE_REVISIONS,
    NEWEST_HANDSHAKE,
    NEWEST_STATELESS,
    STATELESS_REVISIONS,
    Era,
    Revision,
    revision_of_wire,
)
from mcptest.core.safe_text import show
from mcptest.session.connection import Connection, Pending, Stopped
from mcptest.session.lifecycle import Lifecycle, is_discovery, is_modern, versions_named
from mcptest.transport.base import Sink, Transport, discard, http_streams

Reach: TypeAlias = Callable[[TransportName | None, Sink], Transport]
"""A fresh transport to the server, not opened yet; None is the way that the server is named by."""
Began: TypeAlias = Callable[[TransportName, str], None]
"""Told which way a session goes and why in its revision, before the first record of it."""

ASKED_FOR = "requested with --spec-version"
PATIENCE = 2.0
_TWIN_STARTS_AFTER = 0.25
"""Seconds of silence after which a second process is worth starting: an old server needs it."""
_TWIN_ASKED_AFTER = 1.5
"""Seconds of silence after which it is asked. Neither number decides what a server speaks."""
_TURN = 0.02
"""How long one of two connections is listened to before it is the other's turn."""
_LEAVING = 2.0
_LARGE_ANSWER = 256 * 1024
_SHARE_OF_LIMIT = 0.5
_LEAST_SHARE = 0.1
_LAST_MOMENT = 0.9
"""The share of the limit after which silence counts in any case, so that the twin can go on."""
_ALONE_AFTER = 0.75
"""The share of the limit after which a silent server is ended, if no twin can run beside it."""
_HELD = 16 * MEBIBYTE
_RECORD_COST = 200
_SHOWN = 100

_UNREACHABLE = frozenset(
    {
        ErrorKind.CONNECTION_REFUSED,
        ErrorKind.NAME_NOT_FOUND,
        ErrorKind.TLS,
        ErrorKind.REDIRECT_REFUSED,
        ErrorKind.ADDRESS_REFUSED,
        ErrorKind.SPAWN_FAILED,
    }
)
_ENDED = frozenset({ErrorKind.EXITED, ErrorKind.CLOSED})


class Manner(TypedDict, total=False):
    """How a server is met, and who is told of it."""

    reach: Reach | None
    """Makes connections to the server."""
    revision: Revision | None
    """None, as is usual: find out which one it is."""
    because: str
    """Why it is the revision that is given: `ASKED_FOR` unless something else is said."""
    way: TransportName | None
    """The transport to use, where it is not the one that the server is named by."""
    falls_back: bool
    """Whether another transport may be tried than the one that was named, as is usual."""
    starts_ahead: bool
    """Whether a second process may be started before it is known if it is needed, as is usual."""
    patience: float
    """How long a process that is not the session is given to end by itself."""
    sink: Sink | None
    began: Began | None
    """Told of the session before `sink` gets the first record of it."""


class Met(msgspec.Struct, frozen=True):
    """What a meeting found out, for further sessions with the same server."""

    revision: Revision
    reason: str
    """Why this revision is spoken, as a clause."""
    transport: TransportName


class HeldSink(msgspec.Struct, eq=False):
    """The sink of a connection. It can keep what it is told until it is known what that was."""

    sink: Sink
    begin: Callable[[], None]
    kept: list[AnyRecord] | None = None
    size: int = 0
    has_ended: bool = False
    """It takes no more. What was kept may still be released."""

    def __call__(self, record: AnyRecord) -> None:
        if self.has_ended:
            return
        if self.kept is None:
            self.sink(record)
            return
        self.kept.append(record)
        self.size += _RECORD_COST + (len(record.raw) if type(record) is Frame else 0)
        if self.size > _HELD:  # who says that much before its first answer is told of at once
            self.release()

    def release(self) -> None:
        """It belongs to a session, or there is none: pass on what was kept, and what follows."""
        kept, self.kept = self.kept, None
        if kept or (kept is not None and not self.has_ended):
            self.begin()
            for record in kept:
                self.sink(record)


class Approach(msgspec.Struct, eq=False):
    """One connection on which a session was asked for, and what came of it."""

    connection: Connection
    held: HeldSink
    lifecycle: Lifecycle | None = None
    pending: Pending | None = None
    since: float = msgspec.field(default_factory=now)
    asked_at: float = 0.0
    stood_beside: bool = False
    """Whether another process of the server ran at the same time."""
    failure: PeerError | None = None
    is_open: bool = False

    @property
    def transport(self) -> Transport:
        return self.connection.transport

    @property
    def answer(self) -> Message | None:
        return self.pending.answer if self.pending is not None else None

    @property
    def trouble(self) -> PeerError | None:
        """Why no answer can come."""
        failed_later = self.pending.failure if self.pending is not None else None
        return self.failure or failed_later

    @property
    def is_settled(self) -> bool:
        return self.answer is not None or self.trouble is not None

    @property
    def is_agreed(self) -> bool:
        """Whether `initialize` was answered with a revision that we speak."""
        if self.answer is None or self.answer.kind is not Kind.RESULT:
            return False
        result = self.answer.result
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        return revision_of_wire(version) in HANDSHAKE_REVISIONS

    @property
    def has_ended(self) -> bool:
        """Whether the server ended, or closed a pipe, instead of answering."""
        return self.answer is None and self.trouble is not None and self.trouble.kind in _ENDED

    @property
    def has_unread(self) -> bool:
        """Whether the server has not even read the question, as far as the system tells."""
        return bool(getattr(self.transport, "has_unread_input", False))

    def open(self, deadline: Deadline) -> None:
        """Raises PeerError when there is no connection to be had."""
        if not self.is_open:
            self.held.kept = []
            self.since = now()
            self.is_open = True
            self.transport.open(deadline)

    def begin(self, lifecycle: Lifecycle, deadline: Deadline) -> None:
        """Ask on a connection that is open."""
        self.lifecycle = lifecycle
        self.asked_at = now()
        try:
            self.pending = lifecycle.begin(deadline)
        except PeerError as error:
            self.failure = error  # whoever waits for the answer is told

    def listen(self, deadline: Deadline) -> None:
        """Take in what comes, until something did or the deadline passed."""
        try:
            self.connection.pump(deadline)
        except PeerError as error:
            self.failure = error

    def finish(self, deadline: Deadline) -> None:
        """Complete the beginning. Raises PeerError with the reason why there is no session."""
        if self.failure is not None:
            raise self.failure
        assert self.lifecycle is not None
        assert self.pending is not None
        self.lifecycle.finish(self.pending, deadline)

    def leave(self) -> None:
        """Give back a session that was begun for nothing, where there is a way to."""
        session = self.pending.header("mcp-session-id") if self.pending is not None else None
        streams = http_streams(self.transport)
        if session and streams is not None:
            limit = Deadline.after(_LEAVING)
            with contextlib.suppress(PeerError, Stopped):
                stream = streams.request("DELETE", limit, {"Mcp-Session-Id": session})
                self.connection.await_status(stream, "DELETE", limit)

    def close(self, patience: float = _LEAVING) -> None:
        self.transport.close(Deadline.after(patience))


class Meeting:
    """Begins one session with one server. `settle` gives the approach that became it."""

    def __init__(
        self,
        first: Transport | None,
        connect: Callable[[Transport, Sink], Connection],
        lifecycle: Callable[[Connection, Revision], Lifecycle],
        **manner: Unpack[Manner],
    ) -> None:
        """`first` is the first connection where there is one; `reach` makes it otherwise."""
        self._patience = manner.get("patience", PATIENCE)
        self._reach = manner.get("reach")
        self._starts_ahead = manner.get("starts_ahead", True)
        self._falls_back = manner.get("falls_back", True)
        self._sink = manner.get("sink") or discard
        self._began = manner.get("began")
        self._connect = connect
        self._lifecycle = lifecycle
        self.wanted = manner.get("revision")
        self.because = manner.get("because", ASKED_FOR)
        """Why the wanted revision is."""
        self.reason = ""
        self._open: list[Approach] = []
        self._twin: Approach | None = None
        self._twin_answered_at: float | None = None
        self._twin_ended = False
        """Whether the twin ended beside the first process, which may have been why."""
        self._untold: list[HeldSink] = []
        """What was said on connections that did not become the session."""
        self._leaving: list[threading.Thread] = []
        self.first = self._approach(manner.get("way"), first)

    # -- connections -----------------------------------------------------------------------

    def _approach(self, way: TransportName | None, transport: Transport | None = None) -> Approach:
        def begin() -> None:
            if self._began is not None and transport is not None:
                self._began(transport.name, self.reason)

        held = HeldSink(self._sink, begin)
        if transport is None:
            assert self._reach is not None
            transport = self._reach(way, held)
        return Approach(self._connect(transport, held), held)

    def _opened(self, approach: Approach, deadline: Deadline) -> Approach:
        self._open.append(approach)
        if approach.transport.name == "stdio" and (len(self._open) > 1 or self._leaving):
            for one in self._open:
                one.stood_beside = True
        approach.open(deadline)
        return approach

    def _ask(self, approach: Approach, revision: Revision, deadline: Deadline) -> Approach:
        if approach not in self._open:
            self._opened(approach, deadline)
        approach.begin(self._lifecycle(approach.connection, revision), deadline)
        return approach

    def _fresh(
        self, offer: Revision, deadline: Deadline, way: TransportName | None = None
    ) -> Approach:
        return self._ask(self._approach(way or self.first.transport.name), offer, deadline)

    def _discard(self, approach: Approach | None) -> None:
        """It is not the session: it is ended on the side, so that nobody waits for that."""
        if approach is None or approach not in self._open:
            return
        self._open.remove(approach)
        approach.leave()
        approach.held.has_ended = True
        self._untold.append(approach.held)
        if approach.has_ended:
            approach.close()
            return
        leaving = threading.Thread(
            target=approach.close, args=(self._patience,), name="mcptest-leaving"
        )
        self._leaving.append(leaving)
        leaving.start()

    def await_leaving(self) -> None:
        """Wait until whatever is not the session is gone."""
        while self._leaving:
            self._leaving.pop().join()

    def close(self, deadline: Deadline) -> None:
        """End every connection; a session has said its farewell before."""
        try:
            for approach in self._open or [self.first]:
                approach.transport.close(deadline)
        finally:
            self.await_leaving()
            self.let_go_of_large_answers()

    def let_go_of_large_answers(self) -> None:
        """Of a session that is one of dozens: each may have begun with megabytes."""
        for approach in self._open or [self.first]:
            pending = approach.pending
            if pending and pending.answer and len(pending.answer.raw) > _LARGE_ANSWER:
                pending.answer = None
                if approach.lifecycle is not None:
                    approach.lifecycle.forget()

    # -- beginning -------------------------------------------------------------------------

    @property
    def latest(self) -> Approach:
        """The connection that was tried last."""
        return self._open[-1] if self._open else self.first

    @property
    def has_asked(self) -> bool:
        """Whether anything was said yet."""
        return self.first in self._open

    def speak(self, met: Met) -> None:
        """Begin as another session with the same server did; nothing was said in this one yet."""
        self.wanted, self.because = met.revision, met.reason

    def launch(self, deadline: Deadline) -> None:
        """Open the first connection and ask, so that the server can get going."""
        by_transport = NEWEST_HANDSHAKE if self.first.transport.name == "sse" else NEWEST_STATELESS
        try:
            self._ask(self.first, self.wanted or by_transport, deadline)
        except BaseException:
            self._tell_everything()
            raise

    def settle(self, deadline: Deadline) -> Approach:
        """Begin the session. Raises PeerError when there is none to be had."""
        try:
            if not self.has_asked:
                self.launch(deadline)
            found = self._settled(deadline)
        except BaseException:
            self._tell_everything()
            raise
        for approach in [one for one in self._open if one is not found]:
            self._discard(approach)
        self._untold.clear()
        found.held.release()
        return found

    def _tell_everything(self) -> None:
        """There is no session: whatever was said is the evidence of why."""
        for held in (*self._untold, *(approach.held for approach in self._open)):
            held.release()
        self._untold.clear()

    def _settled(self, deadline: Deadline) -> Approach:
        if self.wanted is not None:
            self.reason = self.because
            return self._begun(self.first, self.wanted, deadline)
        if self.first.transport.name == "sse":
            self.reason = "HTTP+SSE starts with the handshake"
            return self._begun(self.first, NEWEST_HANDSHAKE, deadline)
        offer = self._found(deadline)
        if offer.era is Era.STATELESS:
            self.first.finish(deadline)
            return self.first
        return self._with_handshake(offer, deadline)

    def find_revision(self, deadline: Deadline) -> Met:
        """What to begin in, without beginning. Raises PeerError; the connections stay open."""
        self._starts_ahead = False  # no session begins here, so that none is waited for
        self.launch(deadline)
        return Met(self._found(deadline), self.reason, self.first.transport.name)

    def _found(self, deadline: Deadline) -> Revision:
        """The revision to begin in, by what `server/discover` got for an answer."""
        self._await_answer(deadline)
        first = self.first
        if first.has_ended and first.stood_beside and self._reach is not None:
            # It ended while another one ran beside it, which may be why: ask once more, alone.
            self._discard(self._twin)
            self._discard(self.first)
            self.await_leaving()
            self.first = self._fresh(NEWEST_STATELESS, deadline)
            self._listen(self.first, deadline)
            first = self.first
        elif not first.is_settled and self._twin_ended and not deadline.expired:
            # The first one is silent and lets no twin run. Raises PeerError if it is of no era.
            self._discard(self.first)
            self.await_leaving()
            self._twin = self._fresh(NEWEST_HANDSHAKE, deadline)
            self._listen(self._twin, deadline)
            if not self._twin.is_agreed:
                self._twin.finish(deadline)
        offer, self.reason = self._read(first, deadline)
        return offer

    # -- waiting for the first answer ------------------------------------------------------

    def _await_answer(self, deadline: Deadline) -> None:
        """Wait until the first connection has answered, or its silence counts as an answer."""
        first = self.first
        if self._reach is not None:
            if self._starts_ahead and first.transport.name == "stdio":
                self._listen_for(_TWIN_STARTS_AFTER, deadline)
                self._start_twin(deadline)
            self._listen_for(_TWIN_ASKED_AFTER, deadline)
            self._await_reading(deadline)
            self._start_twin(deadline)
            if self._twin is not None and not self.first.is_settled and not deadline.expired:
                self._ask(self._twin, NEWEST_HANDSHAKE, deadline)
        while self._twin is not None and not first.is_settled and not deadline.expired:
            self._listen(first, deadline.within(_TURN))
            self._twin.listen(deadline.within(0.0 if self._twin.is_settled else _TURN))
            if self._twin.is_settled and not self._twin.is_agreed:
                self._twin_ended = self._twin.has_ended and self._twin.stood_beside
                self._discard(self._twin)  # nothing is learnt from it, whatever it was
                self._twin = None
            elif self._twin.is_agreed and self._is_silent(deadline):
                return
        if self._twin_ended and not first.has_unread:
            left = deadline.remaining() - deadline.limit * (1 - _ALONE_AFTER)
            self._listen(first, deadline.within(max(0.0, left)))
        else:
            self._listen(first, deadline)

    def _listen(self, approach: Approach, until: Deadline) -> None:
        while not approach.is_settled:
            approach.listen(until)
            if until.expired:
                return

    def _listen_for(self, seconds: float, deadline: Deadline) -> None:
        """Until so long after the first connection was asked."""
        left = self.first.asked_at + seconds - now()
        if left > 0:
            self._listen(self.first, deadline.within(left))

    def _await_reading(self, deadline: Deadline) -> None:
        """A process that has not read the question still starts: no twin would be faster."""
        until, is_late = deadline.limit * (1 - _SHARE_OF_LIMIT), False
        while self.first.has_unread and not self.first.is_settled and deadline.remaining() > until:
            self._listen(self.first, deadline.within(_TURN))
            is_late = True
        if is_late:
            self._listen(self.first, deadline.within(_TWIN_ASKED_AFTER))

    def _start_twin(self, deadline: Deadline) -> None:
        if self._twin is None and not self.first.is_settled and not deadline.expired:
            twin = self._approach(self.first.transport.name)
            with contextlib.suppress(PeerError):  # then the first one is waited for all the longer
                self._twin = self._opened(twin, deadline)

    def _is_silent(self, deadline: Deadline) -> bool:
        """Whether the first connection has had every chance to answer. The twin has answered."""
        first, limit = self.first, deadline.limit
        waited = now() - first.since
        if self._twin_answered_at is None:
            self._twin_answered_at = now()
        if deadline.remaining() < limit * (1 - _LAST_MOMENT):
            return True
        if first.transport.name != "stdio":
            return waited >= limit * _SHARE_OF_LIMIT
        enough = max(2 * (self._twin_answered_at - first.since), limit * _LEAST_SHARE)
        return not first.has_unread and waited >= enough

    # -- reading it ------------------------------------------------------------------------

    def _read(self, first: Approach, deadline: Deadline) -> tuple[Revision, str]:
        """The revision to begin in, and why. Raises PeerError when there is none."""
        answer = first.answer
        if answer is not None and is_modern(answer):
            return self._read_modern(first, answer, deadline)
        if answer is not None:
            return NEWEST_HANDSHAKE, _refusal(answer)
        if first.trouble is not None:
            if first.trouble.kind in _UNREACHABLE or self._reach is None:
                raise first.trouble
            return NEWEST_HANDSHAKE, _failed(first)
        if self._twin is None or not self._twin.is_agreed:
            self._await_in_vain(first, deadline)
            return self._read(first, deadline)  # it came at the last moment
        one = "process" if first.transport.name == "stdio" else "connection"
        which = f"another {one}, alone," if self._twin_ended else f"a second {one}"
        return NEWEST_HANDSHAKE, (
            f"the server did not answer server/discover, but {which} answered initialize"
        )

    def _await_in_vain(self, first: Approach, deadline: Deadline) -> None:
        """The time is over, and neither question was answered. Raises PeerError."""
        assert first.pending is not None
        try:
            first.connection.settle(first.pending, deadline)
        except PeerError as error:
            asked = "server/discover"
            told = error.message.replace(asked, f"{asked} or initialize", 1)
            raise PeerError(error.kind, told, hint=error.hint, unusable=error.unusable) from None

    def _read_modern(
        self, first: Approach, answer: Message, deadline: Deadline
    ) -> tuple[Revision, str]:
        named = versions_named(answer)
        if named is None:  # an error of the stateless era that is not about versions
            first.finish(deadline)
        known = [one for version in named or () if (one := revision_of_wire(version)) is not None]
        discovered = is_discovery(answer)
        if discovered and (not named or any(one in STATELESS_REVISIONS for one in known)):
            return NEWEST_STATELESS, "server/discover lists it"
        older = [one for one in known if one.era is Era.HANDSHAKE]
        if not older:
            first.finish(deadline)  # says what the server names
        where = "server/discover lists" if discovered else "the server names in its error"
        return max(older, key=lambda one: one.place), f"the newest that {where}"

    # -- the handshake ---------------------------------------------------------------------

    def _with_handshake(self, offer: Revision, deadline: Deadline) -> Approach:
        """Begin on a connection that was asked nothing else before."""
        if self._reach is None:
            raise PeerError(ErrorKind.PROTOCOL, self.reason)
        self._discard(self.first)
        approach = self._twin
        if approach is not None and approach.pending is None:
            self._ask(approach, offer, deadline)
        elif approach is None or approach.trouble is not None or offer is not NEWEST_HANDSHAKE:
            self._discard(approach)
            approach = self._fresh(offer, deadline)
        try:
            return self._begun(approach, offer, deadline)
        except PeerError as error:
            if error.kind is ErrorKind.PROTOCOL and not error.hint:
                told = f"{error.message} (offered {offer}: {self.reason})"
                raise PeerError(
                    error.kind, told, hint=error.hint, unusable=error.unusable
                ) from None
            if error.kind not in _ENDED or not approach.stood_beside:
                raise
        # It ended while the first one was still there: it may allow no second one beside itself.
        self._discard(approach)
        self.await_leaving()
        return self._begun(self._fresh(offer, deadline), offer, deadline)

    def _begun(self, approach: Approach, offer: Revision, deadline: Deadline) -> Approach:
        try:
            approach.finish(deadline)
        except PeerError as error:
            if not self._may_speak_sse(approach, offer, error):
                raise
            self._discard(approach)
            self.reason += "; the server supports only HTTP+SSE"
            offer = self.wanted or Revision.V2024_11_05
            approach = self._fresh(offer, deadline, "sse")
            approach.finish(deadline)
        assert approach.lifecycle is not None
        chosen = approach.lifecycle.revision
        if chosen is not offer:
            self.reason += f"; the server answered a proposal of {offer} with {chosen}"
        return approach

    def _may_speak_sse(self, approach: Approach, offer: Revision, error: PeerError) -> bool:
        """Whether a refused POST means that the server may still speak HTTP+SSE."""
        return (
            self._falls_back
            and self._reach is not None
            and approach.transport.name == "http"
            and offer.era is Era.HANDSHAKE
            and error.kind in {ErrorKind.HTTP_STATUS, ErrorKind.PROTOCOL}
            and approach.connection.last_status in {400, 404, 405}
        )


def _refusal(answer: Message) -> str:
    error = answer.error
    if not isinstance(error, dict):
        return "server/discover returned something else"
    code = show(str(error.get("code")), 20)
    return f"the server rejected server/discover ({code} {show(str(error.get('message')), _SHOWN)})"


def _failed(first: Approach) -> str:
    trouble = first.trouble
    assert trouble is not None
    if trouble.kind in _ENDED:
        return "the server exited at server/discover"
    status = first.pending.status if first.pending is not None else None
    if status is not None:
        return f"the server rejected server/discover (HTTP {status})"
    return f"server/discover failed ({show(trouble.message.partition(chr(10))[0], _SHOWN)})"
