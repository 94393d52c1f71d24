"""A server with its fixture copy: launched ahead, used by one test or by several, taken down."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcptest.core.capture import TransportName
from mcptest.core.errors import ErrorKind, McptestError, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.masking import Masker
from mcptest.core.message import Kind
from mcptest.core.redaction import redaction
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.probe.suites import server_start
from mcptest.probe.suites.settings import Numbered, Settings, server_key
from mcptest.session.answers import NO_ANSWERS, Answers
from mcptest.session.client import Client, Reply
from mcptest.session.connection import Stopped
from mcptest.session.live import LiveSession
from mcptest.session.meeting import ASKED_FOR, Met
from mcptest.suite.model import ClientCapabilities, SamplingBlock, SamplingMock, ServerSpec
from mcptest.suite.templates import fill_json
from mcptest.transport.base import Sink, Transport
from mcptest.transport.process import ServerProcess
from mcptest.transport.target import Target, reach_of, transport_for
from mcptest.transport.temporary import FixtureError, ServerFixture

# -- The failure of a test that got no answer it could use, and which kind of failure it is ------


class CallFailed(Exception):  # noqa: N818 - a failure of the test, not an error of ours
    """There was no answer that could be checked."""

    def __init__(self, detail: str, kind: str, *, lost: bool = False) -> None:
        """`lost`: it was the connection that failed; another test should not use it."""
        super().__init__(detail)
        self.detail = detail
        self.kind = kind
        self.lost = lost


def kind_of(error: PeerError) -> str:
    """Which kind of failure an error of the peer is, as results name it."""
    if error.unusable:
        return "protocol"
    if error.kind is ErrorKind.TIMEOUT:
        return "timeout"
    if error.kind in {ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.CONNECTION_LOST}:
        return "crash"
    return "start" if error.kind is ErrorKind.SPAWN_FAILED else "call"


def remarks_on(reply: Reply, failing: str, *, lenient: bool) -> list[str]:
    """What is odd about the form of an answer. CallFailed when no client should take it."""
    faults = reply.faults
    is_none = reply.message.kind is Kind.INVALID
    if faults.refused and (is_none or not lenient):
        detail = f"{failing}: the response is malformed: {faults.refused}"
        raise CallFailed(detail, "protocol", lost=is_none)
    about = failing.removesuffix(" failed")
    return [
        f"{about}: the response is {how}: {words}"
        for how, words in (("malformed", faults.refused), ("doubtful", faults.warned))
        if words
    ]


def answers_for(declared: ClientCapabilities | None, mock: SamplingMock | None) -> Answers:
    """The client's static answers; what is not configured is not declared either."""
    if declared is None and mock is None:
        return NO_ANSWERS
    declared = declared or ClientCapabilities()
    sampling = declared.sampling or mock
    elicitation = declared.elicitation
    paths = map(Path, declared.roots)
    roots = tuple({"uri": one.absolute().as_uri(), "name": one.name} for one in paths)
    return Answers(
        roots=roots or None,
        sampling=sampling.text if sampling else None,
        model=sampling.model if sampling else "mock",
        stop_reason=sampling.stop_reason if sampling else "end_turn",
        elicitation=elicitation.action if elicitation else None,
        content=fill_json(elicitation.content, {}) if elicitation else None,
    )


# -- A server with its fixture copy --------------------------------------------------------------

