"""Tests over their trials."""

from __future__ import annotations

import msgspec

from mcptest.core.results import Flakiness, RunReport, Status
from mcptest.report.reliability import overall, reliability
from tests.support.sample_run import READ, SKIPPED, TRIALS, trial


def test_each_test_is_measured_over_its_trials_in_the_order_of_the_run() -> None:
    measured = reliability(TRIALS)
    assert measured.tests == (
        Flakiness("steady", 4, 4),
        Flakiness("wobbly", 4, 2),
        Flakiness("broken", 4, 0),
    )
    assert [test.flaky for test in measured.tests] == [False, True, False]
    assert (measured.capable, measured.reliable) == (2, 1)
    assert str(measured) == "pass@k: 2/3 capable, pass^k: 1/3 reliable"


def test_a_skipped_test_is_neither_reliable_nor_unreliable() -> None:
    assert reliability(RunReport(results=(SKIPPED, READ), trials=2)).tests == (
        Flakiness(READ.name, 1, 1),
    )


def test_two_tests_of_one_name_are_two_tests() -> None:
    here = [trial("same", n, Status.PASS, file="a.yaml") for n in (1, 2)]
    there = [trial("same", n, Status.FAIL, file="b.yaml") for n in (1, 2)]
    measured = reliability(RunReport(results=(*here, *there), trials=2))
    assert [(test.name, test.passed) for test in measured.tests] == [
        ("same (a.yaml:0)", 2),
        ("same (b.yaml:0)", 0),
    ]
    assert not any(test.flaky for test in measured.tests)


def test_the_same_test_on_two_servers_is_measured_for_each() -> None:
    run = RunReport(results=(msgspec.structs.replace(READ, language="go"), READ), trials=2)
    assert [test.name for test in reliability(run).tests] == [f"{READ.name} [go]", READ.name]


def test_a_test_passed_only_if_each_trial_did() -> None:
    passed, failed, skipped = (trial("t", 1, status) for status in Status)
    assert overall([passed, passed]) is Status.PASS
    assert overall([passed, failed, passed]) is Status.FAIL
    assert overall([passed, skipped]) is Status.SKIP
    assert overall([skipped, failed]) is Status.FAIL
