"""How a run is to be done, as values. On the way to the first server, so it imports little."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mcptest.run.choosing import ServerChoice
from mcptest.suite.model import ServerSpec, Test

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event

    from mcptest.peer.meeting import Met
    from mcptest.run.head_start import HeadStart
    from mcptest.run.server_session import ServerSession
    from mcptest.run.warm_start import Shortcut
    from mcptest.suite.failure import Evaluation
    from mcptest.suite.observed import Observed

ServerKey: TypeAlias = tuple[object, ...]
SecondOpinion: TypeAlias = "Callable[[Numbered, ServerSession, Observed, Evaluation], Evaluation]"


class RunOptions(msgspec.Struct, frozen=True):
    """How a suite is run, beside how each test is."""

    trials: int = 1
    jobs: int | None = None
    """None chooses: the number of cores, and one at a time for a URL."""
    single_file_order: bool = False
    """Tests that are a file each, as in mcp-assert, run one at a time, as they do there."""
    shared: bool = False
    in_flight: int = 1
    fail_fast: bool = False
    languages: tuple[tuple[str, ServerChoice], ...] = ()
    """For a matrix: each test is run once for every one of these servers."""


class Memory(msgspec.Struct):
    """What is learned about servers during a run and holds for all of their tests.

    Workers write it at the same time. Each entry is written whole and never changed, so the worst
    that happens is that two find out the same thing.
    """

    met: dict[ServerKey, Met] = {}
    """What each server speaks, and why."""
    meetings: dict[ServerKey, Event] = {}
    """Servers that somebody is meeting for the first time; set when that is over."""
    output_schemas: dict[ServerKey, dict[str, Any]] = {}
    shortcuts: dict[ServerKey, Shortcut | None] = {}
    """How servers are started without their launchers (`warm_start`); None: not to be known."""
    warnings: dict[str, None] = {}

    def warn(self, *sentences: str) -> None:
        self.warnings.update(dict.fromkeys(sentences))


class Numbered(msgspec.Struct, frozen=True):
    """A test with its place in the report and its trial."""

    number: int
    test: Test
    trial: int = 1
    language: str = ""
    choice: ServerChoice | None = None


class Settings(msgspec.Struct, frozen=True):
    """How tests are run, whatever they test."""

    timeout: float = 30.0
    fixture: str | Path | None = None
    choice: ServerChoice = ServerChoice()
    all_failures: bool = False
    lenient: bool = False
    """A malformed answer is a warning, and is used as far as it can be read."""
    quick_end: bool = False
    """Servers are ended right after their last answer, instead of being waited for."""
    warm_start: bool = False
    """Fresh servers are started in quicker ways, which they can notice."""
    proof_of_passes: bool = False
    """A pass keeps its exchange as well: `watch` shows what changed when it fails later."""
    repeat: Callable[[Numbered], str] = lambda item: ""
    """The command that runs just this test again."""
    on_begin: Callable[[Numbered], None] = lambda item: None
    """Told of each test that begins, by the thread that runs it."""
    should_stop: Callable[[], bool] = lambda: False
    memory: Memory = msgspec.field(default_factory=Memory)
    head_start: HeadStart | None = None
    """The server that was started before anything else was ready."""
    second_opinion: SecondOpinion | None = None
    """Judges each answer in place of the test's own expectations, whose verdict it is told."""


def server_key(spec: ServerSpec, choice: ServerChoice) -> ServerKey:
    """The same for all tests whose server is started in the same way, wherever its fixture is."""
    return (
        choice,
        spec.command,
        spec.args,
        tuple(sorted(spec.env.items())),
        spec.cwd,
        spec.clean_env,
        spec.transport,
        spec.url,
        tuple(sorted(spec.headers.items())),
        spec.docker,
        repr(spec.client_capabilities),
        spec.spec_version,
    )


def skip_reason(test: Test) -> str | None:
    if test.skip:
        return "skip: true"
    if test.skip_unless_env and not os.environ.get(test.skip_unless_env):
        return f"skipped: env var {test.skip_unless_env} not set"
    return None
