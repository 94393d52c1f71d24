"""Coverage as markdown, and as the results of a run for JUnit."""

from __future__ import annotations

from mcptest.model.coverage import CoverageReport
from mcptest.model.results import RunReport, Status, TestResult
from mcptest.report.coverage_text import coverage_in_words
from mcptest.report.markdown import code


def coverage_as_markdown(report: CoverageReport) -> str:
    rows = [
        f"| {item.kind} | {code(item.name)} | {item.assertions} | {item.skipped or ''} |"
        for item in report.items
    ]
    lines = [
        f"### Coverage of {code(report.server)}",
        "",
        f"**{coverage_in_words(report)}**",
        "",
        "| kind | name | assertions | skipped |",
        "|---|---|---|---|",
        *rows,
    ]
    if report.unknown:
        unknown = (f"- {one.kind} {code(one.name)}: {code(one.place)}" for one in report.unknown)
        lines += ["", "Not offered by the server:", "", *unknown]
    return "\n".join(lines) + "\n"


def coverage_as_run(report: CoverageReport) -> RunReport:
    """One result for each item. What nobody demands to be covered is skipped, not failed."""
    missing = Status.FAIL if report.failed else Status.SKIP
    results = tuple(
        TestResult(
            name=f"{item.kind} {item.name}",
            status=Status.PASS if item.covered else missing,
            detail="" if item.covered else "no test that runs asserts on it",
            kind="" if item.covered or missing is Status.SKIP else "check",
        )
        for item in report.items
    )
    unread = tuple(
        TestResult(name=problem.partition(":")[0], status=Status.FAIL, detail=problem, kind="call")
        for problem in report.problems
    )
    return RunReport(results=(*unread, *results), tool=report.tool)
