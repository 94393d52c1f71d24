"""A fuzz run as markdown, for a step summary or a comment."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport
from mcptest.report.explored_text import heading
from mcptest.report.fuzz_text import (
    WORDS,
    arguments_in_words,
    next_steps,
    summary_in_words,
)
from mcptest.report.markdown import code


def fuzz_as_markdown(report: FuzzReport) -> str:
    lines = [
        f"### Fuzz of {code(heading(report))}",
        "",
        f"**{code(summary_in_words(report))}**",
        "",
        "| tool | passed | |",
        "|---|---|---|",
        *(_row(tool) for tool in report.tools),
    ]
    if report.failures:
        lines += ["", "| | tool | input | what came | again |", "|---|---|---|---|---|"]
        lines += [_failure(failure) for failure in report.failures]
    lines += list(_remarks(report))
    return "\n".join(lines) + "\n"


def _row(tool: FuzzedTool) -> str:
    passed = "" if tool.skipped else f"{tool.passed}/{tool.runs}"
    remarks = filter(None, (tool.unchecked, *tool.notes))
    said = f"skipped: {tool.skipped}" if tool.skipped else "; ".join(remarks)
    return "| " + " | ".join(map(code, (tool.name, passed, said))) + " |"


def _failure(failure: FuzzFailure) -> str:
    cells = (
        WORDS[failure.verdict],
        failure.tool,
        f"{failure.label}: {arguments_in_words(failure.minimal)}",
        failure.detail,
        failure.repeat,
    )
    return "| " + " | ".join(map(code, cells)) + " |"


def _remarks(report: FuzzReport) -> Iterator[str]:
    if report.problem:
        yield from ("", f"- {code('tools/list')} could not be read: {code(report.problem)}")
    if report.notes:
        yield ""
        yield from (f"- {code(note)}" for note in report.notes)
    steps = next_steps(report)
    if steps:
        yield from ("", "Next steps:", "")
        yield from (f"- {code(step)}" for step in steps)
