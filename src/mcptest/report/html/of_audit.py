"""An audit and a lint as sources of the page: what a server offers, item by item."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.explore.lint.finding import Finding, LintReport, Severity
from mcptest.model.audit import AuditItem, AuditReport, Health
from mcptest.report.audit_text import WORDS, summary_in_words
from mcptest.report.html.facts import Column, Entry, Fact, Outcome, Source, brief, interrupted, told
from mcptest.report.html.places import Places
from mcptest.report.lint_text import summary_in_words as lint_in_words

_PLURALS = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "template": "resource templates",
}


def source_of_audit(report: AuditReport, file: str, code: int, places: Places) -> Source:
    server = report.server_name or report.server
    column = " ".join(filter(None, (server, report.revision)))
    entries = [_unread(method, why) for method, why in report.problems.items()]
    entries += [_item(one, column, places) for one in report.items]
    return Source(
        file=file,
        kind="audit",
        subject=server,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        grade=f"{report.score} %" if report.score is not None else "",
        summary=summary_in_words(report),
        notes=(*interrupted(report.interrupted), *report.notes),
        columns=(Column(column, server, report.revision),),
        entries=tuple(entries),
    )


def _unread(method: str, why: str) -> Entry:
    return Entry(method, "fail", "lists", brief=brief(why), facts=(Fact("Why", "code", why),))


def _item(item: AuditItem, column: str, places: Places) -> Entry:
    why = item.findings[0] if item.findings else item.detail
    return Entry(
        name=item.name,
        outcome=_health(item),
        group=_PLURALS[item.kind],
        brief=brief(why if item.is_bad or not item.tested else item.description or why),
        ms=item.duration_ms if item.tested else None,
        column=column,
        facts=tuple(_facts(item, places)),
    )


def _health(item: AuditItem) -> Outcome:
    if not item.tested:
        return "skip"
    if item.is_bad:
        return "fail"
    return "warn" if item.health is Health.REFUSED else "pass"


def _facts(item: AuditItem, places: Places) -> Iterator[Fact]:
    yield from told("Description", item.description)
    yield Fact("Health", "prose", WORDS[item.health])
    yield from told("Why", item.detail, "code")
    yield from (Fact("Finding", "code", one) for one in item.findings)
    for claim in item.claims:
        held = {True: "holds", False: "is not true", None: "nothing was visible"}[claim.holds]
        more = f": {claim.detail}" if claim.detail else ""
        yield Fact(f"Claims {claim.hint}", "prose", held + more)
    if item.input:
        given = msgspec.json.encode(item.input).decode("utf-8", "backslashreplace")
        yield Fact("Input", "message", given)
    yield from places.of_exchange(item.sent, item.received)
    yield from told("Sent", item.sent, "message")
    yield from told("Received", item.received, "message")
    yield from told("Server's stderr", "\n".join(item.stderr), "code")
    yield from (Fact("Note", "prose", one) for one in item.notes)
    yield from told("Audit it again", item.repeat, "command")


def source_of_lint(report: LintReport, file: str, code: int, _places: Places) -> Source:
    entries = [_unread(method, why) for method, why in report.problems.items()]
    entries += [_finding(one, report) for one in report.serious]
    looked = ", ".join(f"{number} {name}" for name, number in report.counts.items() if number)
    clean = Entry("everything else that was looked at", "pass", brief=looked)
    return Source(
        file=file,
        kind="lint",
        subject=report.server,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        summary=lint_in_words(report),
        notes=(*interrupted(report.interrupted), *report.notes),
        columns=(Column(report.server, report.server),),
        entries=(*entries, *((clean,) if looked else ())),
    )


def _finding(finding: Finding, report: LintReport) -> Entry:
    return Entry(
        name=f"{finding.item}: {finding.title}",
        id=finding.code,
        outcome="fail" if report.strict or finding.severity is Severity.ERROR else "warn",
        group=_PLURALS.get(finding.kind, finding.kind),
        severity=finding.severity.value,
        brief=brief(finding.message),
        column=report.server,
        row=f"{finding.code} {finding.title}",
        facts=tuple(_facts_of_finding(finding)),
    )


def _facts_of_finding(finding: Finding) -> Iterator[Fact]:
    yield Fact("Why", "code", finding.message)
    yield from told("Where", finding.field, "code")
    yield from told("What to do", finding.fix)
    if finding.suggestion is not None:
        value = msgspec.json.encode(finding.suggestion.value).decode("utf-8", "backslashreplace")
        yield Fact(f"Suggested at {finding.suggestion.pointer}", "message", value)
