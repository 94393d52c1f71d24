"""A run of scenarios as the results of a run, for whatever reads those: JUnit first of all."""

from __future__ import annotations

from mcptest.model.conformance import CheckResult, ConformanceReport, ScenarioResult, Status
from mcptest.model.results import FailedCheck, Proof, RunReport, TestResult
from mcptest.model.results import Status as RunStatus


def conformance_as_run(report: ConformanceReport) -> RunReport:
    return RunReport(
        results=tuple(_result(one, report) for one in report.results),
        tool=report.tool,
        started=report.started,
        duration_ms=round(report.duration_ms),
        interrupted=report.interrupted,
        notes=(*report.problems, *report.notes),
    )


def _result(result: ScenarioResult, report: ConformanceReport) -> TestResult:
    """One test for each scenario; its bad rows are what failed in it."""
    warned = [check for check in result.checks if check.status is Status.WARNING]
    bad = [check for check in result.told if check.status is Status.FAILURE]
    if not result.failed:
        bad = warned  # they are what it fails for, where it fails at all
    failures = tuple(FailedCheck(check=check.id, message=_said(check)) for check in bad)
    if report.fails(result) and report.counts(result):
        status = RunStatus.FAIL
    else:
        status = RunStatus.PASS if result.observed else RunStatus.SKIP
    detail = result.cause or result.unreached or (failures[0].message if failures else "")
    excerpt = next((check.excerpt for check in bad if check.excerpt), "")
    proof = Proof(
        request=excerpt, stderr=tuple(result.stderr.splitlines()[-5:]), repeat=result.repeat
    )
    return TestResult(
        name=f"{result.scenario} [{result.revision}, {result.transport}]",
        status=status,
        detail=detail if status is not RunStatus.PASS else "",
        duration_ms=round(result.duration_ms),
        kind="check" if status is RunStatus.FAIL else "",
        failures=failures if status is RunStatus.FAIL else (),
        proof=proof if status is RunStatus.FAIL else None,
        revision=result.revision.value,
        note="; ".join(f"warning: {_said(check)}" for check in warned),
    )


def _said(check: CheckResult) -> str:
    return f"{check.id} ({check.name}): {check.message or check.description}"
