"""What a doctor found as markdown: a table, what breaks with its proof, and a checklist."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.doctor import Diagnosis, DoctorReport
from mcptest.report.doctor_text import (
    ORDER,
    checklist_entry,
    how_it_was_met,
    rules_in_words,
    step,
    summary_in_words,
)
from mcptest.report.markdown import code
from mcptest.report.version_diff import plain


def doctor_as_markdown(report: DoctorReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: DoctorReport) -> Iterator[str]:
    name = report.server_name or report.server
    yield f"# {plain(name)}: {step(report).replace('->', '→')}"
    yield ""
    yield f"{_sentence(how_it_was_met(report))} {_sentence(summary_in_words(report))}"
    yield from (line for note in report.notes for line in ("", f"> {plain(note)}"))
    if not report.items:
        return
    yield from ("", "| item | verdict | what was seen |", "|---|---|---|")
    for item in sorted(report.items, key=lambda one: ORDER.index(one.verdict)):
        yield f"| {item.id} | {item.verdict.value} | {plain(item.detail)} |"
    for item in report.items:
        if item.breaks:
            yield from _broken(item)
    yield from ("", "## Checklist", "")
    for item in report.items:
        mark, text = checklist_entry(item)
        if mark is not None:
            # A question mark is no box that markdown knows: what is unknown is not done.
            yield f"- [{'x' if mark == 'x' else ' '}] {plain(text)}"


def _sentence(text: str) -> str:
    return plain(text[:1].upper() + text[1:] + ".")


def _broken(item: Diagnosis) -> Iterator[str]:
    yield from ("", f"## {plain(item.title)} ({item.id})", "")
    yield f"{_sentence(item.detail)} Since {item.since}: {plain(item.change)}."
    yield ""
    for one in item.evidence:
        if one.sent:
            yield f"- sent: {code(one.sent)}"
        yield f"- received: {code(one.received) if one.received else 'nothing'}"
    yield f"- fix: {plain(item.fix)}"
    yield f"- rules: {rules_in_words(item)}"
