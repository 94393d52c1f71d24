"""Verdicts as results of tests, so that every report of a run has them."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.compliance import GateResult, Judgement, RootCause, RuleResult
from mcptest.model.results import FailedCheck, Proof, Status, TestResult
from mcptest.model.show import in_one_line
from mcptest.model.verdict import Finding, Outcome, Severity
from mcptest.suite.model import Place

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
    for cause in judgement.causes:
        if cause.kept_from_judging:
            yield _result_of_cause(cause, judgement, place, lane, server)
    for result in judgement.results:
        if result.outcome is not Outcome.NOT_APPLICABLE:
            yield _result_of_rule(result, judgement, place, lane, server, strict)


def result_of_gate(gate: GateResult, place: Place, *, lane: str = COMPLIANCE) -> TestResult:
    said = "; ".join(filter(None, (gate.detail, *gate.lines[:1])))
    return TestResult(
        name=f"{lane} {gate.name}",
        status=Status.PASS if gate.passed else Status.FAIL,
        detail="" if gate.passed else said or f"{gate.name} failed",
        file=place.file,
        line=place.line,
        kind="" if gate.passed else "check",
        failures=() if gate.passed else tuple(FailedCheck(gate.name, one) for one in gate.lines),
        note=gate.detail if gate.passed else "",
    )


def failed_lane(
    name: str, detail: str, place: Place, *, kind: str, server: str = "", repeat: str = ""
) -> TestResult:
    """A lane that could not do its work."""
    return TestResult(
        name=name,
        status=Status.FAIL,
        detail=detail,
        file=place.file,
        line=place.line,
        kind=kind,
        proof=Proof(repeat=repeat) if repeat else None,
        server=server,
    )


def _result_of_cause(
    cause: RootCause, judgement: Judgement, place: Place, lane: str, server: str
) -> TestResult:
    kept = f"{cause.kept_from_judging} rules could not be judged"
    hint = f" ({cause.hint})" if cause.hint else ""
    first = cause.evidence[0] if cause.evidence else None
    return TestResult(
        name=f"{lane} {cause.id}",
        status=Status.FAIL,
        detail=f"{in_one_line(cause.message, 600)}{hint}; {kept}",
        file=place.file,
        line=place.line,
        kind="crash",
        proof=None if first is None else Proof(request=first.sent, response=first.received),
        server=server,
        revision=judgement.revision.value,
    )


def _result_of_rule(
    result: RuleResult,
    judgement: Judgement,
    place: Place,
    lane: str,
    server: str,
    strict: bool,
) -> TestResult:
    status = _status(result, strict=strict)
    failed = status is Status.FAIL
    return TestResult(
        name=f"{lane} {result.id}",
        status=status,
        detail=_detail(result, status),
        file=place.file,
        line=place.line,
        kind="check" if failed else "",
        failures=tuple(map(_failed_check, result.findings)) if failed else (),
        proof=_proof(result) if failed else None,
        tags=(result.section,) if result.section else (),
        server=server,
        revision=judgement.revision.value,
    )


def _status(result: RuleResult, *, strict: bool) -> Status:
    """A SHOULD that is not followed is neither a success nor, unless asked for, a failure."""
    if result.outcome is Outcome.PASS:
        return Status.PASS
    if not result.failed:
        return Status.SKIP
    counts = result.severity is Severity.MUST
    counts = counts or (strict and result.severity is Severity.SHOULD)
    return Status.FAIL if counts else Status.SKIP


def _detail(result: RuleResult, status: Status) -> str:
    if status is Status.PASS:
        return ""
    if result.failed:
        found = result.findings[0].message if result.findings else result.title
        advice = "" if status is Status.FAIL else f"not followed ({result.severity.value}): "
        return f"{advice}{result.title}: {found}" if found != result.title else advice + found
    reason = f": {result.reason}" if result.reason else ""
    unlocked = f"; unlocked by {result.unlocked_by}" if result.unlocked_by else ""
    return f"{_WHY_SKIPPED[result.outcome]}{reason}{unlocked}"


def _failed_check(finding: Finding) -> FailedCheck:
    return FailedCheck("rule", finding.message, finding.expected, finding.actual, finding.pointer)


def _proof(result: RuleResult) -> Proof:
    last = result.evidence[-1] if result.evidence else None
    return Proof(
        request=last.sent if last is not None else "",
        response=last.received if last is not None else "",
        repeat=result.repeat,
    )
