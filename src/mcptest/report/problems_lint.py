"""What the linter found, as problems: warnings too, which are no failures of a run."""

from __future__ import annotations

from mcptest.explore.lint.finding import Finding, LintReport, Severity
from mcptest.explore.lint.linting import rules_of_profile
from mcptest.model.show import show
from mcptest.report.problems import NAME, Level, Problem, Problems, ReportedRule, shown_notes

_LEVELS: dict[Severity, Level] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}


def problems_of_lint(report: LintReport, file: str = "") -> Problems:
    """`file` is what was linted, if it was no server."""
    rules = {
        rule.code: ReportedRule(
            id=rule.code,
            title=rule.title,
            text=rule.why,
            help=f"{rule.fix}\n`mcptest explain {rule.code}` says more.",
            level=_LEVELS[rule.severity],
            tags=(rule.scope,),
        )
        for rule in rules_of_profile(report.profile)
    }
    unread = ReportedRule("lint/unread", "everything that the server lists can be read")
    rules[unread.id] = unread
    found = [
        Problem(unread.id, f"{show(method, 60)}: {show(reason, 1_000)}", file=file, grave=True)
        for method, reason in report.problems.items()
    ]
    found += [_problem(one, file) for one in report.serious]
    return Problems(
        command="lint",
        found=tuple(found),
        rules=rules,
        tool=report.tool,
        started=report.started,
        interrupted=report.interrupted,
        notes=shown_notes(report.notes),
    )


def _problem(finding: Finding, file: str) -> Problem:
    item = f"{show(finding.kind, 40)}/{show(finding.item, NAME)}"
    member = f" ({show(finding.field, 100)})" if finding.field else ""
    return Problem(
        finding.code,
        f"{item}{member}: {show(finding.message, 1_000)}",
        _LEVELS[finding.severity],
        subject=item,
        file=file,
    )
