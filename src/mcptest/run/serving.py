"""Bringing up the server of a test: the target, docker around it, a client, a witness."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcptest.model.capture import AnyRecord, Exited, Frame, Stderr, TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.errors import UsageError
from mcptest.model.masking import Masker
from mcptest.model.message import id_key
from mcptest.model.revision import Revision
from mcptest.peer.answers import NO_ANSWERS, Answers
from mcptest.peer.client import Client
from mcptest.run.naming import ServerWords, target_of
from mcptest.suite.model import ClientCapabilities, SamplingMock, ServerSpec
from mcptest.suite.templates import fill_in
from mcptest.transport.base import Transport
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target, transport_for
from mcptest.wire.envelope import decode

_REQUESTS_KEPT = 1_000
_STDERR_KEPT = 20
_HEAD = 80
"""Where the method stands in a message of ours."""
_SHOWN_OF_AN_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """What the command line says about servers, over what the suite says."""

    server: str | None = None
    command: tuple[str, ...] = ()
    """The words after a bare `--`: they are the command, whatever they look like."""
    docker: str = ""
    captures: Path | None = None
    """The folder in which to keep what went over the wire."""
    env: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    spec_version: str = ""
    """Empty: as the suite says."""

    @property
    def is_given(self) -> bool:
        return self.server is not None or bool(self.command)


class Witness:
    """The sink of a test's session: keeps the last of everything, for the proof of a failure."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        self.exited: Exited | None = None
        self.recorder = recorder
        self.last_answer = b""
        """The beginning of what the server sent last."""
        self._requests: deque[bytes] = deque(maxlen=_REQUESTS_KEPT)

    def __call__(self, record: AnyRecord) -> None:
        if type(record) is Frame:
            if record.sender == "server":
                self.last_answer = record.raw[:_SHOWN_OF_AN_ANSWER]
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
        """Another process, or another transport, takes the place of the first."""
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


@dataclass(frozen=True, slots=True)
class Served:
    """A client that is being brought up, with everything that has to be taken down again."""

    client: Client
    witness: Witness
    target: Target
    masker: Masker

    def close(self, deadline: Deadline, *, interrupted: bool) -> None:
        try:
            self.client.close(deadline)
        finally:
            if self.witness.recorder is not None:
                self.witness.recorder.close(interrupted=interrupted)

    def troubles(self) -> Iterator[str]:
        """What is wrong with the capture, if one was kept."""
        recorder = self.witness.recorder
        if recorder is not None and recorder.error is not None:
            reason = recorder.error.strerror or recorder.error
            yield f"the capture {recorder.written_to} is not complete: {reason}"
        elif recorder is not None and recorder.dropped:
            yield f"the capture {recorder.path} lacks {recorder.dropped} records: it is full"


def target_for(spec: ServerSpec, choice: ServerChoice, fixture: str) -> Target:
    """How to reach a server whose templates and environment are filled in. May raise UsageError."""
    if spec.transport != "stdio":
        headers = {**spec.headers, **dict(choice.headers)}
        return target_of(ServerWords(server=spec.url, way=spec.transport, headers=headers))
    if choice.is_given:
        target = chosen_target(choice, fixture)
        if target.way != "stdio":
            return replace(target, headers={**target.headers, **dict(choice.headers)})
        target = replace(target, env={**target.env, **spec.env}, cwd=spec.cwd or target.cwd)
    elif spec.command:
        command = (spec.command, *spec.args)
        target = target_of(ServerWords(command=command, env=spec.env, cwd=spec.cwd))
    else:
        raise UsageError(f"{spec.place}: the server has no command")
    target = replace(target, env={**target.env, **dict(choice.env)}, cwd=choice.cwd or target.cwd)
    return _in_docker(target, spec.docker or choice.docker, fixture)


def chosen_target(choice: ServerChoice, fixture: str = "") -> Target:
    """The server that the command line names. May raise UsageError."""
    if choice.command:
        words = tuple(fill_in(word, fixture, {}) for word in choice.command)
        return target_of(ServerWords(command=words))
    return target_of(ServerWords(server=fill_in(choice.server or "", fixture, {})))


def is_remote(spec: ServerSpec, choice: ServerChoice) -> bool:
    """Whether the server is one that runs elsewhere, for everybody."""
    if spec.transport != "stdio":
        return True
    return choice.is_given and chosen_target(choice).way != "stdio"


def _in_docker(target: Target, image: str, fixture: str) -> Target:
    if not image:
        return target
    mount = ("-v", f"{fixture}:{fixture}") if fixture else ()
    passed = tuple(word for key, value in target.env.items() for word in ("-e", f"{key}={value}"))
    command = ("docker", "run", "--rm", "-i", *mount, *passed, image, *target.command)
    return replace(target, command=command, label=f"{image}: {target.label}")


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
        content=elicitation.content if elicitation else None,
    )


def _root(path: str) -> Mapping[str, str]:
    return {"uri": Path(path).absolute().as_uri(), "name": Path(path).name}


def serve(
    target: Target,
    answers: Answers,
    *,
    revision: Revision | None,
    timeout: float,
    masker: Masker,
    capture: Path | None,
    should_stop: Callable[[], bool],
) -> Served:
    """A client for the target, not launched yet."""
    recorder = Recorder(capture, masker=masker) if capture is not None else None
    witness = Witness(recorder)

    def begin_capture(way: TransportName) -> None:
        if recorder is not None:
            asked = revision.value if revision else "auto"
            recorder.begin(label=target.label, transport=way, peer=target.peer, spec_version=asked)

    def reopen(way: TransportName) -> Transport:
        """A new connection is a new session, also in the capture: its ids begin again."""
        witness.begin_again()
        begin_capture(way)
        return transport_for(target, witness, way=way)

    begin_capture(target.way)
    client = Client(
        transport_for(target, witness),
        revision=revision,
        answers=answers,
        timeout=timeout,
        reopen=reopen,
        before_waiting=witness.flush if recorder is not None else None,
        should_stop=should_stop,
        sink=witness,
    )
    return Served(client, witness, target, masker)


def masker_for(target: Target, secrets: Collection[str]) -> Masker:
    """Hides what the environment or a configuration gave and what the headers carry."""
    return Masker([*secrets, *target.secrets])
