"""A fuzz run as the results of a run, for whatever reads those: JUnit first of all."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport, Verdict
from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult

_KINDS = {Verdict.CRASH: "crash", Verdict.HANG: "timeout", Verdict.PROTOCOL: "protocol"}


def fuzz_as_run(report: FuzzReport) -> RunReport:
    results = [result for tool in report.tools for result in _of_tool(tool)]
    if report.problem:
        unread = TestResult(
            name="tools/list", status=Status.FAIL, detail=report.problem, kind="call"
        )
        results.insert(0, unread)
    return RunReport(
        results=tuple(results),
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.interrupted,
        notes=(f"seed {report.seed}", *report.notes),
    )


def _of_tool(tool: FuzzedTool) -> Iterator[TestResult]:
    """One result for the tool, and one for each way in which it fails."""
    if tool.skipped:
        yield TestResult(name=f"fuzz {tool.name}", status=Status.SKIP, detail=tool.skipped)
        return
    if tool.unchecked:
        yield TestResult(
            name=f"fuzz {tool.name}: its schema",
            status=Status.FAIL,
            detail=tool.unchecked,
            kind="check",
        )
    elif not tool.runs:
        reason = "; ".join(tool.notes) or "nothing was sent"
        yield TestResult(name=f"fuzz {tool.name}", status=Status.SKIP, detail=reason)
    elif not tool.failures:
        yield TestResult(
            name=f"fuzz {tool.name}",
            status=Status.PASS,
            duration_ms=tool.duration_ms,
            note="; ".join(tool.notes),
        )
    for failure in tool.failures:
        yield _of_failure(failure)


def _of_failure(failure: FuzzFailure) -> TestResult:
    words = f"{failure.verdict.value}: {failure.detail}"
    proof = Proof(
        request=failure.sent,
        response=failure.received,
        stderr=failure.stderr,
        repeat=failure.repeat,
    )
    return TestResult(
        name=f"fuzz {failure.tool}: {failure.label}",
        status=Status.FAIL,
        detail=words,
        duration_ms=failure.duration_ms,
        kind=_KINDS.get(failure.verdict, "check"),
        failures=(FailedCheck(check="fuzz", message=words),),
        proof=proof,
        note=f"{failure.count} inputs fail so" if failure.others else "",
    )
