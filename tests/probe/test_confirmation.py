"""What is said of a failure depends on what came when it was asked again."""

from __future__ import annotations

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.judgement import RuleResult
from mcptest.core.verdict import Outcome, Severity
from mcptest.probe.compliance.confirmation import confirmed


def judged(outcome: Outcome) -> RuleResult:
    return RuleResult(
        id="PAGE-101", title="", section="pagination", outcome=outcome, severity=Severity.SHOULD
    )


FAILED = judged(Outcome.FAIL)


def test_a_failure_that_is_seen_again_stands() -> None:
    assert confirmed(FAILED, FAILED) is FAILED


def test_a_failure_that_is_not_seen_again_says_so() -> None:
    left = confirmed(FAILED, judged(Outcome.PASS))
    assert left.outcome is Outcome.INCONCLUSIVE
    assert left.reason.startswith("it failed once but not when repeated alone")


def test_a_failure_that_could_not_be_asked_again_does_not_say_that_it_passed() -> None:
    left = confirmed(FAILED, PeerError(ErrorKind.CLOSED, "Connection refused"))
    assert left.outcome is Outcome.INCONCLUSIVE
    assert left.reason == "it failed once and could not be repeated: Connection refused"
