"""Trials as the page draws them: each test over its trials, and how reliable all of them are."""

from __future__ import annotations

from math import comb

from mcptest.model.results import RunReport, Status, TestResult
from mcptest.report import reliability as counting
from mcptest.report.html.facts import Outcome, Reliability, Trials

TESTS_SHOWN = 100
FLAKY_NAMED = 50
LONGEST_CURVE = 50
OUTCOMES: dict[Status, Outcome] = {
    Status.PASS: "pass",
    Status.FAIL: "fail",
    Status.SKIP: "skip",
}


def trials_of(report: RunReport) -> tuple[Trials, ...]:
    """What was flaky or failed first, then what took longest."""
    if report.trials < 2:
        return ()
    found = [_trials(one) for one in counting.trials_of_each_test(report.results).values()]
    found.sort(key=lambda one: (one.outcomes.count("fail") == 0, -max(one.ms)))
    return tuple(found[:TESTS_SHOWN])


def _trials(trials: list[TestResult]) -> Trials:
    language = trials[0].language
    return Trials(
        name=f"{trials[0].name} [{language}]" if language else trials[0].name,
        outcomes=tuple(OUTCOMES[one.status] for one in trials),
        ms=tuple(one.duration_ms for one in trials),
    )


def reliability_of(report: RunReport) -> Reliability | None:
    measured = counting.reliability(report)
    if report.trials < 2 or not measured.tests:
        return None
    # A curve is as long as the shortest series: beyond it some tests say nothing.
    longest = min(LONGEST_CURVE, *(one.trials for one in measured.tests))
    pairs = [(one.trials, one.passed) for one in measured.tests]
    return Reliability(
        tests=len(measured.tests),
        capable=measured.capable,
        reliable=measured.reliable,
        flaky=tuple(one.name for one in measured.tests if one.flaky)[:FLAKY_NAMED],
        at_least_one=tuple(_mean([at_least_one(*one, k) for one in pairs]) for k in _ks(longest)),
        every_one=tuple(_mean([every_one(*one, k) for one in pairs]) for k in _ks(longest)),
    )


def _ks(longest: int) -> range:
    return range(1, longest + 1)


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 4)


def at_least_one(trials: int, passed: int, k: int) -> float:
    """The share of all choices of `k` trials among which one passed."""
    return 1 - comb(trials - passed, k) / comb(trials, k)


def every_one(trials: int, passed: int, k: int) -> float:
    """The share of all choices of `k` trials that passed all."""
    return comb(passed, k) / comb(trials, k)
