"""A run of property tests as markdown, for a step summary or a comment."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.property import Counterexample, PropertyReport, PropertyResult
from mcptest.report.explored_text import heading
from mcptest.report.markdown import code
from mcptest.report.property_text import WORDS, next_steps, summary_in_words


def property_as_markdown(report: PropertyReport) -> str:
    lines = [
        f"### Properties of {code(heading(report))}",
        "",
        f"**{code(summary_in_words(report))}**",
        "",
        "| property | examples | |",
        "|---|---|---|",
        *(_row(one) for one in report.properties),
    ]
    for found in report.counterexamples:
        lines += ["", *_counterexample(found)]
    if report.notes or report.problems:
        lines += ["", *(f"- {code(note)}" for note in (*report.problems, *report.notes))]
    steps = next_steps(report)
    if steps:
        lines += ["", "Next steps:", "", *(f"- {code(step)}" for step in steps)]
    return "\n".join(lines) + "\n"


def _row(one: PropertyResult) -> str:
    found = len(one.counterexamples)
    said = f"skipped: {one.skipped}" if one.skipped else f"{found} counterexamples" if found else ""
    said = said or one.ended_early
    return "| " + " | ".join(map(code, (one.name, str(one.examples), said))) + " |"


def _counterexample(found: Counterexample) -> Iterator[str]:
    rule = f"{found.rule}: " if found.rule else ""
    yield f"**{WORDS[found.way]}** {code(f'{rule}{found.title} ({found.severity.value})')}"
    yield ""
    yield f"{code(found.message)}"
    yield ""
    for number, words in enumerate(found.words, 1):
        yield f"{number}. {code(words)}"
    for line in found.lines:
        if line.at_fault:
            yield f"   - {code(f'{line.sender}: {line.text}')}"
    if found.repeat:
        yield ""
        yield f"Again: {code(found.repeat)}"
