"""The first server of a run, started before the modules that will talk to it are imported.

A server takes longer to start than we take to import them: so both happen at once. Whatever goes
wrong here is left to the regular way, which goes the same steps again and says what is wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mcptest.model.deadline import Deadline
from mcptest.model.errors import McptestError
from mcptest.run.same_run import EarlyServer, this_run
from mcptest.run.settings import Numbered, RunOptions, Settings, skip_reason
from mcptest.run.starting import Ground, Understood, ground_on, prepare_ground, understand
from mcptest.suite.model import ServerSpec, Test, TrajectoryBlock
from mcptest.transport.process import ServerProcess

_LEAVING = 1.0


class HeadStart:
    """A server that runs already and waits for the test that it was started for."""

    def __init__(
        self, test: Test, ground: Ground, understood: Understood, process: ServerProcess
    ) -> None:
        self.ground = ground
        self.understood = understood
        self.process = process
        self._test: Test | None = test

    def is_taken_by(self, item: Numbered, attempt: int) -> bool:
        """Whether this is the server for that test; from then on it belongs to whoever asked."""
        mine = item.test is self._test and item.trial == 1 and attempt == 1 and not item.language
        if mine:
            self._test = None
        return mine

    def abandon(self) -> None:
        """End the server if nobody took it."""
        if self._test is None:
            return
        _end(self.process, self.understood.target.command)
        if self.ground.copy is not None:
            self.ground.copy.remove()


@contextlib.contextmanager
def with_a_head_start(
    tests: Sequence[Test], settings: Settings, options: RunOptions
) -> Iterator[Settings]:
    """Start the first server; gives the settings of a run that makes use of it."""
    head_start = None if options.languages else _start_first(tests, settings)
    try:
        yield replace(settings, head_start=head_start)
    finally:
        if head_start is not None:
            head_start.abandon()


def _start_first(tests: Sequence[Test], settings: Settings) -> HeadStart | None:
    early = this_run.take_early()
    test = first_with_a_server(tests)
    if early is not None:
        adopted = _adopted(early, test, settings)
        if adopted is not None:
            return adopted
        end_early(early)
    if test is None:
        return None
    ground = Ground()
    try:
        ground = prepare_ground(settings.fixture, settings.choice)
        understood = understand(test.server or ServerSpec(), settings.choice, ground.path)
        target = understood.target
        if target.way == "stdio":
            if settings.warm_start:
                from mcptest.run.warm_start import with_compile_cache

                target = with_compile_cache(target)
            process = ServerProcess(
                target.command, target.env, target.cwd, clean_env=target.clean_env
            )
            return HeadStart(test, ground, understood, process)
    except McptestError:
        pass  # the regular way meets it again, and says so in the result of the test
    if ground.copy is not None:
        ground.copy.remove()
    return None


def first_with_a_server(tests: Sequence[Test]) -> Test | None:
    return next((test for test in tests if _needs_a_server(test)), None)


def _adopted(early: EarlyServer, test: Test | None, settings: Settings) -> HeadStart | None:
    """The server that was started before the suite was read, if it is the one that is needed."""
    other = early.fixture != str(settings.fixture or "") or early.warm != settings.warm_start
    if test is None or other:
        return None
    ground = Ground()
    if early.copy:
        from mcptest.run.fixture import FixtureCopy

        ground = ground_on(FixtureCopy(early.copy, early.left_out))
    try:
        understood = understand(test.server or ServerSpec(), settings.choice, ground.path)
    except McptestError:
        return None
    target = understood.target
    plain = not (target.env or target.cwd or target.clean_env)
    if target.way != "stdio" or target.command != early.command or not plain:
        return None
    this_run.began_early = True
    process = ServerProcess(target.command, target.env, early=early.process)
    return HeadStart(test, ground, understood, process)


def end_early(early: EarlyServer) -> None:
    """End a server that was started for nothing, with its copy of the fixture."""
    _end(ServerProcess(early.command, {}, early=early.process), early.command)
    if early.copy:
        from mcptest.run.fixture import FixtureCopy

        FixtureCopy(early.copy, early.left_out).remove()


def _end(process: ServerProcess, command: tuple[str, ...]) -> None:
    from mcptest.transport.base import discard
    from mcptest.transport.stdio import Stdio

    unused = Stdio(command, sink=discard, process=process)
    unused.open(Deadline.after(_LEAVING))
    unused.close(Deadline.after(_LEAVING))


def _needs_a_server(test: Test) -> bool:
    return skip_reason(test) is None and not isinstance(test.block, TrajectoryBlock)
