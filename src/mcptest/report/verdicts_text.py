"""Verdicts for a person at a terminal: what is broken first to the eye, the rest in few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.show import show
from mcptest.model.verdict import Finding, Outcome, Verdict
from mcptest.report.explored_text import why_revision
from mcptest.report.terminal import Style
from mcptest.report.verdicts_json import is_failure, summarise
from mcptest.rules.composition import Hazard, labels_of
from mcptest.rules.declare import RULES
from mcptest.rules.judge import JudgedSession

FINDINGS_SHOWN = 3
HAZARDS_SHOWN = 20
_QUIET = {Outcome.NOT_OBSERVED, Outcome.NOT_APPLICABLE}


def verdict_lines(
    sessions: Sequence[JudgedSession],
    hazards: Sequence[Hazard],
    style: Style,
    verbose: bool = False,
) -> Iterator[str]:
    """The whole report, line by line."""
    for session, label in zip(sessions, labels_of(sessions), strict=True):
        yield from _session_lines(session, label, style, verbose)
    if len(sessions) > 1:
        yield from _composition_lines(hazards, len(sessions), style)
    yield _summary_line(sessions, hazards, style)
    quiet = any(v.outcome in _QUIET for session in sessions for v in session.verdicts)
    if quiet and not verbose:
        yield style.paint("--verbose lists what was not observed and why", "dim")


def _session_lines(
    session: JudgedSession, label: str, style: Style, verbose: bool
) -> Iterator[str]:
    dot = f" {style.dot} "
    revision = str(session.revision) if session.revision else "revision not named"
    facts = [show(session.file, 120), f"{revision}, {session.era.value}"]
    facts += [session.transport] if session.transport else []
    facts.append(f"{session.messages} message" + ("s" if session.messages != 1 else ""))
    facts += [] if session.complete else ["cut short"]
    yield style.paint(show(label, 120), "bold")
    yield style.paint("  " + dot.join(facts), "dim")
    if session.revision_reason:
        yield style.paint("  " + why_revision(revision, session.revision_reason), "dim")
    yield ""
    by_category: dict[str, list[Verdict]] = {}
    for verdict in session.verdicts:
        if verbose or verdict.outcome not in _QUIET:
            by_category.setdefault(RULES[verdict.rule].category, []).append(verdict)
    for category, verdicts in by_category.items():
        yield style.paint(category, "cyan")
        for verdict in verdicts:
            yield from _verdict_lines(verdict, session, style)
        yield ""


def _verdict_lines(verdict: Verdict, session: JudgedSession, style: Style) -> Iterator[str]:
    rule = RULES[verdict.rule]
    broken = verdict.outcome is Outcome.FAIL
    name = style.paint(f"{rule.id:<12}", "bold") if broken else f"{rule.id:<12}"
    yield f"  {_symbol(verdict, session, style)} {name} {rule.title}"
    if verdict.reason:
        yield style.paint(f"      {show(verdict.reason, 300)}", "dim")
    colour = "red" if is_failure(verdict, session) else "yellow"
    for finding in verdict.findings[:FINDINGS_SHOWN]:
        yield "      " + style.paint(finding.message, colour)
        yield from _finding_lines(finding, session, style)
    more = verdict.findings_total - min(len(verdict.findings), FINDINGS_SHOWN)
    if more > 0:
        yield f"      and {more} more like this"
    if verdict.findings:
        keyword = rule.severity_in(session.revision).value
        yield style.paint(f"      {keyword}; why and what to do: mcptest explain {rule.id}", "dim")


def _symbol(verdict: Verdict, session: JudgedSession, style: Style) -> str:
    if verdict.outcome is Outcome.PASS:
        return style.tick
    if verdict.outcome is Outcome.FAIL:
        return style.cross if is_failure(verdict, session) else style.warning
    return style.unsure if verdict.outcome is Outcome.INCONCLUSIVE else style.dash


def _finding_lines(finding: Finding, session: JudgedSession, style: Style) -> Iterator[str]:
    if finding.expected is not None:
        yield f"        expected  {finding.expected}"
    if finding.actual is not None:
        yield f"        actual    {finding.actual}"
    if finding.record is not None:
        sender = f", from the {finding.sender}" if finding.sender else ""
        pointer = f" at {finding.pointer}" if finding.pointer else ""
        yield f"        where     {session.unit} {finding.record}{sender}{pointer}"
    if finding.excerpt is not None:
        yield style.paint(f"        message   {finding.excerpt}", "dim")


def _composition_lines(hazards: Sequence[Hazard], count: int, style: Style) -> Iterator[str]:
    yield style.paint(f"composition of {count} sessions", "cyan")
    if not hazards:
        yield f"  {style.tick} no hazard found"
    for hazard in hazards[:HAZARDS_SHOWN]:
        yield f"  {style.cross} {style.paint(hazard.id, 'bold')}  {hazard.message}"
    if len(hazards) > HAZARDS_SHOWN:
        yield f"    and {len(hazards) - HAZARDS_SHOWN} more"
    yield ""


def _summary_line(
    sessions: Sequence[JudgedSession], hazards: Sequence[Hazard], style: Style
) -> str:
    total = summarise(sessions, hazards)
    parts = [
        (total.fail, "failed", "red"),
        (total.hazards, "composition hazards", "red"),
        (total.warn, "warnings", "yellow"),
        (total.passed, "passed", "green"),
        (total.inconclusive, "inconclusive", "yellow"),
        (total.not_observed, "not observed", "dim"),
        (total.not_applicable, "not applicable", "dim"),
    ]
    shown = [
        style.paint(f"{n} {word.removesuffix('s') if n == 1 else word}", colour)
        for n, word, colour in parts
        if n or word in {"failed", "passed"}
    ]
    return ", ".join(shown)
