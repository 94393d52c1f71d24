"""What the linter found, as markdown, for a step summary or a comment."""

from __future__ import annotations

from mcptest.explore.lint.finding import Finding, LintReport
from mcptest.report.lint_text import SHOWN, fix_in_words, heading, summary_in_words
from mcptest.report.markdown import code


def lint_as_markdown(report: LintReport) -> str:
    lines = [
        f"### Lint of {code(heading(report))}",
        "",
        f"**{code(summary_in_words(report))}**",
        "",
    ]
    if report.serious:
        lines += ["| | code | item | finding | fix |", "|---|---|---|---|---|"]
        lines += [_row(one) for one in report.serious[:SHOWN]]
    if len(report.serious) > SHOWN:
        lines += ["", f"{len(report.serious) - SHOWN} more findings are in the JSON report."]
    if report.problems:
        lines += [""]
        lines += [f"- {code(k)} could not be read: {code(v)}" for k, v in report.problems.items()]
    if report.notes:
        lines += ["", *(f"- {code(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def _row(finding: Finding) -> str:
    cells = (finding.severity.value, finding.code, finding.item, finding.message)
    return "| " + " | ".join(code(text) for text in (*cells, fix_in_words(finding))) + " |"
