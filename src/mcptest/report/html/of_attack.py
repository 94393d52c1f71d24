"""Fuzz and property runs as sources of the page: what was tried, and each way in which it fails."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport
from mcptest.model.message import ABSENT
from mcptest.model.property import Counterexample, PropertyReport, PropertyResult
from mcptest.report.fuzz_text import summary_in_words
from mcptest.report.html.facts import Column, Entry, Fact, Source, brief, interrupted, told
from mcptest.report.html.places import Places
from mcptest.report.property_text import summary_in_words as properties_in_words


def source_of_fuzz(report: FuzzReport, file: str, code: int, places: Places) -> Source:
    server = report.server_name or report.server
    column = " ".join(filter(None, (server, report.revision)))
    unread = [_unread(report.problem)] if report.problem else []
    return Source(
        file=file,
        kind="fuzz",
        subject=server,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        summary=summary_in_words(report),
        notes=(*interrupted(report.interrupted), f"seed {report.seed}", *report.notes),
        columns=(Column(column, server, report.revision),),
        entries=(*unread, *(one for tool in report.tools for one in _tool(tool, column, places))),
    )


def _unread(why: str) -> Entry:
    return Entry("tools/list", "fail", brief=brief(why), facts=(Fact("Why", "code", why),))


def _tool(tool: FuzzedTool, column: str, places: Places) -> Iterator[Entry]:
    """One entry for the tool, and one for each way in which it fails."""
    sent = ", ".join(f"{number} {name}" for name, number in tool.categories.items())
    failed = bool(tool.failures or tool.unchecked)
    yield Entry(
        name=tool.name,
        outcome="skip" if tool.skipped or not tool.runs else "fail" if failed else "pass",
        group="tools",
        brief=brief(tool.skipped or f"{tool.passed} of {tool.runs} inputs were taken well"),
        ms=None if tool.skipped else tool.duration_ms,
        column=column,
        facts=(
            *told("Why it was skipped", tool.skipped),
            *told("Not checked", tool.unchecked),
            Fact("Inputs", "prose", f"{tool.runs} sent, {tool.failed} failed"),
            *told("By category", sent),
            *(Fact("Note", "prose", one) for one in tool.notes),
        ),
    )
    for failure in tool.failures:
        yield Entry(
            name=f"{failure.tool}: {failure.label}",
            outcome="fail",
            group=failure.verdict.value,
            brief=brief(failure.detail),
            ms=failure.duration_ms,
            column=column,
            facts=tuple(_of_failure(failure, places)),
        )


def _of_failure(failure: FuzzFailure, places: Places) -> Iterator[Fact]:
    yield Fact("Why", "code", f"{failure.verdict.value}: {failure.detail}")
    if failure.minimal is not ABSENT:
        yield Fact("Smallest input that fails so", "message", _json(failure.minimal))
    if failure.arguments is not ABSENT and failure.arguments != failure.minimal:
        yield Fact("First input that failed so", "message", _json(failure.arguments))
    if failure.valid is not None:
        says = "accepts it" if failure.valid else f"refuses it: {failure.misfit}"
        yield Fact("The tool's own schema", "prose", says)
    if not failure.again:
        yield Fact("Again", "prose", "it did not fail when it was sent alone")
    yield from places.of_exchange(failure.sent, failure.received)
    yield from told("Sent", failure.sent, "message")
    yield from told("Received", failure.received, "message")
    yield from told("Server's stderr", "\n".join(failure.stderr), "code")
    yield from told("Other inputs that fail so", "\n".join(failure.others), "code")
    yield from told("Run it again", failure.repeat, "command")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "backslashreplace")


def source_of_property(report: PropertyReport, file: str, code: int, places: Places) -> Source:
    server = report.server_name or report.server
    column = " ".join(filter(None, (server, report.revision)))
    entries = [one for each in report.properties for one in _property(each, report, places)]
    return Source(
        file=file,
        kind="property",
        subject=server,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        summary=properties_in_words(report),
        notes=(*interrupted(report.interrupted), f"seed {report.seed}", *report.notes),
        columns=(Column(column, server, report.revision),),
        entries=tuple(msgspec.structs.replace(one, column=column) for one in entries),
    )


def _property(one: PropertyResult, report: PropertyReport, places: Places) -> Iterator[Entry]:
    untried = one.name in report.untried
    counted = any(map(report.counts, one.counterexamples))
    tried = f"{one.examples + one.replayed} examples"
    yield Entry(
        name=one.name,
        outcome="skip" if one.skipped else "fail" if untried or counted else "pass",
        group="properties",
        brief=brief(one.skipped or one.ended_early or tried),
        ms=None if one.skipped else one.duration_ms,
        facts=(
            *told("What must hold", one.about),
            *told("Why it was skipped", one.skipped),
            Fact("Tried", "prose", tried),
            *told("Ended early", one.ended_early),
            *(Fact("Note", "prose", note) for note in one.notes),
        ),
    )
    for found in one.counterexamples:
        yield Entry(
            name=f"{found.of_property}: {found.title}",
            id=found.rule or found.way.value,
            outcome="fail" if report.counts(found) else "warn",
            group="counterexamples",
            severity=found.severity.value,
            brief=brief(found.message),
            facts=tuple(_of_counterexample(found, places)),
        )


def _of_counterexample(found: Counterexample, places: Places) -> Iterator[Fact]:
    yield Fact(
        "Finding",
        "diff",
        found.message,
        expected=found.expected or None,
        actual=found.actual or None,
    )
    yield from told("What a client does", "\n".join(found.words), "code")
    fault = next((line.text for line in found.lines if line.at_fault), "")
    if places.sessions_in(f"{found.example}.jsonl"):
        yield from places.of_capture(f"{found.example}.jsonl", excerpt=fault)
    said = {"client": "→", "server": "←"}
    talk = [
        f"{said.get(line.sender, '·')} {line.text}{'   ⚑' if line.at_fault else ''}"
        for line in found.lines
    ]
    yield from told("What went over the wire", "\n".join(talk), "code")
    yield from told("At fault", fault, "message")
    yield from told("Server's stderr", "\n".join(found.stderr), "code")
    if not found.again:
        yield Fact("Again", "prose", "it did not happen again on a fresh server")
    yield from told("Run it again", found.repeat, "command")
