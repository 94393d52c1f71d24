"""Suites as pytest has them: a file is a collector, its tests and lanes are items.

pytest asks for one test at a time; each is carried out by the engine of `mcptest run`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from msgspec.structs import replace

from mcptest.commands.command_line import repeat_line
from mcptest.core.errors import McptestError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.lanes import (
    LaneSettings,
    check_names,
    run_compliance_lane,
    run_invariants_lane,
    run_properties_lane,
)
from mcptest.probe.suites.settings import Numbered, RunMemory, RunOptions, Settings, skip_reason
from mcptest.probe.suites.suite_run import FreshJob, Job, JobPlan, SerialJob, SharedJob, group_key
from mcptest.pytest_plugin import McptestWarning, configuration
from mcptest.report.evidence import BRIEF, FULL, detail_lines, labelled_once, proof_lines
from mcptest.report.scorecards import earlier_scorecard
from mcptest.suite.lane_blocks import Lanes
from mcptest.suite.load import load_suites
from mcptest.suite.model import Test
from mcptest.suite.reading import Place, render
from mcptest.transport.temporary import temporary_folder

# -- A failure in the words of `mcptest run`, in the form that pytest passes on -------------------

_LABEL = 10
_NAME = 300
_REASON = 500


class SuiteTestFailed(Exception):  # noqa: N818 - what failed is the test
    """The test ran, and these of its results are failures."""

    def __init__(self, results: Sequence[TestResult], *, named: bool = False) -> None:
        """`named`: several results of one item, which are told apart by their names."""
        super().__init__(results[0].detail)
        self.results = tuple(results)
        self.named = named


def failure_repr(
    failed: SuiteTestFailed, path: str, line: int, *, full: bool, brief: bool
) -> ReprExceptionInfo:
    """As pytest tells of an exception, so that all reporters and xdist know what to do with it.

    `brief` is --tb=line, where pytest itself writes the only line.
    """
    lines: list[str] = []
    for result in () if brief else failed.results:
        lines += [show(result.name, _NAME)] if failed.named else []
        lines += detail_lines(result, FULL if full else BRIEF, all_failures=True)
        proof = labelled_once(proof_lines(result, FULL if full else BRIEF))
        lines += (f"{label:<{_LABEL}}{text}" for label, text in proof)
        lines += [""] if failed.named else []
    entry = ReprEntryNative([f"{redaction.text(text)}\n" for text in lines])
    reason = redaction.text(" ".join(" ".join(detail_lines(failed.results[0], BRIEF)).split()))
    return ReprExceptionInfo(
        reprcrash=ReprFileLocation(path, line, reason[:_REASON]),
        reprtraceback=ReprTraceback([entry], None, style="native"),
    )


# -- Suites as pytest has them --------------------------------------------------------------------

_LONGEST_ID = 200
_MARKS_OF_PYTEST = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "xfail"})
"""A tag of such a name must not change what becomes of a test."""


class SuiteFile(pytest.File):
    """One suite. A file that is no sound suite is an error of the collection."""

    def collect(self) -> Iterator[pytest.Item]:
        runs = SuiteRuns.of(self.config)
        fixture = configuration.fixture_folder(self.config)
        try:
            loaded = load_suites(
                [os.path.relpath(self.path)],
                fixture=None if fixture is None else str(fixture),
                server_given=configuration.configured_server(self.config) is not None,
            )
            if loaded.lanes:
                check_names(loaded.lanes)
        except UsageError as error:
            raise self.CollectError(error.message) from None
        for problem in loaded.warnings:
            self.warn(McptestWarning(render(problem)))
        given: Counter[str] = Counter()
        for test in loaded.suite.tests:
            name = _unlike_the_others(test.name, given)
            number = runs.number(self.path, name)
            yield SuiteTest.from_parent(self, name=name, number=number, test=test)
        for lanes in loaded.lanes:
            for kind, place in lanes.places:
                name = _unlike_the_others(f"the {kind} lane", given)
                number = runs.number(self.path, name)
                of_lane = {"kind": kind, "lanes": lanes, "tests": loaded.suite.tests}
                yield SuiteLane.from_parent(self, name=name, number=number, place=place, **of_lane)


def _unlike_the_others(name: str, given: Counter[str]) -> str:
    """Tests are chosen by name, so each has one of its own; `::` has a meaning to pytest."""
    shown = show(name, _LONGEST_ID).replace("::", ":")
    given[shown] += 1
    count = given[shown]
    return shown if count == 1 else _unlike_the_others(f"{shown} ({count})", given)


class _SuiteItem(pytest.Item):
    """What a test and a lane have in common: a place in the file, and how a failure is told."""

    def __init__(self, *, number: int, place: Place, **rest: Any) -> None:
        super().__init__(**rest)
        self.number = number
        self.place = place
        self.add_marker("mcptest")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.place.line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, McptestError):
            return redaction.text(excinfo.value.message)  # meant for people as it is
        if not isinstance(excinfo.value, SuiteTestFailed):
            return super().repr_failure(excinfo, style)
        return failure_repr(
            excinfo.value,
            os.path.relpath(self.path),
            self.place.line,
            full=self.config.get_verbosity() > 0,
            brief=self.config.getoption("tbstyle") == "line",
        )

    def _conclude(self, results: Sequence[TestResult], *, named: bool = False) -> None:
        """Fail, and say what happened beside the test: where warnings are errors, a failure counts
        for more."""
        failures = [result for result in results if result.status is Status.FAIL]
        beside = SuiteRuns.of(self.config).new_warnings()
        if failures:
            for sentence in beside:
                self.add_report_section("call", "warning", show(sentence, 500))
            raise SuiteTestFailed(failures, named=named)
        for sentence in beside:
            self.warn(McptestWarning(sentence))


class SuiteTest(_SuiteItem):
    """One test of a suite."""

    def __init__(self, *, test: Test, **rest: Any) -> None:
        super().__init__(place=test.place, **rest)
        self.test = test
        self.following: pytest.Item | None = None
        self.extra_keyword_matches.update(test.tags)
        for tag in test.tags:  # so that `-m` chooses by tag
            if tag.isidentifier() and not tag.startswith("_") and tag not in _MARKS_OF_PYTEST:
                self.config.addinivalue_line("markers", f"{tag}: a tag of a suite")
                self.add_marker(tag)
        reason = skip_reason(test)
        if reason is not None:
            self.add_marker(pytest.mark.skip(reason=reason))

    def runtest(self) -> None:
        runs = SuiteRuns.of(self.config)
        after = self.following
        if isinstance(after, SuiteTest) and after.get_closest_marker("skip") is None:
            runs.prepare_ahead(after.number, after.test)
        result = runs.carry_out(self.number, self.test)
        # For JUnit and whoever else reads reports.
        facts = (("mcp_server", result.server), ("mcp_revision", result.revision))
        self.user_properties += [(name, value) for name, value in facts if value]
        if result.note:
            self.add_report_section("call", "note", show(result.note, 500))
        self._conclude([result])
        if result.status is Status.SKIP:  # its variable has gone since it was collected
            pytest.skip(result.detail)


class SuiteLane(_SuiteItem):
    """A lane of a suite: its server judged, or its sessions. Every broken rule is told."""

    def __init__(self, *, kind: str, lanes: Lanes, tests: tuple[Test, ...], **rest: Any) -> None:
        super().__init__(**rest)
        self.kind = kind
        self.lanes = lanes
        self.tests = tests

    def runtest(self) -> None:
        runs = SuiteRuns.of(self.config)
        if self.kind == "invariants":
            results = runs.judge_sessions(self.lanes, self.tests)
        else:
            results = list(runs.judge_server(self.lanes, self.kind))
        self._conclude(results, named=True)
        if not any(result.status is Status.PASS for result in results):
            pytest.skip(results[0].detail if results else "nothing was judged")


# -- Carrying the tests out, one by one ----------------------------------------------------------

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

    def number(self, path: Path, name: str) -> int:
        """Numbers are the same in all workers, since all of them collect the same."""
        command = ["pytest", f"{os.path.relpath(path)}::{name}"]
        for place in configuration.was_named_by_option(path, self._config):
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
        if isinstance(job, SharedJob) and not isinstance(job, FreshJob):
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
        job = JobPlan([item], self._settings, options).jobs[0]
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

        choice = configuration.choice_for(lanes.server, self._config)
        how = LaneSettings(replace(self._settings, choice=choice), {lanes.file: before}, again)
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
