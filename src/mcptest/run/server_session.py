"""A server with its fixture copy: launched ahead, used by one test or by several, taken down."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcptest.model.deadline import Deadline
from mcptest.model.errors import McptestError, PeerError
from mcptest.model.masking import Masker
from mcptest.model.revision import Revision, parse_revision
from mcptest.model.show import show
from mcptest.peer.client import Client
from mcptest.peer.connection import Stopped
from mcptest.peer.meeting import ASKED_FOR, Met
from mcptest.run.call_failed import CallFailed, kind_of, remarks_on
from mcptest.run.fixture import FixtureError
from mcptest.run.serving import Served, answers_for, masker_for, serve
from mcptest.run.settings import Memory, Numbered, Settings, server_key
from mcptest.run.starting import Ground, Understood, prepare_ground, understand
from mcptest.suite.model import SamplingBlock, ServerSpec
from mcptest.transport.process import ServerProcess
from mcptest.transport.target import Target, transport_for

if TYPE_CHECKING:
    from pathlib import Path

    from mcptest.model.capture import TransportName
    from mcptest.transport.base import Sink, Transport

__all__ = ["Memory", "Numbered", "ServerSession", "Settings", "server_key"]

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
        self.problem: McptestError | None = None
        self.served: Served | None = None
        self.label = ""
        self.masker = Masker()
        self._settings = settings
        self._item = item
        self._attempt = attempt
        self._choice = item.choice or settings.choice
        self._spec = item.test.server or _NO_SERVER
        self._key = server_key(self._spec, self._choice)
        self._ground = Ground()
        self._connected = False
        self._refusal: CallFailed | None = None
        self.remarks: list[str] = []
        """What is odd about how the session began."""

    # -- getting it going ----------------------------------------------------------------------

    def launch(self) -> None:
        """Copy the fixture and start the server; what goes wrong is told by `connect`."""
        if self._settings.should_stop():
            raise Stopped
        try:
            self._launch()
        except McptestError as error:
            self.problem = error

    def _launch(self) -> None:
        settings, test = self._settings, self._item.test
        understood, process = self._begin()
        target = understood.target
        self.masker = masker_for(target, understood.secrets)
        self.label = _label(target, self.masker)
        target = replace(self._quickly(target), label=self.label)
        mock = test.block.mock if isinstance(test.block, SamplingBlock) else None
        limit = test.timeout or settings.timeout
        served = serve(
            target,
            answers_for(understood.server.client_capabilities, mock),
            revision=self._revision(),
            because=self._because(),
            timeout=limit,
            masker=self.masker,
            capture=self._capture_file(),
            should_stop=settings.should_stop,
            process=process,
            patience=self._patience,
        )
        self.served = served
        if self._revision() is None:  # who connects first finds out for all
            served.client.open(Deadline.after(limit))
        else:
            served.client.launch(Deadline.after(limit))

    def _begin(self) -> tuple[Understood, ServerProcess | None]:
        """The ground and the command; and the process, where it was started ahead of everything."""
        head_start = self._settings.head_start
        if head_start is not None and head_start.is_taken_by(self._item, self._attempt):
            self._ground = head_start.ground
            return head_start.understood, head_start.process
        self._ground = prepare_ground(self._settings.fixture, self._choice)
        return understand(self._spec, self._choice, self._ground.path), None

    def _quickly(self, target: Target) -> Target:
        """The same server, without a launcher in front once it is known what that starts."""
        if not self._settings.warm_start:
            return target
        from mcptest.run.warm_start import with_compile_cache

        shortcut = self._settings.memory.shortcuts.get(self._key)
        return with_compile_cache(shortcut.instead_of(target) if shortcut else target)

    def _learn_shortcut(self, served: Served) -> None:
        """Once for all tests whose server is started in the same way."""
        from mcptest.run.warm_start import is_launched, learn

        shortcuts = self._settings.memory.shortcuts
        pid = getattr(served.client.connection.transport, "pid", None)
        if pid is not None and self._key not in shortcuts and is_launched(served.target):
            shortcuts[self._key] = learn(pid, served.target, self._ground.path)

    @property
    def fixture(self) -> str:
        return self._ground.path

    @property
    def note(self) -> str:
        return self._ground.note

    def _revision(self) -> Revision | None:
        """As was asked for; else as an earlier test of the same server found out."""
        asked = self._choice.spec_version or self._spec.spec_version
        if asked != "auto":
            return parse_revision(asked)
        met = self._settings.memory.met.get(self._key)
        return met.revision if met is not None else None

    def _because(self) -> str:
        if self._choice.spec_version or self._spec.spec_version != "auto":
            return ASKED_FOR if self._choice.spec_version else "asked for by spec_version"
        met = self._settings.memory.met.get(self._key)
        return met.reason if met is not None else ""

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

    # -- using it ------------------------------------------------------------------------------

    def connect(self, deadline: Deadline) -> Served:
        """Bring the session up, once. Raises CallFailed with the reason, the same each time."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # it would grow with each test
        try:
            return self._connect(deadline)
        except CallFailed as refusal:
            self._refusal = refusal
            raise

    def _connect(self, deadline: Deadline) -> Served:
        if self.problem is not None:
            raise _start_failed(self.problem)
        served = self.served
        assert served is not None
        if not self._connected:
            try:
                self._meet(served.client, deadline)
            except PeerError as error:
                kind = kind_of(error)
                detail = f"MCP initialize failed: {error.message}"
                kind = "start" if kind == "call" else kind
                raise CallFailed(detail, kind, lost=True) from None
            self._take_first_answer(served)
            self._connected = True
            if self._settings.warm_start:
                self._learn_shortcut(served)
        return served

    def _take_first_answer(self, served: Served) -> None:
        """The answer that began the session is held to what every answer is."""
        first = served.client.beginning
        if first is not None:
            failing, lenient = "MCP initialize failed", self._settings.lenient
            self.remarks = remarks_on(first, failing, lenient=lenient)

    def _meet(self, client: Client, deadline: Deadline) -> None:
        """Begin the session. Of several that find out what a server speaks, one does so for all."""
        memory, key = self._settings.memory, self._key
        asking = None if client.has_asked else self._claim(deadline)
        if not client.has_asked and (met := memory.met.get(key)) is not None:
            client.speak(met)
        try:
            if asking is not None and self._shares_fixture:
                met = self._met_elsewhere(deadline)
                if met is not None:
                    client.speak(met)
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

    @property
    def _shares_fixture(self) -> bool:
        """Whether another process of the server would work in the test's copy of the fixture."""
        is_started = self.served is not None and self.served.target.way == "stdio"
        return is_started and self._ground.copy is not None

    def _met_elsewhere(self, deadline: Deadline) -> Met | None:
        """What the server speaks, asked of processes that have copies of the fixture of their own.

        Whatever they leave in there is not what the test finds. None: the test's own server is to
        be asked, and has the evidence.
        """
        grounds: list[Ground] = []

        def reach(way: TransportName | None, sink: Sink) -> Transport:
            ground = prepare_ground(self._settings.fixture, self._choice)
            grounds.append(ground)
            target = understand(self._spec, self._choice, ground.path).target
            return transport_for(self._quickly(target), sink, way=way)

        try:
            client = Client(
                reach=reach, should_stop=self._settings.should_stop, patience=self._patience
            )
            try:
                return client.find_revision(deadline)
            finally:
                client.close(Deadline.after(self._patience))
        except McptestError:
            return None
        finally:
            for ground in grounds:
                self._remove(ground)

    def _remove(self, ground: Ground) -> None:
        copy = ground.copy
        if copy is not None and not copy.remove():
            self._settings.memory.warn(f"can't remove the fixture copy {copy.path}")

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
    def has_begun(self) -> bool:
        return self._connected

    @property
    def could_not_begin(self) -> bool:
        return self._refusal is not None

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended, as far as can be told without waiting."""
        if self.served is None or self.served.witness.exited is not None:
            return self.served is not None
        pid = getattr(self.served.client.connection.transport, "pid", None)
        if pid is None or not hasattr(os, "waitid"):
            return False
        try:  # it stays in the process table until it is closed
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def close(self) -> None:
        """Take everything down, quickly when the whole run is to end."""
        hurried = self._settings.should_stop()
        try:
            if self.served is not None:
                patience = _CLOSING_IN_A_HURRY if hurried else _CLOSING
                patience = _CLOSING_AT_ONCE if self._settings.quick_end else patience
                self.served.close(Deadline.after(patience), interrupted=hurried)
                self._settings.memory.warn(*self.served.troubles())
        except Stopped:
            pass  # a farewell over HTTP was cut short; the connection is closed all the same
        finally:
            self._remove(self._ground)


def _label(target: Target, masker: Masker) -> str:
    """What to call it. A label is made of parts of the command, and so may hold half a secret."""
    safe = masker.text(target.peer)
    return masker.text(target.label) if safe == target.peer else show(safe, 120)


def _start_failed(error: McptestError) -> CallFailed:
    if isinstance(error, FixtureError):
        return CallFailed(error.message, "fixture", lost=True)
    kind = kind_of(error) if isinstance(error, PeerError) else "start"
    hint = f" ({error.hint})" if error.hint else ""
    return CallFailed(f"failed to start MCP server: {error.message}{hint}", kind, lost=True)
