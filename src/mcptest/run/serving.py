"""Bringing up the server of a test: the target, docker around it, a client, a witness."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.capture import AnyRecord, Exited, Frame, Stderr, TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.masking import Masker
from mcptest.model.message import id_key
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision
from mcptest.peer.answers import NO_ANSWERS, Answers
from mcptest.peer.client import Client
from mcptest.peer.meeting import ASKED_FOR
from mcptest.run.call_failed import answered_twice
from mcptest.run.choosing import ServerChoice, chosen_target, is_remote, target_for
from mcptest.suite.model import ClientCapabilities, SamplingMock
from mcptest.suite.templates import fill_json
from mcptest.transport.process import ServerProcess
from mcptest.transport.target import Target, reach_of
from mcptest.wire.envelope import decode

if TYPE_CHECKING:
    from pathlib import Path

    from mcptest.transport.recorder import Recorder

__all__ = [
    "Served",
    "ServerChoice",
    "Witness",
    "answers_for",
    "chosen_target",
    "is_remote",
    "masker_for",
    "serve",
    "target_for",
]

_REQUESTS_KEPT = 1_000
_STDERR_KEPT = 20
_LATE_BYTES = 1024 * 1024
_LATE_COST = 10_240
"""What a small line counts for: of those a hundred are kept."""
_HEAD = 80
"""Where the method stands in a message of ours."""
_SHOWN_OF_AN_ANSWER = 64 * 1024


class Witness:
    """The sink of a test's session: keeps the last of everything, for the proof of a failure."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        self.exited: Exited | None = None
        self.recorder = recorder
        self.last_answer = b""
        """The beginning of what the server sent last."""
        self._requests: deque[bytes] = deque(maxlen=_REQUESTS_KEPT)
        self.is_closing = False
        self._late_bytes = 0
        self.late: list[bytes] = []
        """What the server still sent when nobody took it in any more."""

    def __call__(self, record: AnyRecord) -> None:
        if type(record) is Frame:
            if record.sender == "server":
                self.last_answer = record.raw[:_SHOWN_OF_AN_ANSWER]
                if self.is_closing and self._late_bytes < _LATE_BYTES:
                    self._late_bytes += len(record.raw) + _LATE_COST
                    self.late.append(record.raw)
            elif b'"method":' in record.raw[:_HEAD]:  # no answers of ours, of which many may come
                self._requests.append(record.raw)
        elif type(record) is Stderr:
            self.stderr.append(record.text)
        elif type(record) is Exited:
            self.exited = record
        if self.recorder is not None:
            self.recorder(record)

    def flush(self) -> None:
        if self.recorder is not None:
            self.recorder.flush()

    def begin_again(self) -> None:
        """A session begins; what was told of another one is over."""
        self.exited = None
        self.stderr.clear()

    def request_with(self, identifier: object) -> bytes:
        """The bytes of a request of ours, by its id."""
        wanted = id_key(identifier)
        for raw in reversed(self._requests):
            if id_key(decode(raw).id) == wanted:
                return raw
        return b""

    @property
    def last_request(self) -> bytes:
        return self._requests[-1] if self._requests else b""


class Served(msgspec.Struct, frozen=True):
    """A client that is being brought up, with everything that has to be taken down again."""

    client: Client
    witness: Witness
    target: Target
    masker: Masker

    def close(self, deadline: Deadline, *, interrupted: bool) -> None:
        self.witness.is_closing = True
        try:
            self.client.close(deadline)
        finally:
            if self.witness.recorder is not None:
                self.witness.recorder.close(interrupted=interrupted)

    def second_answers(self) -> Iterator[str]:
        """Answers that came to requests that had one, in sentences."""
        for answer in self.client.connection.second_answers(self.witness.late):
            yield answered_twice(answer, self.masker)

    def troubles(self) -> Iterator[str]:
        """What is wrong with the capture, if one was kept, and what came beside the answers."""
        yield from self.second_answers()
        recorder = self.witness.recorder
        if recorder is not None and recorder.error is not None:
            reason = recorder.error.strerror or recorder.error
            yield f"the capture {recorder.written_to} is not complete: {reason}"
        elif recorder is not None and recorder.dropped:
            yield f"the capture {recorder.path} lacks {recorder.dropped} records: it is full"


def answers_for(declared: ClientCapabilities | None, mock: SamplingMock | None) -> Answers:
    """The client's static answers; what is not configured is not declared either."""
    if declared is None and mock is None:
        return NO_ANSWERS
    declared = declared or ClientCapabilities()
    sampling = declared.sampling or mock
    elicitation = declared.elicitation
    return Answers(
        roots=tuple(map(_root, declared.roots)) or None,
        sampling=sampling.text if sampling else None,
        model=sampling.model if sampling else "mock",
        stop_reason=sampling.stop_reason if sampling else "end_turn",
        elicitation=elicitation.action if elicitation else None,
        content=fill_json(elicitation.content, {}) if elicitation else None,
    )


def _root(path: str) -> Mapping[str, str]:
    from pathlib import Path

    return {"uri": Path(path).absolute().as_uri(), "name": Path(path).name}


def _recorder(capture: Path, masker: Masker) -> Recorder:
    from mcptest.transport.recorder import Recorder  # few runs keep what went over the wire

    return Recorder(capture, masker=masker)


def serve(
    target: Target,
    answers: Answers,
    *,
    revision: Revision | None,
    because: str = ASKED_FOR,
    timeout: float,
    masker: Masker,
    capture: Path | None,
    should_stop: Callable[[], bool],
    process: ServerProcess | None = None,
    patience: float = 2.0,
) -> Served:
    """A client for the target, not launched yet. `process` is its server, if it runs already.

    `patience` is for a process that was asked for its revision only, and is to end by itself.
    """
    recorder = _recorder(capture, masker) if capture is not None else None
    witness = Witness(recorder)

    def began(way: TransportName, reason: str) -> None:
        witness.begin_again()
        if recorder is not None:
            recorder.begin(
                label=target.label,
                transport=way,
                peer=target.peer,
                spec_version=revision.value if revision else "auto",
                revision_reason=reason,
            )

    client = Client(
        reach=reach_of(target, process),
        revision=revision,
        because=because,
        answers=answers,
        timeout=timeout,
        patience=patience,
        before_waiting=witness.flush if recorder is not None else None,
        should_stop=should_stop,
        sink=witness,
        began=began,
    )
    return Served(client, witness, target, masker)


def masker_for(target: Target, secrets: Collection[str]) -> Masker:
    """Hides what the environment or a configuration gave and what the headers carry."""
    redaction.learn(lambda: secrets)
    return redaction.masker
