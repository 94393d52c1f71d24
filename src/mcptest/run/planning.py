"""Which job runs which test, and which tests may not run beside each other.

A test has a server and a copy of the fixture of its own, so tests run side by side. Three things
are shared all the same, and their tests run one after the other: a server behind a URL, the
original fixture that `--docker` mounts, and what servers keep elsewhere, for suites that were
written for a runner that starts one server at a time. See docs/decisions/0018-one-at-a-time.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from mcptest.model.errors import UsageError
from mcptest.run.choosing import is_demo, is_remote
from mcptest.run.jobs import FreshJob, SerialJob, SkipJob, TraceJob
from mcptest.run.pool import Job
from mcptest.run.settings import Numbered, RunOptions, Settings, server_key, skip_reason
from mcptest.run.sharing import SharedJob
from mcptest.suite.model import (
    LoggingBlock,
    NotificationsBlock,
    ResourcesBlock,
    SamplingBlock,
    ServerSpec,
    Test,
    TrajectoryBlock,
)

_Group: TypeAlias = SharedJob | TraceJob | SkipJob
_ONE_LINE = "one after the other"
_OF_THE_FIXTURE = "one test at a time: with --docker all of them work on the fixture itself"
_OF_SINGLE_FILES = (
    "one test at a time: the servers of tests that are a file each (mcp-assert's form) may share "
    "what they keep; --jobs auto runs them side by side"
)


class Plan(msgspec.Struct, frozen=True):
    """The jobs, and what has to be said about how they are run."""

    jobs: list[Job]
    notes: tuple[str, ...] = ()


def plan(items: Sequence[Numbered], settings: Settings, options: RunOptions) -> Plan:
    """Which job runs which test, in which line."""
    planner = _Planner(settings, options)
    for item in items:
        planner.add(item)
    return Plan(planner.jobs, planner.notes)


class _Planner:
    def __init__(self, settings: Settings, options: RunOptions) -> None:
        self.jobs: list[Job] = []
        self._settings = settings
        self._options = options
        self._groups: dict[object, _Group] = {}
        self._lines: dict[object, SerialJob] = {}
        self._reasons: dict[str, int] = {}
        """Why tests are in the one line, and how many."""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(why for why, count in self._reasons.items() if count > 1)

    def add(self, item: Numbered) -> None:
        test, settings = item.test, self._settings
        if skip_reason(test) is not None:
            self._group("skip", item, lambda: SkipJob([], settings), self.jobs)
        elif isinstance(test.block, TrajectoryBlock):
            self._group("trace", item, lambda: TraceJob([], settings), self.jobs)
        elif may_share(test, by_default=self._options.shared):
            in_flight = self._options.in_flight
            key = ("shared", group_key(item, settings))
            self._group(key, item, lambda: SharedJob([], settings, in_flight), self._line(item))
        else:
            self._line(item).append(FreshJob(item, settings))

    def _group(
        self, key: object, item: Numbered, make: Callable[[], _Group], line: list[Job]
    ) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = make()
            line.append(group)
        group.items.append(item)

    def _line(self, item: Numbered) -> list[Job]:
        """The jobs that one for this test may not run beside; all jobs when it is free."""
        key = self._line_of(item)
        if key is None:
            return self.jobs
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = SerialJob()
            self.jobs.append(line)
        return line.jobs

    def _line_of(self, item: Numbered) -> object | None:
        test, options = item.test, self._options
        spec, choice = test.server or ServerSpec(), item.choice or self._settings.choice
        try:
            remote = is_remote(spec, choice)
            if choice.docker and self._settings.fixture is not None and not remote:
                return self._in_one_line(_OF_THE_FIXTURE)
            if options.jobs == 1:
                return _ONE_LINE
            if options.single_file_order and test.single and not is_demo(spec, choice):
                return self._in_one_line(_OF_SINGLE_FILES)
        except UsageError:
            return None  # its test will say what is wrong
        return group_key(item, self._settings) if remote and options.jobs is None else None

    def _in_one_line(self, why: str) -> object:
        self._reasons[why] = self._reasons.get(why, 0) + 1
        return _ONE_LINE


_KEPT_APART = frozenset(
    {"apply_edit", "rename_symbol", "restart_lsp_server", "activate_skill", "deactivate_skill"}
)
"""Tools of agent-lsp that change their server for good: mcp-assert never lets them share one."""


def may_share(test: Test, *, by_default: bool) -> bool:
    """Whether a test is run on a server that others use too.

    `by_default` is what the command line asks for. That leaves out tests which leave something
    behind in the session, or see what others left: what a suite says of itself does not.
    """
    if test.isolation is not None:
        return test.isolation == "shared"
    block = test.block
    called = {getattr(block, "tool", ""), *(step.tool for step in test.setup)}
    alone = isinstance(block, LoggingBlock | NotificationsBlock) or (
        isinstance(block, ResourcesBlock) and block.subscribe is not None
    )
    return by_default and not alone and called.isdisjoint(_KEPT_APART)


def group_key(item: Numbered, settings: Settings) -> object:
    """Tests share a server when it is started in the same way and for the same trial."""
    test = item.test
    mock = repr(test.block.mock) if isinstance(test.block, SamplingBlock) else ""
    choice = item.choice or settings.choice
    return server_key(test.server or ServerSpec(), choice), item.language, item.trial, mock
