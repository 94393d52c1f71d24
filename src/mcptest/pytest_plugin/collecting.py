"""A suite file as a collector of pytest, and its tests and lanes as items."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.errors import McptestError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import Status, TestResult
from mcptest.core.safe_text import show
from mcptest.probe.lanes import check_names
from mcptest.probe.suites.settings import skip_reason
from mcptest.pytest_plugin import McptestWarning, configuration
from mcptest.pytest_plugin.failure_text import SuiteTestFailed, failure_repr
from mcptest.pytest_plugin.running import SuiteRuns, failures_among
from mcptest.suite.lane_blocks import Lanes
from mcptest.suite.load import load_suites
from mcptest.suite.model import Test
from mcptest.suite.reading import Place, render

_NAME = 200
_MARKS_OF_PYTEST = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "xfail"})
"""A tag of such a name must not change what becomes of a test."""


class SuiteFile(pytest.File):
    """One suite. A file that is no sound suite is an error of the collection."""

    def collect(self) -> Iterator[pytest.Item]:
        runs = SuiteRuns.of(self.config)
        try:
            loaded = load_suites(
                [os.path.relpath(self.path)],
                fixture=None if runs.fixture is None else str(runs.fixture),
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
    shown = show(name, _NAME).replace("::", ":")
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

    def _conclude(self, failures: Sequence[TestResult], *, named: bool = False) -> None:
        """Fail, and say what happened beside the test: where warnings are errors, a failure counts
        for more."""
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
        self._conclude(failures_among([result]))
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
        self._conclude(failures_among(results), named=True)
        if not any(result.status is Status.PASS for result in results):
            pytest.skip(results[0].detail if results else "nothing was judged")
