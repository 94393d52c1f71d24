"""Each test over its trials: pass@k (it can), pass^k (it always does), and what is flaky."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcptest.core.results import Flakiness, RunReport, Status, TestResult

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


def first_failures(results: Iterable[TestResult]) -> dict[Identity, TestResult]:
    """Of each test that failed, the first trial that did."""
    failed: dict[Identity, TestResult] = {}
    for result in results:
        if result.status is Status.FAIL:
            failed.setdefault(identity_of(result), result)
    return failed


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
