"""Judged sessions as results of tests: what fails there is what the exit code counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcptest.core.results import Status
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.report.codec import as_json
from mcptest.report.stored import read_stored
from mcptest.report.verdicts import RuleVerdict, SessionReport, SessionsReport

RULE = RuleVerdict(
    id="INV-001",
    title="ids are not used twice",
    section="invariants",
    severity=Severity.MUST,
    side="both",
    outcome=Outcome.FAIL,
    reason="",
    observed=1,
    findings=(Finding("twice"),),
    findings_total=1,
    url="",
)
ADVICE = replace(RULE, id="INV-002", severity=Severity.SHOULD)
UNCHECKED = replace(
    RULE, id="INV-003", outcome=Outcome.INCONCLUSIVE, reason="too large", unchecked=True
)
UNSURE = replace(UNCHECKED, id="INV-004", unchecked=False)


def failing(*verdicts: RuleVerdict, strict: bool | None, exit_code: int = 1) -> set[str]:
    """The rules that fail in the run that a stored report becomes."""
    session = SessionReport("s", "s.jsonl", "full", None, None, "handshake", 1, True, verdicts)
    report = SessionsReport(
        tool="", command="", exit_code=exit_code, sessions=(session,), composition=(), strict=strict
    )
    run = read_stored(as_json(report), "r.json").report.as_run()
    found = [one.name.split()[1].rstrip(":") for one in run.results if one.status is Status.FAIL]
    return set(found)


@pytest.mark.parametrize(
    ("strict", "expected"), [(False, {"INV-001"}), (True, {"INV-001", "INV-002"})]
)
def test_advice_fails_where_the_report_is_strict(strict: bool, expected: set[str]) -> None:
    assert failing(RULE, ADVICE, UNSURE, strict=strict) == expected


def test_what_could_not_be_checked_fails_and_makes_no_advice_fail() -> None:
    assert failing(ADVICE, UNCHECKED, UNSURE, strict=False) == {"INV-003"}


def test_a_file_that_does_not_say_was_strict_if_nothing_else_explains_its_code() -> None:
    assert failing(ADVICE, strict=None) == {"INV-002"}
    assert failing(ADVICE, strict=None, exit_code=0) == set()
    assert failing(RULE, ADVICE, strict=None) == {"INV-001"}


@pytest.mark.parametrize(("sender", "side"), [("client", "request"), ("server", "response")])
def test_the_message_of_a_finding_stands_on_the_side_that_sent_it(sender: str, side: str) -> None:
    found = Finding("it is wrong", record=3, sender=sender, excerpt='{"id":1}')
    broken = replace(RULE, outcome=Outcome.FAIL, findings=(found,), findings_total=1)
    session = SessionReport("s", "s.jsonl", "full", None, None, "handshake", 1, True, (broken,))
    report = SessionsReport(tool="t", command="c", exit_code=1, sessions=(session,), composition=())
    (result,) = report.as_run().results
    assert result.proof is not None
    assert getattr(result.proof, side) == '{"id":1}'
    assert {result.proof.request, result.proof.response} == {"", '{"id":1}'}
