"""A server with its fixture copy: launched ahead, used by one test or by several, taken down."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from mcptest.model.deadline import Deadline
from mcptest.model.errors import McptestError, PeerError
from mcptest.model.masking import Masker
from mcptest.model.revision import Revision, parse_revision
from mcptest.model.show import show
from mcptest.peer.connection import Stopped
from mcptest.run.call_failed import CallFailed, kind_of
from mcptest.run.fixture import FixtureCopy, FixtureError, isolate_fixture
from mcptest.run.serving import Served, ServerChoice, answers_for, masker_for, serve, target_for
from mcptest.suite.environment import resolve
from mcptest.suite.model import SamplingBlock, ServerSpec, Test
from mcptest.suite.templates import fill_server, variables_of
from mcptest.transport.target import Target

_CLOSING = 5.0
_CLOSING_IN_A_HURRY = 2.0
_CLOSING_AT_ONCE = 0.1
_NO_SERVER = ServerSpec()
_UNSAFE_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")

ServerKey: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Memory:
    """What is learned about servers during a run and holds for all of their tests.

    Workers write it at the same time. Each entry is written whole and never changed, so the worst
    that happens is that two find out the same thing.
    """

    eras: dict[ServerKey, Revision] = field(default_factory=dict)
    output_schemas: dict[ServerKey, dict[str, Any]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def warn(self, *sentences: str) -> None:
        self.warnings.update(dict.fromkeys(sentences))


@dataclass(frozen=True, slots=True)
class Numbered:
    """A test with its place in the report and its trial."""

    number: int
    test: Test
    trial: int = 1
    language: str = ""
    choice: ServerChoice | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How tests are run, whatever they test."""

    timeout: float = 30.0
    fixture: Path | None = None
    choice: ServerChoice = field(default_factory=ServerChoice)
    all_failures: bool = False
    quick_end: bool = False
    """Servers are ended right after their last answer, instead of being waited for."""
    repeat: Callable[[Numbered], str] = lambda item: ""
    """The command that runs just this test again."""
    should_stop: Callable[[], bool] = lambda: False
    memory: Memory = field(default_factory=Memory)


def server_key(spec: ServerSpec, choice: ServerChoice) -> ServerKey:
    """The same for all tests whose server is started in the same way, wherever its fixture is."""
    return (
        choice,
        spec.command,
        spec.args,
        tuple(sorted(spec.env.items())),
        spec.cwd,
        spec.transport,
        spec.url,
        tuple(sorted(spec.headers.items())),
        spec.docker,
        repr(spec.client_capabilities),
        spec.spec_version,
    )


class ServerSession:
    """One session with one server. `launch`, `connect` as often as one likes, `close`."""

    def __init__(self, item: Numbered, settings: Settings, attempt: int = 1) -> None:
        """`attempt` counts the sessions that were begun for the same tests."""
        self.problem: McptestError | None = None
        self.served: Served | None = None
        self.fixture = ""
        self.note = ""
        self.label = ""
        self.masker = Masker()
        self._settings = settings
        self._item = item
        self._attempt = attempt
        self._choice = item.choice or settings.choice
        self._spec = item.test.server or _NO_SERVER
        self._key = server_key(self._spec, self._choice)
        self._copy: FixtureCopy | None = None
        self._connected = False
        self._refusal: CallFailed | None = None

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
        if settings.fixture is not None:
            self._isolate(settings.fixture, in_docker=bool(self._choice.docker))
        resolved = resolve(self._spec, os.environ)
        self.masker = Masker(resolved.secrets)
        settings.memory.warn(*resolved.warnings)
        filled = fill_server(resolved.server, variables_of(self.fixture, {}))
        target = target_for(filled, self._choice, self.fixture)
        self.masker = masker_for(target, resolved.secrets)
        self.label = _label(target, self.masker)
        target = replace(target, label=self.label)
        mock = test.block.mock if isinstance(test.block, SamplingBlock) else None
        limit = test.timeout or settings.timeout
        served = serve(
            target,
            answers_for(filled.client_capabilities, mock),
            revision=self._revision(),
            timeout=limit,
            masker=self.masker,
            capture=self._capture_file(),
            should_stop=settings.should_stop,
        )
        self.served = served
        served.client.launch(Deadline.after(limit))

    def _isolate(self, source: Path, *, in_docker: bool) -> None:
        if in_docker:  # a container of its own is isolation enough
            self.fixture = str(source)
            return
        self._copy = isolate_fixture(source)
        self.fixture = str(self._copy.path)
        left_out = self._copy.left_out
        if left_out:
            more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
            names = ", ".join(left_out[:5])
            self.note = f"left out of the fixture copy: {show(names, 200)}{more}"

    def _revision(self) -> Revision | None:
        """As was asked for; else as an earlier test of the same server found out."""
        asked = self._choice.spec_version or self._spec.spec_version
        if asked != "auto":
            return parse_revision(asked)
        return self._settings.memory.eras.get(self._key)

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
                served.client.connect(deadline)
            except PeerError as error:
                kind = kind_of(error)
                detail = f"MCP initialize failed: {error.message}"
                kind = "start" if kind == "call" else kind
                raise CallFailed(detail, kind, lost=True) from None
            self._connected = True
            self._settings.memory.eras.setdefault(self._key, served.client.revision)
        return served

    @property
    def output_schemas(self) -> dict[str, Any]:
        return self._settings.memory.output_schemas.setdefault(self._key, {})

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
            if self._copy is not None and not self._copy.remove():
                self._settings.memory.warn(f"can't remove the fixture copy {self._copy.path}")


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
