"""An audit as markdown, for a step summary or a comment."""

from __future__ import annotations

from mcptest.model.audit import AuditItem, AuditReport
from mcptest.report.audit_text import next_steps, summary_in_words, word_of
from mcptest.report.explored_text import heading
from mcptest.report.markdown import code


def audit_as_markdown(report: AuditReport) -> str:
    lines = [
        f"### Audit of {code(heading(report))}",
        "",
        f"**{code(summary_in_words(report))}**",
        "",
        "| | name | class | time | |",
        "|---|---|---|---|---|",
        *(_row(item) for item in report.items),
    ]
    if report.problems:
        lines += [
            "",
            *(f"- {code(k)} could not be read: {code(v)}" for k, v in report.problems.items()),
        ]
    if report.notes:
        lines += ["", *(f"- {code(note)}" for note in report.notes)]
    steps = next_steps(report)
    if steps:
        lines += ["", "Next steps:", "", *(f"- {code(step)}" for step in steps)]
    return "\n".join(lines) + "\n"


def _row(item: AuditItem) -> str:
    said = "; ".join((*item.findings, *item.notes, *([item.detail] if item.detail else [])))
    spent = f"{item.duration_ms} ms" if item.tested else ""
    cells = (item.kind, item.name, word_of(item), spent, said)
    return "| " + " | ".join(code(text) for text in cells) + " |"
