"""Running the tests of suites one by one, as pytest asks for them, with the engine of `run`."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcptest.commands.command_line import repeat_line
from mcptest.core.results import Status, TestResult
from mcptest.probe.lanes import (
    LaneSettings,
    run_compliance_lane,
    run_invariants_lane,
    run_properties_lane,
)
from mcptest.probe.suites.settings import Numbered, RunMemory, RunOptions, Settings
from mcptest.probe.suites.suite_run import FreshJob, Job, SerialJob, SharedJob, group_key, plan
from mcptest.pytest_plugin import configuration
from mcptest.pytest_plugin.configuration import was_named_by_option
from mcptest.report.scorecards import earlier_scorecard
from mcptest.suite.lane_blocks import Lanes
from mcptest.suite.model import Test
from mcptest.transport.temporary import temporary_folder

_THREADS = 4
"""Beside pytest: they start the next server, and wait for those that take their leave."""
_RUNS = pytest.StashKey["SuiteRuns"]()


class SuiteRuns:
    """What the tests of all suites of this process have in common."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_shared = configuration.is_shared(config)
        self._shared: dict[object, SharedJob] = {}
        self._ids: list[list[str]] = []
        self._said: set[str] = set()
        self._ahead: dict[int, tuple[Job, Future[None]]] = {}
        self._behind: list[Future[None]] = []
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="mcptest")
        self._settings = Settings(
            timeout=configuration.timeout(config),
            fixture=configuration.fixture_folder(config),
            all_failures=True,
            repeat=lambda item: self.repeat(item.number),
            memory=RunMemory(),
        )

    @classmethod
    def of(cls, config: pytest.Config) -> SuiteRuns:
        runs = config.stash.get(_RUNS, None)
        if runs is None:
            runs = config.stash[_RUNS] = cls(config)
            config.add_cleanup(runs.close)
        return runs

    @property
    def fixture(self) -> str | Path | None:
        return self._settings.fixture

    def number(self, path: Path, name: str) -> int:
        """Numbers are the same in all workers, since all of them collect the same."""
        command = ["pytest", f"{os.path.relpath(path)}::{name}"]
        for place in was_named_by_option(path, self._config):
            command += ["--mcptest", os.path.relpath(place)]
        server = configuration.server_for_all(self._config)
        command += ["--mcptest-server", server] if server else []
        self._ids.append(command)
        return len(self._ids) - 1

    def repeat(self, number: int) -> str:
        return _without_secrets(self._ids[number], configuration.server_for_all(self._config))

    def close(self) -> None:
        """Take everything down that is still there."""
        for job, begun in self._ahead.values():
            wait([begun])
            job.release()
        for shared in self._shared.values():
            shared.release()
        self._threads.shutdown()
        for ended in self._behind:
            ended.result()

    def carry_out(self, number: int, test: Test) -> TestResult:
        item = Numbered(number, test, choice=configuration.choice_for(test.server, self._config))
        ahead = self._ahead.pop(number, None)
        job, alone = self._job(item) if ahead is None else (ahead[0], False)
        if isinstance(job, SharedJob):
            job = self._shared.setdefault(group_key(item, self._settings), job)
            job.items = [item]
            return _result_of(job, job.prepare)
        try:
            return _result_of(job, job.prepare if ahead is None else ahead[1].result)
        finally:
            # Where files are kept, what goes wrong at the end of a server is said with its test.
            captures = self._config.getoption("mcptest_capture")
            if alone or captures is not None or self._settings.fixture is not None:
                job.release()
            else:
                self._behind.append(self._threads.submit(job.release))

    def prepare_ahead(self, number: int, test: Test) -> None:
        """Start the server of the test that comes next, while this one is busy."""
        item = Numbered(number, test, choice=configuration.choice_for(test.server, self._config))
        job, alone = self._job(item)
        if isinstance(job, FreshJob) and not alone:
            self._ahead[number] = job, self._threads.submit(job.prepare)

    def _job(self, item: Numbered) -> tuple[Job, bool]:
        """The job of a test, and whether no other server may run beside it."""
        options = RunOptions(shared=self._is_shared, single_file_order=True)
        job = plan([item], self._settings, options).jobs[0]
        return (job.jobs[0], True) if isinstance(job, SerialJob) else (job, False)

    def new_warnings(self) -> list[str]:
        """What happened beside the tests, each said once."""
        found = [text for text in self._settings.memory.warnings if text not in self._said]
        self._said.update(found)
        return found

    def judge_sessions(self, lanes: Lanes, tests: Sequence[Test]) -> list[TestResult]:
        """The `invariants:` lane. Its sessions are had anew: those of the tests may be in another
        worker, or were not asked for."""
        assert lanes.invariants is not None  # whoever calls has looked
        with temporary_folder() as folder:
            for number, test in enumerate(tests):
                choice = configuration.choice_for(test.server, self._config)
                choice = replace(choice, captures=folder)
                job, _ = self._job(Numbered(number, test, choice=choice))
                try:
                    _result_of(job, job.prepare)
                finally:
                    job.release()  # only then the capture is complete
            captures = sorted(folder.glob("*.jsonl"))
            limit = self._settings.timeout
            return list(run_invariants_lane(lanes.invariants, captures, kept=False, limit=limit))

    def judge_server(self, lanes: Lanes, kind: str) -> Iterator[TestResult]:
        """The `compliance:` lane, or the one of `properties:`."""
        delta = lanes.compliance.grade_delta if lanes.compliance is not None else None
        before = None if delta is None else earlier_scorecard(delta.against)
        server = configuration.server_for_all(self._config)

        def again(file: str) -> str:
            """By the command of ours that takes the name of a single rule as well."""
            command = ["mcptest", "compliance", "run", "--from-suite", file]
            return _without_secrets(command + (["--server", server] if server else []), server)

        how = LaneSettings(
            timeout=self._settings.timeout,
            fixture=self._settings.fixture,
            choice=configuration.choice_for(lanes.server, self._config),
            scorecards={lanes.file: before},
            repeat=again,
        )
        if kind == "properties":
            return run_properties_lane(lanes, how)
        return run_compliance_lane(lanes, how, lambda event: None)


def _without_secrets(command: Sequence[str], server: str | None) -> str:
    return repeat_line(command, argparse.Namespace(server=server))


def _result_of(job: Job, prepare: Callable[[], None]) -> TestResult:
    prepare()
    with contextlib.closing(job.run()) as results:
        found = [result for _, result in results]
    assert len(found) == 1  # one test was given to the job
    return found[0]


def failures_among(results: Sequence[TestResult]) -> list[TestResult]:
    return [result for result in results if result.status is Status.FAIL]
