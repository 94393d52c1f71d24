"""Verdicts of rules as results of tests, so that every report of a run has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mcptest.core.judgement import GateResult, Judgement, RuleResult
from mcptest.core.results import FailedCheck, Proof, Status, TestResult
from mcptest.core.safe_text import in_one_line
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.report.terminal import counted
from mcptest.suite.reading import Place

COMPLIANCE = "compliance"
_WHY_SKIPPED = {
    Outcome.NOT_OBSERVED: "not observed",
    Outcome.NOT_APPLICABLE: "not applicable",
    Outcome.INCONCLUSIVE: "inconclusive",
}


def results_of_judgement(
    judgement: Judgement,
    place: Place,
    *,
    lane: str = COMPLIANCE,
    strict: bool = False,
    server: str = "",
) -> Iterator[TestResult]:
    """The causes first, then the rules. What does not apply to the server is left out."""
    around = {"server": server, "revision": judgement.revision.value}
    for cause in judgement.causes:
        if not cause.kept_from_judging:
            continue
        hint = f" ({cause.hint})" if cause.hint else ""
        kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
        first = cause.evidence[0] if cause.evidence else None
        yield result_at(
            f"{lane} {cause.id}",
            Status.FAIL,
            place,
            detail=f"{in_one_line(cause.message, 600)}{hint}; {kept}",
            kind="crash",
            proof=None if first is None else Proof(request=first.sent, response=first.received),
            **around,
        )
    for rule in judgement.results:
        if rule.outcome is Outcome.NOT_APPLICABLE:
            continue
        status = status_of(rule.outcome, rule.severity, strict=strict)
        failed = status is Status.FAIL
        yield result_at(
            f"{lane} {rule.id}",
            status,
            place,
            detail=_detail(rule, status),
            kind="check" if failed else "",
            failures=failed_checks(rule.findings) if failed else (),
            proof=last_exchange(rule) if failed else None,
            tags=(rule.section,) if rule.section else (),
            **around,
        )


def _detail(rule: RuleResult, status: Status) -> str:
    if status is Status.PASS:
        return ""
    if rule.failed:
        return broken_rule_in_words(rule.title, rule.severity, rule.findings, status)
    reason = f": {rule.reason}" if rule.reason else ""
    unlocked = f"; needs {rule.unlocked_by}" if rule.unlocked_by else ""
    return f"{_WHY_SKIPPED[rule.outcome]}{reason}{unlocked}"


def last_exchange(rule: RuleResult) -> Proof:
    if not rule.evidence:
        return Proof(repeat=rule.repeat)
    last = rule.evidence[-1]
    return Proof(request=last.sent, response=last.received, repeat=rule.repeat)


def result_of_gate(gate: GateResult, place: Place) -> TestResult:
    name = f"{COMPLIANCE} {gate.name}"
    if gate.passed:
        return result_at(name, Status.PASS, place, note=gate.detail)
    said = "; ".join(filter(None, (gate.detail, *gate.lines[:1])))
    return result_at(
        name,
        Status.FAIL,
        place,
        detail=said or f"{gate.name} failed",
        kind="check",
        failures=tuple(FailedCheck(gate.name, one) for one in gate.lines),
    )


def result_at(name: str, status: Status, place: Place, **more: Any) -> TestResult:
    return TestResult(name=name, status=status, file=place.file, line=place.line, **more)


def status_of(outcome: Outcome, severity: Severity, *, strict: bool) -> Status:
    """A SHOULD that is not followed is neither a success nor, unless asked for, a failure."""
    if outcome is not Outcome.FAIL:
        return Status.PASS if outcome is Outcome.PASS else Status.SKIP
    counts = severity is Severity.MUST or (strict and severity is Severity.SHOULD)
    return Status.FAIL if counts else Status.SKIP


def broken_rule_in_words(
    title: str, severity: Severity, findings: Sequence[Finding], status: Status
) -> str:
    advice = "" if status is Status.FAIL else f"not followed ({severity.value}): "
    found = findings[0].message if findings else title
    return f"{advice}{title}: {found}" if found != title else advice + title


def failed_checks(findings: Iterable[Finding], rule: str = "rule") -> tuple[FailedCheck, ...]:
    return tuple(
        FailedCheck(rule, found.message, found.expected, found.actual, found.pointer)
        for found in findings
    )
