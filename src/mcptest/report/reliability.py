"""Each test over its trials: pass@k (it can), pass^k (it always does), and what is flaky."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcptest.core.results import Flakiness, Regression, RunReport, Status, TestResult

_WORST_FIRST = (Status.FAIL, Status.SKIP, Status.PASS)


class Identity(NamedTuple):
    """What makes two results trials of one test. Two tests may share a name."""

    name: str
    language: str
    file: str
    line: int


class Reliability(NamedTuple):
    """All tests that ran. One that was skipped says nothing about itself, and is not counted."""

    tests: tuple[Flakiness, ...]

    @property
    def capable(self) -> int:
        return sum(test.capable for test in self.tests)

    @property
    def reliable(self) -> int:
        return sum(test.reliable for test in self.tests)

    def __str__(self) -> str:
        total = len(self.tests)
        return f"pass@k: {self.capable}/{total} capable, pass^k: {self.reliable}/{total} reliable"


def identity_of(result: TestResult) -> Identity:
    return Identity(result.name, result.language, result.file, result.line)


def trials_of_each_test(results: Iterable[TestResult]) -> dict[Identity, list[TestResult]]:
    """In the order in which the tests first come."""
    trials: dict[Identity, list[TestResult]] = {}
    for result in results:
        trials.setdefault(identity_of(result), []).append(result)
    return trials


def titles_of(tests: Iterable[Identity]) -> dict[Identity, str]:
    """What to call each test: its name, and as much more as it takes to tell it from others."""
    known = tuple(dict.fromkeys(tests))
    plain = {
        test: f"{test.name} [{test.language}]" if test.language else test.name for test in known
    }
    shared = Counter(plain.values())
    return {
        test: f"{title} ({test.file}:{test.line})" if shared[title] > 1 and test.file else title
        for test, title in plain.items()
    }


class FailedTest(NamedTuple):
    """A test that failed, in one trial or more."""

    title: str
    first: TestResult
    """Of its trials, the first that failed."""
    failed: int
    trials: int


def failed_tests(report: RunReport) -> list[FailedTest]:
    """Each test that failed, whatever the number of its trials."""
    tests = trials_of_each_test(report.results)
    titles = titles_of(tests)
    found = []
    for test, trials in tests.items():
        failed = [trial for trial in trials if trial.status is Status.FAIL]
        if failed:
            found.append(FailedTest(titles[test], failed[0], len(failed), len(trials)))
    return found


def hidden_regressions(report: RunReport) -> list[Regression]:
    """Those that are no failing tests: what passed before may also be skipped now."""
    return [one for one in report.regressions if one.now != Status.FAIL.value]


def overall(trials: Sequence[TestResult]) -> Status:
    """A test passed if each of its trials did."""
    seen = {trial.status for trial in trials}
    return next(status for status in _WORST_FIRST if status in seen)


def reliability(report: RunReport, results: Iterable[TestResult] | None = None) -> Reliability:
    """Of the whole run, or of some of its results."""
    trials = trials_of_each_test(report.results if results is None else results)
    titles = titles_of(identity_of(result) for result in report.results)
    measured = (
        (titles[test], [trial for trial in each if trial.status is not Status.SKIP])
        for test, each in trials.items()
    )
    return Reliability(
        tuple(
            Flakiness(title, len(ran), sum(trial.status is Status.PASS for trial in ran))
            for title, ran in measured
            if ran
        )
    )
