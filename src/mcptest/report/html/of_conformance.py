"""Scenarios as a source of the page: each with its checks and what showed them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.model.conformance import CheckResult, ConformanceReport, ScenarioResult, Status
from mcptest.report.html.facts import (
    Change,
    Column,
    Entry,
    Fact,
    Outcome,
    Source,
    brief,
    interrupted,
    told,
)
from mcptest.report.html.places import Places

_SIGNS = {
    Status.SUCCESS: "✓",
    Status.FAILURE: "✗",
    Status.WARNING: "!",
    Status.SKIPPED: "○",
    Status.UNTESTABLE: "·",
    Status.INFO: "i",
}


def source_of_conformance(
    report: ConformanceReport, file: str, code: int, places: Places
) -> Source:
    return Source(
        file=file,
        kind=f"conformance of a {report.side.value}",
        subject=report.subject,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        summary=f"{len(report.results)} scenarios",
        notes=(*interrupted(report.interrupted), *report.notes),
        changes=tuple(_changes(report)),
        columns=tuple(_columns(report)),
        entries=tuple(_entry(one, report, places) for one in report.results),
    )


def _changes(report: ConformanceReport) -> Iterator[Change]:
    if report.compared is None:
        return
    for name in report.compared.new:
        yield Change(f"new failure: {name}", "fail", name.partition(":")[0])
    for name in report.compared.stale:
        yield Change(f"expected to fail, and passes: {name}", "warn", name.partition(":")[0])


def _columns(report: ConformanceReport) -> Iterator[Column]:
    found = {_column(one, report): one for one in report.results}
    for name, one in found.items():
        yield Column(name, report.subject, f"{one.revision.value} {one.transport}")


def _column(result: ScenarioResult, report: ConformanceReport) -> str:
    return f"{report.subject} {result.revision.value} {result.transport}"


def _entry(result: ScenarioResult, report: ConformanceReport, places: Places) -> Entry:
    bad = result.told
    why = result.cause or result.unreached or (bad[0].message or bad[0].description if bad else "")
    return Entry(
        name=result.scenario,
        outcome=_outcome(result, report),
        group=f"{result.revision.value} over {result.transport}",
        brief=brief(why or _unlocks(result)),
        ms=result.duration_ms,
        column=_column(result, report),
        id=result.scenario,
        facts=tuple(_facts(result, places)),
    )


def _outcome(result: ScenarioResult, report: ConformanceReport) -> Outcome:
    """As the run's own verdict counts: a known failure, or one that is not scored, is none."""
    if report.fails(result):
        return "fail" if _counts(result, report) else "warn"
    if result.warned:
        return "warn"
    return "pass" if result.observed else "not_observed"


def _counts(result: ScenarioResult, report: ConformanceReport) -> bool:
    if not report.counts(result):
        return False
    if report.compared is None:
        return True
    return any(name.partition(":")[0] == result.scenario for name in report.compared.new)


def _unlocks(result: ScenarioResult) -> str:
    messages = (one.message for one in result.checks if one.status is Status.UNTESTABLE)
    return next((message for message in messages if message), "")


def _facts(result: ScenarioResult, places: Places) -> Iterator[Fact]:
    yield from told("What kept it from being judged", result.cause, "code")
    yield from told("Why it never got there", result.unreached, "code")
    for check in result.checks:
        yield from _check(check, result, places)
    yield from told("Client's output", result.stdout, "code")
    yield from told("Stderr", result.stderr, "code")
    yield from told("Run it again", result.repeat, "command")
    yield from places.of_capture(result.capture)


def _check(check: CheckResult, result: ScenarioResult, places: Places) -> Iterator[Fact]:
    said = f"{check.status.value}: {check.description}"
    if check.message:
        said += f"\n{check.message}"
    yield Fact(f"{_SIGNS[check.status]} {check.id}", "code", said)
    yield from told("Shown by", check.excerpt, "message")
    if check.details:
        details = msgspec.json.encode(check.details).decode("utf-8", "backslashreplace")
        yield Fact("Details", "message", details)
    if check.status.is_bad:
        yield from (Fact("Specification", "link", one.url) for one in check.references)
        if check.record is not None and places.sessions_in(result.capture):
            said = f"{check.id}: {check.message or check.description}"
            yield from places.of_capture(result.capture, check.record, said=said)
