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
from mcptest.run.settings import Numbered, RunOptions, Settings, skip_reason
from mcptest.run.starting import Ground, Understood, prepare_ground, understand
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
        from mcptest.transport.base import discard
        from mcptest.transport.stdio import Stdio

        unused = Stdio(self.understood.target.command, sink=discard, process=self.process)
        unused.open(Deadline.after(_LEAVING))
        unused.close(Deadline.after(_LEAVING))
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
    test = next((test for test in tests if _needs_a_server(test)), None)
    if test is None:
        return None
    ground = Ground()
    try:
        ground = prepare_ground(settings.fixture, settings.choice)
        understood = understand(test.server or ServerSpec(), settings.choice, ground.path)
        target = understood.target
        if target.way == "stdio":
            process = ServerProcess(target.command, target.env, target.cwd)
            return HeadStart(test, ground, understood, process)
    except McptestError:
        pass  # the regular way meets it again, and says so in the result of the test
    if ground.copy is not None:
        ground.copy.remove()
    return None


def _needs_a_server(test: Test) -> bool:
    return skip_reason(test) is None and not isinstance(test.block, TrajectoryBlock)
