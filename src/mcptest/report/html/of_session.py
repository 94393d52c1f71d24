"""Judged sessions as a source of the page, and their findings as pins on the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.verdict import Severity
from mcptest.report.html.facts import Column, Entry, Fact, Pin, Source, brief, paragraphs, told
from mcptest.report.html.of_compliance import finding_fact, outcome_of
from mcptest.report.html.places import Places
from mcptest.report.html.wire_rows import WireSession
from mcptest.report.verdicts_json import Report, RuleVerdict, SessionReport
from mcptest.rules.composition import Hazard
from mcptest.rules.declare import RULES

SESSION_RULES = "session rules"


def source_of_sessions(report: Report, file: str, code: int, places: Places) -> Source:
    entries = [
        _entry(verdict, session, places)
        for session in report.sessions
        for verdict in session.verdicts
    ]
    return Source(
        file=file,
        kind=SESSION_RULES,
        subject=", ".join(dict.fromkeys(one.label for one in report.sessions)),
        tool=report.tool,
        exit_code=code,
        summary=f"{report.summary.passed} passed, {report.summary.fail} failed",
        notes=tuple(
            f"{one.label}: the capture was cut short" for one in report.sessions if not one.complete
        ),
        columns=tuple(
            Column(_column(one), one.label, one.revision or "") for one in report.sessions
        ),
        entries=(*map(_hazard, report.composition), *entries),
    )


def _hazard(hazard: Hazard) -> Entry:
    shared = ", ".join(map(str, hazard.names))
    return Entry(
        name=hazard.title,
        id=hazard.id,
        outcome="fail",
        group="several servers together",
        brief=brief(hazard.message),
        facts=(
            Fact("Why", "code", hazard.message),
            *told("Servers", ", ".join(hazard.servers)),
            *told("Names", shared, "code"),
        ),
    )


def _column(session: SessionReport) -> str:
    return f"{session.label} {session.revision or ''}".strip()


def _entry(verdict: RuleVerdict, session: SessionReport, places: Places) -> Entry:
    why = verdict.findings[0].message if verdict.findings else verdict.reason
    return Entry(
        name=verdict.title,
        id=verdict.rule,
        outcome=outcome_of(verdict.outcome.value, verdict.severity),
        group=verdict.category,
        severity=verdict.severity.value,
        brief=brief(why),
        column=_column(session),
        facts=tuple(_facts(verdict, session, places)),
    )


def _facts(verdict: RuleVerdict, session: SessionReport, places: Places) -> Iterator[Fact]:
    rule = RULES.get(verdict.rule)
    yield from told("Requirement", paragraphs(rule.explanation) if rule is not None else "")
    yield from told("Specification", verdict.specification, "link")
    yield from told("Why", verdict.reason)
    for finding in verdict.findings:
        yield finding_fact(finding)
        yield from told("Message", finding.excerpt, "message")
        if finding.record is not None:
            yield from places.of_capture(session.file, finding.record)
    more = verdict.findings_total - len(verdict.findings)
    if more > 0:
        yield Fact("More", "prose", f"{more} further findings are not kept")
    if verdict.observed:
        yield Fact("Observed", "prose", f"{verdict.observed} times")
    yield Fact("Session", "code", f"{session.label} ({session.file})")


def pins_of(session: SessionReport, wire: WireSession) -> Sequence[Pin]:
    """Every finding that names its record."""
    return tuple(
        Pin(
            row=wire.row_of(finding.record, finding.sender),
            rule=verdict.rule,
            message=finding.message,
            severe=verdict.severity is Severity.MUST,
            expected=finding.expected,
            actual=finding.actual,
            pointer=finding.pointer,
        )
        for verdict in session.verdicts
        for finding in verdict.findings
        if finding.record is not None
    )
