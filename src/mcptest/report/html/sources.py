"""Any stored report as a source of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import comb
from statistics import fmean
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from mcptest.core.results import RunReport, Status, TestResult
from mcptest.report import reliability as counting
from mcptest.report.audit import AuditItem, AuditReport, word_of
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.conformance import ConformanceReport
from mcptest.report.doctor import Diagnosis, DoctorReport, DoctorVerdict
from mcptest.report.fuzz import FuzzedTool, FuzzFailure, FuzzReport
from mcptest.report.head import ITEM_KINDS, ReportHead
from mcptest.report.html.judged_sources import (
    evidence_facts,
    source_of_compliance,
    source_of_conformance,
    source_of_sessions,
)
from mcptest.report.html.page_facts import (
    Change,
    Column,
    Fact,
    Outcome,
    PageEntry,
    PageReliability,
    Source,
    Trials,
    brief,
    in_json,
    mismatch,
    told,
)
from mcptest.report.html.wire_rows import Places
from mcptest.report.lint import LintReport
from mcptest.report.property import Counterexample, PropertyReport, PropertyResult
from mcptest.report.reliability import reliability
from mcptest.report.stored import Stored
from mcptest.report.verdicts import SessionsReport
from mcptest.rules.lint.finding import LintFinding, LintSeverity

# -- Reports on one server -----------------------------------------------------------------------


def _source(
    report: ReportHead,
    entries: Iterable[PageEntry],
    *,
    group: str = "",
    column: Column | None = None,
    **more: Any,
) -> Source:
    """Lists that could not be read stand in no column."""
    server = report.server_name
    name = " ".join(filter(None, (server, report.revision)))
    column = column or Column(name, server, report.revision)
    seed = [f"seed {seed}"] if (seed := getattr(report, "seed", None)) is not None else []
    lists = [
        PageEntry(method, "fail", group, brief=brief(why), facts=(Fact("Why", "code", why),))
        for method, why in report.unread.items()
    ]
    return Source(
        subject=server,
        **{"summary": report.in_words(), **more},
        notes=(*seed, *report.notes),
        columns=(column,),
        entries=(*lists, *(replace(one, column=column.name) for one in entries)),
    )


def _exchange(places: Places, sent: str, received: str, stderr: Iterable[str]) -> Iterator[Fact]:
    """What went over the wire, with a link into the capture that shows it."""
    yield from places.of_excerpts(received, sent)
    yield from told("Sent", sent, "message")
    yield from told("Received", received, "message")
    yield from told("Server's stderr", "\n".join(stderr), "code")


def source_of_fuzz(report: FuzzReport, places: Places) -> Source:
    entries = [one for tool in report.tools for one in _tool(tool, places)]
    for tool in report.skipped:
        facts = told("Why it was skipped", tool.reason)
        entries.append(PageEntry(tool.name, "skip", "tools", brief=brief(tool.reason), facts=facts))
    return _source(report, entries)


def _tool(tool: FuzzedTool, places: Places) -> Iterator[PageEntry]:
    """One entry for the tool, and one for each way in which it fails."""
    sent = ", ".join(f"{number} {name}" for name, number in tool.categories.items())
    failed = bool(tool.failures or tool.unchecked)
    yield PageEntry(
        name=tool.name,
        outcome="skip" if not tool.runs else "fail" if failed else "pass",
        group="tools",
        brief=brief(f"{tool.passed} of {tool.runs} inputs passed"),
        ms=tool.duration_ms,
        facts=(
            *told("Not checked", tool.unchecked),
            Fact("Inputs", "prose", f"{tool.runs} sent, {tool.failed} failed"),
            *told("By category", sent),
            *(Fact("Note", "prose", one) for one in tool.notes),
        ),
    )
    for failure in tool.failures:
        yield PageEntry(
            name=f"{failure.tool}: {failure.label}",
            outcome="fail",
            group=failure.verdict.value,
            brief=brief(failure.detail),
            ms=failure.duration_ms,
            facts=tuple(_of_failure(failure, places)),
        )


def _of_failure(failure: FuzzFailure, places: Places) -> Iterator[Fact]:
    yield Fact("Why", "code", f"{failure.verdict.value}: {failure.detail}")
    if failure.minimal is not UNSET:
        yield Fact("Smallest input that fails", "message", in_json(failure.minimal))
    if failure.arguments is not UNSET and failure.arguments != failure.minimal:
        yield Fact("First input that failed", "message", in_json(failure.arguments))
    if failure.valid is not None:
        says = "accepts the input" if failure.valid else f"rejects the input: {failure.misfit}"
        yield Fact("The tool's schema", "prose", says)
    if not failure.again:
        yield Fact("Retried", "prose", "it did not fail when sent alone")
    yield from _exchange(places, failure.sent, failure.received, failure.stderr)
    yield from told("Other inputs that fail this way", "\n".join(failure.others), "code")
    yield from told("Repeat", failure.repeat, "command")


def source_of_property(report: PropertyReport, places: Places) -> Source:
    return _source(report, [one for each in report.properties for one in _property(each, places)])


def _property(one: PropertyResult, places: Places) -> Iterator[PageEntry]:
    counted = any(found.counts for found in one.counterexamples)
    tried = f"{one.examples + one.replayed} examples"
    seen: Outcome = "not_observed" if one.untried else "fail" if counted else "pass"
    yield PageEntry(
        name=one.name,
        outcome="skip" if one.skipped else seen,
        group="properties",
        brief=brief(one.skipped or one.ended_early or tried),
        ms=None if one.skipped else one.duration_ms,
        facts=(
            *told("Requirement", one.about),
            *told("Why it was skipped", one.skipped),
            Fact("Examples", "prose", tried),
            *told("Ended early", one.ended_early),
            *(Fact("Note", "prose", note) for note in one.notes),
        ),
    )
    for found in one.counterexamples:
        yield PageEntry(
            name=f"{found.of_property}: {found.title}",
            id=found.rule or found.way.value,
            outcome="fail" if found.counts else "warn",
            group="counterexamples",
            severity=found.severity.value,
            brief=brief(found.message),
            facts=tuple(_of_counterexample(found, places)),
        )


def _of_counterexample(found: Counterexample, places: Places) -> Iterator[Fact]:
    expected, actual = found.expected or None, found.actual or None
    yield Fact("Finding", "diff", found.message, expected, actual)
    yield from told("Client steps", "\n".join(found.words), "code")
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
    yield from told("Repeat", found.repeat, "command")


def source_of_audit(report: AuditReport, places: Places) -> Source:
    items = (_item(one, places) for one in report.items)
    grade = f"{report.score}%" if report.score is not None else ""
    return _source(report, items, group="lists", grade=grade)


def _item(item: AuditItem, places: Places) -> PageEntry:
    why = item.findings[0] if item.findings else item.detail
    outcome: Outcome = "pass" if item.passed else "warn"
    if item.is_bad or not item.tested:
        outcome = "fail" if item.tested else "skip"
    return PageEntry(
        name=item.name,
        outcome=outcome,
        group=ITEM_KINDS[item.kind],
        brief=brief(item.description or why if item.passed else why or item.description),
        ms=item.duration_ms if item.tested else None,
        facts=tuple(_facts(item, places)),
    )


def _facts(item: AuditItem, places: Places) -> Iterator[Fact]:
    yield from told("Description", item.description)
    yield Fact("Result", "prose", word_of(item))
    yield from told("Why", item.detail, "code")
    yield from (Fact("Finding", "code", one) for one in item.findings)
    for claim in item.claims:
        held = {True: "true", False: "not true", None: "not observable"}[claim.holds]
        more = f": {claim.detail}" if claim.detail else ""
        yield Fact(f"Annotation {claim.hint}", "prose", held + more)
    yield from told("Input", in_json(item.input) if item.input else "", "message")
    yield from _exchange(places, item.sent, item.received, item.stderr)
    yield from (Fact("Note", "prose", one) for one in item.notes)
    yield from told("Repeat", item.repeat, "command")


def source_of_lint(report: LintReport, _places: Places) -> Source:
    looked = ", ".join(f"{number} {name}" for name, number in report.counts.items() if number)
    clean = PageEntry("everything else that was checked", "pass", brief=looked)
    source = _source(
        report,
        [_finding(one, report) for one in report.serious],
        group="lists",
        column=Column(report.server_name, report.server_name),
        summary=report.totals(),
    )
    return replace(source, entries=(*source.entries, *((clean,) if looked else ())))


def _finding(finding: LintFinding, report: LintReport) -> PageEntry:
    several = (word for kind, word in ITEM_KINDS.items() if kind == finding.kind)
    suggested: tuple[Fact, ...] = ()
    if finding.suggestion is not None:
        at, value = finding.suggestion.pointer, in_json(finding.suggestion.value)
        suggested = (Fact(f"Suggested at {at}", "message", value),)
    return PageEntry(
        name=f"{finding.item}: {finding.title}",
        id=finding.code,
        outcome="fail" if report.strict or finding.severity is LintSeverity.ERROR else "warn",
        group=next(several, finding.kind),
        severity=finding.severity.value,
        brief=brief(finding.message),
        row=f"{finding.code} {finding.title}",
        facts=(
            Fact("Why", "code", finding.message),
            *told("Where", finding.field, "code"),
            *told("What to do", finding.fix),
            *suggested,
        ),
    )


_OUTCOMES: dict[DoctorVerdict, Outcome] = {
    DoctorVerdict.BREAKS: "fail",
    DoctorVerdict.READY: "pass",
    DoctorVerdict.NOT_USED: "not_applicable",
    DoctorVerdict.UNKNOWN: "not_observed",
}


def source_of_doctor(report: DoctorReport, places: Places) -> Source:
    server = report.server_info.name or report.server
    move = f"{report.older.value} → {report.newer.value}"
    column = f"{server} {move}"
    return Source(
        subject=server,
        summary=f"{move}: {report.in_words()}",
        notes=report.notes,
        columns=(Column(column, server, move),),
        entries=tuple(_entry(one, column, places) for one in report.items),
    )


def _entry(item: Diagnosis, column: str, places: Places) -> PageEntry:
    outcome = "fail" if item.unchecked else _OUTCOMES[item.verdict]
    return PageEntry(
        name=item.title,
        id=item.id,
        outcome="warn" if outcome == "pass" and item.advice else outcome,
        group=f"since {item.since.value}",
        brief=brief(item.detail),
        column=column,
        facts=tuple(_doctor_facts(item, places)),
    )


def _doctor_facts(item: Diagnosis, places: Places) -> Iterator[Fact]:
    yield from told("What changes", item.change)
    yield Fact("Verdict", "prose", f"{item.verdict.value}: {item.detail}")
    yield from told("Recommendation", item.advice)
    yield from told("What to do", item.fix)
    for one in item.evidence:
        yield from places.of_excerpts(one.received, one.sent)
        yield from evidence_facts((one,))
    rules = ", ".join(f"{one.id} ({one.bucket})" for one in item.rules)
    yield from told("Rules", rules, "code")


# -- Trials as the page draws them ---------------------------------------------------------------

TESTS_SHOWN = 100
FLAKY_NAMED = 50
LONGEST_CURVE = 50
OUTCOMES: dict[Status, Outcome] = {Status.PASS: "pass", Status.FAIL: "fail", Status.SKIP: "skip"}


def trials_of(report: RunReport) -> tuple[Trials, ...]:
    """What was flaky or failed first, then what took longest."""
    if report.trials < 2:
        return ()
    found = []
    for test, trials in counting.trials_of_each_test(report.results).items():
        outcomes = tuple(OUTCOMES[one.status] for one in trials)
        times = tuple(one.duration_ms for one in trials)
        found.append(Trials(_titled(test.name, test.language), outcomes, times))
    found.sort(key=lambda one: (one.outcomes.count("fail") == 0, -max(one.ms)))
    return tuple(found[:TESTS_SHOWN])


def reliability_of(report: RunReport) -> PageReliability | None:
    measured = counting.reliability(report)
    if report.trials < 2 or not measured.tests:
        return None
    # A curve is as long as the shortest series: beyond it some tests say nothing.
    ks = range(1, min(LONGEST_CURVE, *(one.trials for one in measured.tests)) + 1)
    pairs = [(one.trials, one.passed) for one in measured.tests]
    return PageReliability(
        tests=len(measured.tests),
        capable=measured.capable,
        reliable=measured.reliable,
        flaky=tuple(one.name for one in measured.tests if one.flaky)[:FLAKY_NAMED],
        at_least_one=tuple(round(fmean(at_least_one(*one, k) for one in pairs), 4) for k in ks),
        every_one=tuple(round(fmean(every_one(*one, k) for one in pairs), 4) for k in ks),
    )


def at_least_one(trials: int, passed: int, k: int) -> float:
    """The share of all choices of `k` trials among which one passed."""
    return 1 - comb(trials - passed, k) / comb(trials, k)


def every_one(trials: int, passed: int, k: int) -> float:
    """The share of all choices of `k` trials that passed all."""
    return comb(passed, k) / comb(trials, k)


# -- The run of a suite as a source of the page --------------------------------------------------


def source_of_run(report: RunReport, places: Places) -> Source:
    columns = _columns(report.results)
    return Source(
        kind="run",
        subject=", ".join(dict.fromkeys(one.server for one in report.results if one.server)),
        summary=_summary(report),
        notes=report.notes,
        changes=tuple(
            Change(f"{name}: was {one.was}, now {one.now}", "fail", name)
            for one in report.regressions
            for name in (_titled(one.name, one.language),)
        ),
        trials=trials_of(report),
        reliability=reliability_of(report),
        columns=tuple(one for each in columns.values() for one in each),
        entries=tuple(_run_entry(one, report, places, columns) for one in report.results),
    )


def _summary(report: RunReport) -> str:
    counts = f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped"
    if report.shard is not None:
        counts = f"shard {report.shard.index} of {report.shard.count}: {counts}"
    if report.demand is not None and report.demand.threshold < 100:
        counts += f"; {report.demand.threshold}% is enough"
    return f"{counts}; {reliability(report)}" if report.trials > 1 else counts


def _titled(name: str, language: str) -> str:
    return f"{name} [{language}]" if language else name


def _columns(results: Iterable[TestResult]) -> dict[str, list[Column]]:
    """By server, one for each revision in which its tests ran: where there are several, a matrix.

    A server that could not be started has named no revision; it is the same server all the same.
    """
    spoken: dict[str, dict[str, None]] = {}
    for one in results:
        revisions = spoken.setdefault(one.language or one.server, {})
        if one.revision:
            revisions[one.revision] = None
    return {
        server: [Column(f"{server} {each}".strip(), server, each) for each in revisions or ("",)]
        for server, revisions in spoken.items()
    }


def _run_entry(
    result: TestResult, report: RunReport, places: Places, columns: Mapping[str, Sequence[Column]]
) -> PageEntry:
    mine = columns[result.language or result.server]
    column = next((one for one in mine if one.revision == result.revision), mine[0])
    name = _titled(result.name, result.language)
    if report.trials > 1:
        name += f" (trial {result.trial})"
    return PageEntry(
        name=name,
        outcome=OUTCOMES[result.status],
        group=result.file,
        brief=brief(result.detail),
        ms=result.duration_ms,
        column=column.name,
        row=result.name if name != result.name else "",
        facts=tuple(_run_facts(result, places)),
    )


def _run_facts(result: TestResult, places: Places) -> Iterator[Fact]:
    if not result.failures and result.detail:
        yield Fact("Why", "code", result.detail)
    for check in result.failures:
        yield from mismatch(check)
    if result.file:
        yield Fact("Where", "code", f"{result.file}:{result.line}" if result.line else result.file)
    proof = result.proof
    if proof is not None:
        yield from places.of_capture(proof.capture, excerpt=proof.response or proof.request)
        yield from told("Request", proof.request, "message")
        if proof.request or proof.response:
            yield Fact("Response", "message", proof.response or "(no response)")
        yield from told("Server's stderr", "\n".join(proof.stderr), "code")
        yield from told("Server's exit", proof.exit)
        yield from told("Repeat", proof.repeat, "command")
    yield from told("Note", result.note)
    yield from told("Failure kind", result.kind)
    yield from told("Server", " · ".join(filter(None, (result.server, result.revision))))
    yield from told("Tags", ", ".join(result.tags))


# -- Any stored report as a source of the page ---------------------------------------------------

_MAKERS: Mapping[type, Callable[[Any, Places], Source]] = {
    RunReport: source_of_run,
    ComplianceReport: source_of_compliance,
    ConformanceReport: source_of_conformance,
    SessionsReport: source_of_sessions,
    AuditReport: source_of_audit,
    LintReport: source_of_lint,
    FuzzReport: source_of_fuzz,
    PropertyReport: source_of_property,
    DoctorReport: source_of_doctor,
}
"""Of any other kind the results are shown."""


def source_of(stored: Stored, places: Places) -> Source:
    report: Any = stored.report if type(stored.report) in _MAKERS else stored.report.as_run()
    found = _MAKERS[type(report)](report, places)
    cut_short = ("interrupted before the end",) if getattr(report, "interrupted", False) else ()
    return replace(
        found,
        file=stored.file,
        exit_code=int(stored.exit_code),
        kind=found.kind or report.kind,
        started=getattr(report, "started", ""),
        tool=report.tool,
        ms=getattr(report, "duration_ms", 0),
        invocation=report.invocation or None,
        notes=(*cut_short, *found.notes),
    )
