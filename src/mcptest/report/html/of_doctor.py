"""A doctor's report as a source of the page: what the move to another revision breaks."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.doctor import Diagnosis, DoctorReport, Verdict
from mcptest.report.doctor_text import summary_in_words
from mcptest.report.html.facts import Column, Entry, Fact, Outcome, Source, brief, told
from mcptest.report.html.places import Places

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.BREAKS: "fail",
    Verdict.READY: "pass",
    Verdict.NOT_USED: "not_applicable",
    Verdict.UNKNOWN: "not_observed",
}


def source_of_doctor(report: DoctorReport, file: str, code: int, places: Places) -> Source:
    server = report.server_name or report.server
    way = f"{report.older.value} → {report.newer.value}"
    column = f"{server} {way}"
    return Source(
        file=file,
        kind="doctor",
        subject=server,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        summary=f"{way}: {summary_in_words(report)}",
        notes=report.notes,
        columns=(Column(column, server, way),),
        entries=tuple(_entry(one, column, places) for one in report.items),
    )


def _entry(item: Diagnosis, column: str, places: Places) -> Entry:
    outcome = "fail" if item.unchecked else _OUTCOMES[item.verdict]
    return Entry(
        name=item.title,
        id=item.id,
        outcome="warn" if outcome == "pass" and item.advice else outcome,
        group=f"since {item.since.value}",
        brief=brief(item.detail),
        column=column,
        facts=tuple(_facts(item, places)),
    )


def _facts(item: Diagnosis, places: Places) -> Iterator[Fact]:
    yield from told("What changes", item.change)
    yield Fact("Verdict", "prose", f"{item.verdict.value}: {item.detail}")
    yield from told("Advice", item.advice)
    yield from told("What to do", item.fix)
    for one in item.evidence:
        yield from places.of_exchange(one.sent, one.received)
        yield from told("Sent", one.sent, "message")
        yield Fact("Received", "message", one.received or "(nothing)")
    rules = ", ".join(f"{one.id} ({one.bucket})" for one in item.rules)
    yield from told("Rules", rules, "code")
