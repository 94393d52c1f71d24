"""A live server: met in either era, left, and met again after a crash or a hang.

The one place that makes a `Client`. Whatever drives a server says here how it is to be reached, for
how long it may be waited for and where its tape comes from, and asks through the client of the
session. What was found out about a server when it was met need not be found out again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Unpack

from mcptest.core.capture import TransportName
from mcptest.core.errors import was_interrupted
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.message import Message
from mcptest.core.redaction import redaction
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.session.answers import Answers
from mcptest.session.client import Client
from mcptest.session.connection import Stopped
from mcptest.session.meeting import PATIENCE, Manner, Met
from mcptest.session.tape import Tape
from mcptest.transport.target import Target, reach_of

_CLOSING = 5.0
_CLOSING_THE_DEAF = 0.3
_VAIN_STARTS = 2
"""After so many starts in a row that failed, a server is given up."""

_MOST_ENDED = MEBIBYTE


def answered_twice(answer: Message) -> str:
    """That a request had an answer already when this one came."""
    text = answer.raw.decode("utf-8", "backslashreplace")
    shown = show(redaction.masker.cut_text(text), 200)
    return f"the server answered a request twice; the second response is ignored: {shown}"


def _tape(label: str, capture: Path | None) -> Tape:
    if capture is None:
        return Tape(label)
    from mcptest.transport.recorder import Recorder  # few sessions are kept

    return Tape(label, Recorder(capture, masker=redaction.masker))


class LiveSession:
    """One server and the session with it. Use it as a context manager, or call `drop` at the end.

    There is one session at a time: `begin` begins it, `drop` ends it, and then `begin` begins
    another one, with a client and a tape of its own.
    """

    _ended_bytes: ClassVar[int] = 0
    """What sessions that are over may still hold. A client and its connection know each other, so a
    session goes only when Python's collector comes by; and that counts objects, not bytes."""

    def __init__(
        self,
        target: Target,
        *,
        answers: Answers | None = None,
        timeout: float = 30.0,
        startup: float = 30.0,
        closing: float = _CLOSING,
        capture: Path | None = None,
        new_tape: Callable[[], Tape] | None = None,
        should_stop: Callable[[], bool] | None = None,
        **manner: Unpack[Manner],
    ) -> None:
        """`timeout` is for an answer, `startup` for a beginning and `closing` for an end.

        `answers` None: a client that is equipped for everything. `capture` is the file in which
        the session is kept, or `new_tape` makes the tape of the next one. For the rest see
        `Manner`; without `reach` the target is reached.
        """
        self.target = target
        self.timeout = timeout
        self.startup = startup
        self.met: Met | None = None
        """What the first session found out about the server."""
        self.sessions = 0
        """Sessions that were begun, or tried to."""
        self.restarts = 0
        """Sessions that were begun after another one."""
        self._manner = manner
        self._manner["reach"] = manner.get("reach") or reach_of(target)
        self._answers = answers if answers is not None else Answers()
        self._closing = closing
        self._new_tape = new_tape or (lambda: _tape(target.label, capture))
        self._should_stop = should_stop
        self.tape = Tape(target.label)
        """What went over the session; over the last one where it is over."""
        self._client: Client | None = None
        self._is_prepared = False
        self._vain = 0

    # -- beginning -------------------------------------------------------------------------

    def prepare(self) -> Client:
        """The client of the next session, to whom nothing was said yet."""
        if self._client is None or not self._is_prepared:
            self._client, self.tape = None, Tape(self.target.label)
            LiveSession.release_ended()
            tape = self.tape = self._new_tape()
            manner: Manner = {**self._manner, "revision": self._wanted, "sink": tape}
            manner["began"] = self.tell_beginning
            if self.met is not None:
                manner["way"], manner["falls_back"] = self.met.transport, False
                manner["because"] = self.met.reason
            self._client = Client(
                answers=self._answers,
                timeout=self.timeout,
                before_waiting=tape.recorder.flush if tape.recorder is not None else None,
                should_stop=self._should_stop,
                **manner,
            )
            self._is_prepared = True
        return self._client

    @staticmethod
    def release_ended() -> None:
        """Give back what sessions held that are over, if it may be much.

        Before another session begins, and before large messages of another source are read.
        """
        if LiveSession._ended_bytes > _MOST_ENDED:
            LiveSession._ended_bytes = 0
            Tape.forget_large()
            gc.collect()

    @property
    def _wanted(self) -> Revision | None:
        met = self.met.revision if self.met is not None else None
        return self._manner.get("revision") or met

    def tell_beginning(self, way: TransportName, reason: str) -> None:
        """A session begins; what was said on another connection before is none of it."""
        self.tape.begin_again(way)
        if self.tape.recorder is not None:
            self.tape.recorder.begin(
                label=self.target.label,
                transport=way,
                peer=self.target.peer,
                spec_version=self._wanted.value if self._wanted is not None else "auto",
                revision_reason=reason,
            )

    def launch(self) -> None:
        """Let the server get going while we do something else. Raises PeerError."""
        if not self._is_prepared:
            try:
                self.prepare().meeting.launch(Deadline.for_start(self.startup, self.timeout))
            except BaseException as error:
                self.drop(interrupted=was_interrupted(type(error)))
                raise

    def begin(self) -> Client:
        """Begin a session, in a process of its own where the server is one. Raises PeerError."""
        client = self.prepare()
        again = self.sessions > 0
        self.sessions += 1
        try:
            client.connect(Deadline.for_start(self.startup, self.timeout))
        except BaseException as error:
            self._vain += 1
            self.drop(interrupted=was_interrupted(type(error)))
            raise
        self._vain = 0
        self.restarts += again
        self.met = client.met
        return client

    def find_revision(self, deadline: Deadline) -> Met:
        """Find out what the server speaks, and begin no session. Raises PeerError."""
        try:
            return self.prepare().meeting.find_revision(deadline)
        finally:
            self.drop(self._manner.get("patience", PATIENCE))

    # -- being there -----------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of the session; of the last one where it is over."""
        return self._client if self._client is not None else self.prepare()

    @property
    def is_open(self) -> bool:
        """Whether there is a session that has begun."""
        return self._is_prepared and self.client.has_begun

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended, as far as can be told without waiting."""
        if not self._is_prepared:
            return False
        transport = self.client.connection.transport
        return self.tape.exited is not None or bool(getattr(transport, "has_exited", False))

    @property
    def given_up(self) -> bool:
        """Whether it failed to come back so often that it is not tried any more."""
        return self.sessions > 0 and self._vain >= _VAIN_STARTS

    @property
    def alive_method(self) -> str:
        """A request that every server answers."""
        return "server/discover" if self.client.revision.era is Era.STATELESS else "ping"

    # -- ending ----------------------------------------------------------------------------

    def drop(
        self, patience: float | None = None, *, deaf: bool = False, interrupted: bool = False
    ) -> None:
        """End the session; `begin` begins another. One that is `deaf` is not waited for."""
        if not self._is_prepared:
            return
        self._is_prepared = False
        tape = self.tape
        tape.is_closing = True
        limit = _CLOSING_THE_DEAF if deaf else self._closing
        try:
            self.client.close(Deadline.after(limit if patience is None else patience))
        except Stopped:
            pass  # a farewell over HTTP was cut short; the connection is closed all the same
        finally:
            LiveSession._ended_bytes += tape.bytes_seen
            if tape.recorder is not None:
                tape.recorder.close(interrupted=interrupted)

    def __enter__(self) -> LiveSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.drop(interrupted=was_interrupted(kind))

    # -- what to say of it -----------------------------------------------------------------

    def second_answers(self) -> Iterator[str]:
        """Answers that came to requests that had one, in sentences."""
        if self._client is not None:
            yield from map(answered_twice, self._client.connection.second_answers(self.tape.late))

    @property
    def capture_trouble(self) -> str:
        """What is wrong with the capture, if one is kept."""
        recorder = self.tape.recorder
        if recorder is not None and recorder.error is not None:
            reason = recorder.error.strerror or recorder.error
            return f"the capture {recorder.written_to} is not complete: {reason}"
        if recorder is not None and recorder.dropped:
            return f"the capture {recorder.path} is full and lacks {recorder.dropped} records"
        return ""

    def troubles(self) -> Iterator[str]:
        """What came beside the answers, and what is wrong with the capture."""
        yield from self.second_answers()
        if self.capture_trouble:
            yield self.capture_trouble
