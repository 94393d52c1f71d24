"""Judged sessions as the results of a run, for whatever reads those: JUnit first of all."""

from __future__ import annotations

from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult
from mcptest.model.verdict import Outcome, Severity
from mcptest.report.verdicts_json import Report, RuleVerdict, SessionReport
from mcptest.rules.composition import Hazard


def sessions_as_run(report: Report, *, strict: bool = False) -> RunReport:
    """What does not apply to a session is left out. `strict`: a broken SHOULD fails where no MUST
    and no hazard explains that the report failed."""
    strict = strict and not report.summary.fail and not report.composition
    verdicts = [
        _result(verdict, session, strict)
        for session in report.sessions
        for verdict in session.verdicts
        if verdict.outcome is not Outcome.NOT_APPLICABLE
    ]
    return RunReport(results=(*map(_hazard, report.composition), *verdicts), tool=report.tool)


def _result(verdict: RuleVerdict, session: SessionReport, strict: bool) -> TestResult:
    said = verdict.findings[0].message if verdict.findings else verdict.reason
    counts = strict or verdict.severity is Severity.MUST
    broken = verdict.outcome is Outcome.FAIL
    status = Status.SKIP
    if verdict.outcome is Outcome.PASS or (broken and not counts):
        status = Status.PASS
    elif broken:
        status = Status.FAIL
    failed = status is Status.FAIL
    excerpt = next((one.excerpt for one in verdict.findings if one.excerpt), "")
    return TestResult(
        name=f"{session.label} {verdict.rule}: {verdict.title}",
        status=status,
        detail=said if status is not Status.PASS else "",
        file=session.file,
        kind="protocol" if failed else "",
        failures=tuple(
            FailedCheck(verdict.rule, one.message, one.expected, one.actual, one.pointer)
            for one in verdict.findings
        )
        if failed
        else (),
        proof=Proof(request=excerpt or "", capture=session.file) if failed else None,
        revision=session.revision or "",
        note=f"{verdict.severity.value}: {said}" if broken and not failed else "",
    )


def _hazard(hazard: Hazard) -> TestResult:
    return TestResult(
        name=f"{hazard.id}: {hazard.title}",
        status=Status.FAIL,
        detail=hazard.message,
        kind="protocol",
        failures=(FailedCheck(hazard.id, hazard.message),),
    )
