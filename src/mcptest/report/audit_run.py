"""An audit as the results of a run, for whatever reads those: JUnit first of all."""

from __future__ import annotations

from mcptest.model.audit import AuditItem, AuditReport, Health
from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult
from mcptest.report.audit_text import WORDS

_KINDS = {Health.CRASHED: "crash", Health.TIMED_OUT: "timeout", Health.PROTOCOL: "protocol"}


def audit_as_run(report: AuditReport) -> RunReport:
    unread = tuple(
        TestResult(name=method, status=Status.FAIL, detail=reason, kind="call")
        for method, reason in report.problems.items()
    )
    return RunReport(
        results=(*unread, *(_result(item) for item in report.items)),
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.interrupted,
        notes=report.notes,
    )


def _result(item: AuditItem) -> TestResult:
    status = Status.SKIP if not item.tested else Status.FAIL if item.is_bad else Status.PASS
    failures = tuple(FailedCheck(check="audit", message=one) for one in item.findings)
    detail = item.detail
    if item.health.is_broken:
        detail = f"{WORDS[item.health]}: {detail}"
    elif failures:
        detail = failures[0].message
    proof = Proof(request=item.sent, response=item.received, stderr=item.stderr, repeat=item.repeat)
    return TestResult(
        name=f"{item.kind} {item.name}",
        status=status,
        detail=detail if status is not Status.PASS else "",
        duration_ms=item.duration_ms,
        kind=_KINDS.get(item.health, "check") if status is Status.FAIL else "",
        failures=failures,
        proof=proof if item.is_bad else None,
        note="; ".join(item.notes) or (detail if item.health is Health.REFUSED else ""),
    )
