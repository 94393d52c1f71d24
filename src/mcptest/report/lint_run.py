"""What the linter found as the results of a run, for JUnit: a test for each item and code."""

from __future__ import annotations

from mcptest.explore.lint.finding import Finding, LintReport, Severity
from mcptest.model.results import FailedCheck, RunReport, Status, TestResult


def lint_as_run(report: LintReport) -> RunReport:
    """Items without a finding are counted in one test, so that an empty report is none."""
    unread = tuple(
        TestResult(name=method, status=Status.FAIL, detail=reason, kind="call")
        for method, reason in report.problems.items()
    )
    gathered: dict[tuple[str, str, str], list[Finding]] = {}
    for one in report.serious:
        gathered.setdefault((one.kind, one.item, one.code), []).append(one)
    results = tuple(_result(findings, strict=report.strict) for findings in gathered.values())
    clean = TestResult(name="everything else that was looked at", status=Status.PASS)
    return RunReport(
        results=(*unread, *results, clean),
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.interrupted,
        notes=report.notes,
    )


def _result(findings: list[Finding], *, strict: bool) -> TestResult:
    first = findings[0]
    bad = strict or first.severity is Severity.ERROR
    text = "; ".join(one.message for one in findings)
    return TestResult(
        name=f"{first.kind} {first.item} {first.code}",
        status=Status.FAIL if bad else Status.PASS,
        detail=text if bad else "",
        kind="lint" if bad else "",
        failures=tuple(FailedCheck(check=one.code, message=one.message) for one in findings)
        if bad
        else (),
        note="" if bad else text,
    )