_CLOSING = 5.0
_CLOSING_IN_A_HURRY = 2.0
_CLOSING_AT_ONCE = 0.1
_LOOKING_UP = 0.2
_NO_SERVER = ServerSpec()
_UNSAFE_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class ServerSession:
    """One session with one server. `launch`, `connect` as often as one likes, `close`."""

    def __init__(self, item: Numbered, settings: Settings, attempt: int = 1) -> None:
        """`attempt` counts the sessions that were begun for the same tests."""
        self.served: LiveSession | None = None
        self.label = ""
        self.masker = Masker()
        self._settings = settings
        self._item = item
        self._attempt = attempt
        self._choice = item.choice or settings.choice
        self._spec = item.test.server or _NO_SERVER
        self._key = server_key(self._spec, self._choice)
        self.ground = ServerFixture()
        self.has_begun = False
        self._refusal: CallFailed | None = None
        self.remarks: list[str] = []
        """What is odd about how the session began."""

    def launch(self) -> None:
        """Copy the fixture and start the server; what goes wrong is told by `connect`."""
        if self._settings.should_stop():
            raise Stopped
        try:
            self._launch()
        except FixtureError as error:
            self._refusal = CallFailed(error.message, "fixture", lost=True)
        except McptestError as error:
            kind = kind_of(error) if isinstance(error, PeerError) else "start"
            hint = f" ({error.hint})" if error.hint else ""
            detail = f"failed to start MCP server: {error.message}{hint}"
            self._refusal = CallFailed(detail, kind, lost=True)

    def _launch(self) -> None:
        settings, test = self._settings, self._item.test
        server, target, process = self._begin()
        self.masker = redaction.masker
        # A label is made of parts of the command, and so may hold half a secret.
        safe, label = self.masker.text(target.peer), self.masker.text(target.label)
        self.label = label if safe == target.peer else show(safe, 120)
        target = replace(self._quickly(target), label=self.label)
        mock = test.block.mock if isinstance(test.block, SamplingBlock) else None
        limit = test.timeout or settings.timeout
        revision, because = self._speaking()
        served = LiveSession(
            target,
            revision=revision,
            because=because,
            answers=answers_for(server.client_capabilities, mock),
            reach=reach_of(target, process, settings.kept),
            patience=self._patience,
            timeout=limit,
            capture=self._capture_file(),
            should_stop=settings.should_stop,
        )
        served.prepare()
        self.served = served
        if revision is None:  # who connects first finds out for all
            served.client.meeting.first.open(Deadline.for_start(settings.startup or limit, limit))
        else:
            served.client.meeting.launch(Deadline.for_start(settings.startup or limit, limit))

    def _begin(self) -> tuple[ServerSpec, Target, ServerProcess | None]:
        """The ground and the server; and the process, where it was started ahead of everything."""
        head_start = self._settings.head_start
        if head_start is not None and head_start.is_taken_by(self._item, self._attempt):
            self.ground = head_start.ground
            return head_start.server, head_start.target, head_start.process
        self.ground = server_start.prepare_ground(self._settings.fixture, self._choice)
        return (*server_start.understand(self._spec, self._choice, self.ground.folder), None)

    def _quickly(self, target: Target) -> Target:
        """The same server, without a launcher in front once it is known what that starts."""
        if not self._settings.warm_start:
            return target
        shortcut = self._settings.memory.shortcuts.get(self._key)
        return server_start.with_compile_cache(shortcut.instead_of(target) if shortcut else target)

    def _learn_shortcut(self, served: LiveSession) -> None:
        """Once for all tests whose server is started in the same way."""
        shortcuts = self._settings.memory.shortcuts
        pid = getattr(served.client.connection.transport, "pid", None)
        is_launched = server_start.is_launched(served.target)
        if is_launched and pid is not None and self._key not in shortcuts:
            shortcuts[self._key] = server_start.learn(pid, served.target, self.ground.folder)

    @property
    def met(self) -> Met | None:
        """What the server speaks; None until the session has begun."""
        client = self.served.client if self.served is not None else None
        return client.met if client is not None and client.has_begun else None

    def _speaking(self) -> tuple[Revision | None, str]:
        """The revision that was asked for, else what an earlier test of the same server found out;
        and why."""
        asked = self._choice.spec_version or self._spec.spec_version
        if asked != "auto":
            because = ASKED_FOR if self._choice.spec_version else "requested with spec_version"
            return parse_revision(asked), because
        met = self._settings.memory.met.get(self._key)
        return (met.revision, met.reason) if met is not None else (None, "")

    def _capture_file(self) -> Path | None:
        folder = self._choice.captures
        if folder is None:
            return None
        item = self._item
        words = [f"{item.number + 1:04d}", item.test.name[:60], item.language[:20]]
        words += [f"trial-{item.trial}"] if item.trial > 1 else []
        words += [f"again-{self._attempt}"] if self._attempt > 1 else []
        safe = (_UNSAFE_IN_A_NAME.sub("_", word).strip("._") for word in words)
        return folder / f"{'-'.join(filter(None, safe))}.jsonl"

    def connect(self, deadline: Deadline) -> LiveSession:
        """Bring the session up, once. Raises CallFailed with the reason, the same each time."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # it would grow with each test
        try:
            return self._connect(deadline)
        except CallFailed as refusal:
            self._refusal = refusal
            raise

    def _connect(self, deadline: Deadline) -> LiveSession:
        served = self.served
        assert served is not None
        if not self.has_begun:
            try:
                self._meet(served.client, deadline)
            except PeerError as refused:
                kind = kind_of(refused)
                hint = f" ({refused.hint})" if refused.hint else ""
                detail = f"MCP initialize failed: {refused.message}{hint}"
                raise CallFailed(detail, "start" if kind == "call" else kind, lost=True) from None
            if (first := served.client.beginning) is not None:
                # The answer that began the session is held to what every answer is.
                failing, lenient = "MCP initialize failed", self._settings.lenient
                self.remarks = remarks_on(first, failing, lenient=lenient)
            self.has_begun = True
            if self._settings.warm_start:
                self._learn_shortcut(served)
        return served

    def _meet(self, client: Client, deadline: Deadline) -> None:
        """Begin the session. Of several that find out what a server speaks, one does so for all."""
        memory, key = self._settings.memory, self._key
        asking = None if client.meeting.has_asked else self._claim(deadline)
        if not client.meeting.has_asked and (met := memory.met.get(key)) is not None:
            client.meeting.speak(met)
        try:
            # Another process of the server would work in the test's copy of the fixture.
            is_started = self.served is not None and self.served.target.way == "stdio"
            if asking is not None and is_started and self.ground.is_copy:
                met = self._met_elsewhere(deadline)
                if met is not None:
                    client.meeting.speak(met)
            client.connect(deadline)
            memory.met.setdefault(key, client.met)
        finally:
            if asking is not None:
                memory.meetings.pop(key, None)
                asking.set()

    @property
    def _patience(self) -> float:
        """How long a process that was asked for its revision only may take to end by itself."""
        return _CLOSING_AT_ONCE if self._settings.quick_end else _CLOSING_IN_A_HURRY

    def _met_elsewhere(self, deadline: Deadline) -> Met | None:
        """What the server speaks, asked of processes that have copies of the fixture of their own.

        Whatever they leave in there is not what the test finds. None: the test's own server is to
        be asked, and has the evidence.
        """
        assert self.served is not None
        grounds: list[ServerFixture] = []

        def reach(way: TransportName | None, sink: Sink) -> Transport:
            ground = server_start.prepare_ground(self._settings.fixture, self._choice)
            grounds.append(ground)
            _, target = server_start.understand(self._spec, self._choice, ground.folder)
            return transport_for(self._quickly(target), sink, way=way)

        try:
            target, stop, patience = self.served.target, self._settings.should_stop, self._patience
            asking = LiveSession(target, reach=reach, should_stop=stop, patience=patience)
            return asking.find_revision(deadline)
        except McptestError:
            return None
        finally:
            for ground in grounds:
                self._remove(ground)

    def _remove(self, ground: ServerFixture) -> None:
        if not ground.remove():
            self._settings.memory.warn(f"can't remove the fixture copy {ground.folder}")

    def _claim(self, deadline: Deadline) -> threading.Event | None:
        """What to set when we have found out for the others; None where another one did, or tries.

        Who asks is connecting in a thread of its own, and so is done within a limit.
        """
        memory, key, mine = self._settings.memory, self._key, threading.Event()
        while key not in memory.met and not deadline.expired:
            other = memory.meetings.setdefault(key, mine)
            if other is mine:
                return mine
            other.wait(min(_LOOKING_UP, deadline.remaining()))
            if self._settings.should_stop():
                raise Stopped
        return None

    @property
    def output_schemas(self) -> dict[str, Any]:
        return self._settings.memory.output_schemas.setdefault(self._key, {})

    @property
    def could_not_begin(self) -> bool:
        return self._refusal is not None

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended, as far as can be told without waiting."""
        return self.served is not None and self.served.is_gone

    def close(self) -> None:
        """Take everything down, quickly when the run is to end or the server was given up on."""
        hurried = self._settings.should_stop()
        try:
            if self.served is not None:
                is_late = hurried or self.served.client.connection.has_given_up
                patience = _CLOSING_IN_A_HURRY if is_late else _CLOSING
                patience = _CLOSING_AT_ONCE if self._settings.quick_end else patience
                self.served.drop(patience, interrupted=hurried)
                self._settings.memory.warn(*self.served.troubles())
        finally:
            self._remove(self.ground)
