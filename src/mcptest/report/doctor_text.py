"""What a doctor found, for a terminal: what breaks in full, then the rest, then a checklist."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mcptest.model.doctor import Diagnosis, DoctorReport, Verdict
from mcptest.model.show import show
from mcptest.report.explored_text import why_revision
from mcptest.report.terminal import Style

_WIDTH = 96
ORDER = (Verdict.BREAKS, Verdict.UNKNOWN, Verdict.READY, Verdict.NOT_USED)


def doctor_lines(report: DoctorReport, style: Style, *, verbose: bool = False) -> Iterator[str]:
    """The whole report, line by line."""
    yield style.paint(heading(report), "bold")
    yield f"  {how_it_was_met(report)}"
    if report.revision_reason:
        yield f"  {why_revision(report.spoken, report.revision_reason)}"
    yield from (f"  {line}" for line in _rules_lines(report))
    yield from (f"  {style.warning} {show(note, 300)}" for note in report.notes)
    for verdict in ORDER:
        found = [one for one in report.items if one.verdict is verdict]
        if found:
            yield ""
        for one in found:
            yield from _item_lines(one, style, verbose=verbose)
    yield ""
    yield from _checklist(report, style)
    yield style.paint(summary_in_words(report), "bold")


def heading(report: DoctorReport) -> str:
    name = report.server_name or report.server
    version = f" {report.server_version}" if report.server_version else ""
    return f"{show(name, 80)}{show(version, 40)} over {report.transport}: " + step(report)


def step(report: DoctorReport) -> str:
    return f"{report.older} -> {report.newer}"


def how_it_was_met(report: DoctorReport) -> str:
    if report.speaks_newer:
        return f"it speaks {report.newer}: each item was tried live in that revision"
    return (
        f"it does not speak {report.newer}: it was examined in {report.spoken}, "
        f"and spoken to in {report.newer}"
    )


def _rules_lines(report: DoctorReport) -> Iterator[str]:
    if report.rules is not None:
        rules = report.rules
        counts = f"{rules.changed} changed, {rules.added} added, {rules.removed} removed"
        older, newer = report.older.label, report.newer.label
        yield f"rules on the way: {counts} (mcptest compliance diff {older} {newer})"


def summary_in_words(report: DoctorReport) -> str:
    if not any(item.since > report.older for item in report.items):
        return f"nothing changes for a server from {report.older} to {report.newer}"
    words = {**{one: one.value for one in ORDER}, Verdict.BREAKS: "breaking"}
    counts = [f"{report.count(one)} {words[one]}" for one in ORDER]
    advised = sum(bool(one.advice) for one in report.items)
    return ", ".join(counts) + (f"; {advised} with advice" if advised else "")


def _item_lines(item: Diagnosis, style: Style, *, verbose: bool) -> Iterator[str]:
    sign = {
        Verdict.BREAKS: style.cross,
        Verdict.READY: style.tick,
        Verdict.NOT_USED: style.dash,
        Verdict.UNKNOWN: style.unsure,
    }[item.verdict]
    name = style.paint(f"{item.id:<18}", "bold")
    yield f"{sign} {item.verdict.value:<8}  {name} {item.title}"
    if item.verdict is Verdict.NOT_USED and not verbose:
        return
    yield from _fact("", item.detail, style)
    if item.advice:
        yield from _fact("advice", item.advice, style)
    if item.verdict in {Verdict.BREAKS, Verdict.UNKNOWN} or verbose:
        yield from _proof_lines(item, style)
    if item.breaks or verbose:
        yield from _fact("since", f"{item.since}: {item.change}", style)
        yield from _fact("fix", item.fix, style)
        yield from _fact("rules", rules_in_words(item), style)


def rules_in_words(item: Diagnosis) -> str:
    return ", ".join(f"{rule.id} ({rule.bucket})" for rule in item.rules)


def _proof_lines(item: Diagnosis, style: Style) -> Iterator[str]:
    """The bytes stand on one line each, so that they can be copied."""
    for one in item.evidence:
        if one.sent:
            yield style.paint(f"      {'sent':<9}{one.sent}", "dim")
        yield style.paint(f"      {'received':<9}{one.received or '(nothing)'}", "dim")


def _fact(label: str, text: str, style: Style) -> Iterator[str]:
    margin = 9 if label else 0
    for place, line in enumerate(textwrap.wrap(show(text, 1_000), _WIDTH - margin)):
        told = f"{label if not place else '':<{margin}}{line}"
        yield style.paint(f"      {told}", *(("dim",) if label == "rules" else ()))


def _checklist(report: DoctorReport, style: Style) -> Iterator[str]:
    if all(item.verdict is Verdict.NOT_USED for item in report.items):
        return
    yield style.paint(f"Checklist for {report.newer}", "bold")
    for item in report.items:
        mark, text = checklist_entry(item)
        if mark is None:
            continue
        lines = textwrap.wrap(show(text, 1_000), _WIDTH - 4) or [""]
        yield f"  [{mark}] {lines[0]}"
        yield from (f"      {line}" for line in lines[1:])
    yield ""


def checklist_entry(item: Diagnosis) -> tuple[str | None, str]:
    """The mark in the box and what stands behind it; no box for what is not used."""
    if item.verdict is Verdict.NOT_USED:
        return None, ""
    if item.breaks:
        return " ", f"{item.title}: {item.fix}"
    if item.verdict is Verdict.UNKNOWN:
        return "?", f"{item.title}: look at it yourself. {item.fix}"
    if item.advice:
        return " ", f"{item.title} (advised): {item.fix}"
    return "x", item.title
