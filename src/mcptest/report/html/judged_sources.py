"""A judged server as a source of the page: each rule with its requirement, verdict and proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from mcptest.core.judgement import Evidence, GateResult, Judgement, RootCause, RuleResult
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, Compared, ScenarioResult
from mcptest.core.verdict import Severity
from mcptest.report.compliance import facts
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.conformance import ConformanceReport
from mcptest.report.html.page_facts import (
    Change,
    Column,
    Fact,
    Outcome,
    PageEntry,
    Pin,
    Source,
    Unjudged,
    brief,
    difference,
    in_json,
    paragraphs,
    told,
)
from mcptest.report.html.wire_rows import Places, WireSession
from mcptest.report.terminal import counted, why_revision
from mcptest.report.verdicts import RuleVerdict, SessionReport, SessionsReport

# -- What stands behind the grade of a judged server ---------------------------------------------

IDS_NAMED = 400
_UNJUDGED: Mapping[Outcome, Callable[[Judgement], list[facts.Group]]] = {
    "not_observed": facts.not_observed,
    "inconclusive": facts.inconclusive,
    "not_applicable": facts.not_applicable,
}


def column_of(report: ComplianceReport, judgement: Judgement) -> Column:
    server = judgement.server_name or report.server
    return Column(
        name=f"{server} {judgement.revision.value}",
        server=server,
        revision=judgement.revision.value,
        grade=facts.letter_of(judgement.grade),
        graded=True,
        about=tuple(_about(report, judgement)),
        sections=judgement.grade.sections if judgement.grade is not None else (),
        unjudged=tuple(
            Unjudged(outcome, group.why, group.ids[:IDS_NAMED])
            for outcome, groups in _UNJUDGED.items()
            for group in groups(judgement)
        ),
    )


def _about(report: ComplianceReport, judgement: Judgement) -> Iterator[str]:
    yield " · ".join(filter(None, (report.server, facts.server_in_words(judgement))))
    yield " · ".join(facts.scope_in_words(judgement))
    if judgement.revision_reason:
        yield why_revision(judgement.revision, judgement.revision_reason)
    grade = judgement.grade
    if grade is not None and facts.letter_of(grade):
        yield f"{facts.score_in_words(grade)} · coverage {facts.coverage_in_words(judgement)}"
    else:
        yield f"{facts.why_no_letter(judgement)} · coverage {facts.coverage_in_words(judgement)}"
    yield from facts.caps_in_words(grade)
    yield f"profile {judgement.profile.id}"


# -- A judged server as a source of the page -----------------------------------------------------


def source_of_compliance(report: ComplianceReport, places: Places) -> Source:
    columns = tuple(column_of(report, one) for one in report.judgements)
    entries = [
        PageEntry(
            name=gate.name,
            outcome="pass" if gate.passed else "fail",
            group="gates",
            brief=brief(gate.detail),
            facts=(*told("Why", gate.detail), *told("In full", "\n".join(gate.lines), "code")),
        )
        for gate in report.gates
    ]
    for column, judgement in zip(columns, report.judgements, strict=True):
        entries += [_cause(one, column.name) for one in judgement.causes]
        for one in judgement.results:
            told_of = _facts(one, judgement, places)
            grave = one.severity is Severity.SHOULD and report.strict is True
            entries.append(_judged(one, column.name, told_of, one.unlocked_by, grave=grave))
    return Source(
        subject=report.server,
        grade=facts.letter_of(report.judgements[0].grade) if len(report.judgements) == 1 else "",
        summary=", ".join(_summary(report)),
        notes=(*report.notes, *(note for one in report.judgements for note in one.notes)),
        changes=tuple(_changes(report.gates)),
        columns=columns,
        entries=tuple(entries),
    )


def _changes(gates: Sequence[GateResult]) -> Iterator[Change]:
    """What the gates say that compare with something earlier."""
    for gate in gates:
        outcome: Outcome = "pass" if gate.passed else "fail"
        lines = gate.lines or ((gate.detail,) if gate.detail else ())
        yield from (Change(f"{gate.name}: {line}", outcome) for line in lines)


def _summary(report: ComplianceReport) -> Iterator[str]:
    if len(report.judgements) != 1:
        for one in report.judgements:
            yield f"{one.revision.value} {facts.letter_of(one.grade)}".strip()
        return
    (judgement,) = report.judgements
    yield f"{judgement.revision.value} over {judgement.transport}"
    if judgement.grade is not None and facts.letter_of(judgement.grade):
        yield f"{facts.letter_of(judgement.grade)}, {facts.score_in_words(judgement.grade)}"
    yield f"coverage {facts.coverage_in_words(judgement)}"


def _cause(cause: RootCause, column: str) -> PageEntry:
    kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
    why = [Fact("What went wrong", "code", cause.message), *told("What to do", cause.hint)]
    return PageEntry(
        name=brief(cause.message),
        id=cause.id,
        outcome="fail" if cause.kept_from_judging else "warn",
        group="root causes",
        brief=kept,
        column=column,
        facts=(*why, Fact("Effect", "prose", kept), *evidence_facts(cause.evidence)),
    )


def _judged(
    result: RuleResult | RuleVerdict,
    column: str,
    proof: Iterator[Fact],
    otherwise: str = "",
    *,
    grave: bool = False,
) -> PageEntry:
    """`otherwise`: why, where nothing was found and no reason is given. `grave`: it fails the run
    also where it is not a MUST."""
    why = result.findings[0].message if result.findings else result.reason or otherwise
    is_warning = result.failed and not facts.is_broken(result) and not grave
    return PageEntry(
        name=result.title,
        id=result.id,
        outcome="warn" if is_warning else result.outcome.value,
        group=result.section,
        severity=result.severity.value,
        brief=brief(why),
        column=column,
        facts=tuple(proof),
    )


def _asked(result: RuleResult | RuleVerdict) -> Iterator[Fact]:
    yield from told("Requirement", paragraphs(result.requirement))
    yield from told("Specification", result.url, "link")
    yield from told("Why", result.reason)


def _facts(result: RuleResult, judgement: Judgement, places: Places) -> Iterator[Fact]:
    yield from _asked(result)
    yield from map(difference, result.findings[:1])
    yield from _on_the_wire(result, judgement, places)
    yield from map(difference, result.findings[1:])
    yield from evidence_facts(result.evidence)
    yield from evidence_facts(result.again, " when retried")
    yield from told("Needs", result.unlocked_by)
    yield from told("Origin", facts.origin_in_words(result))
    if result.common is not None:
        yield Fact("How common", "prose", facts.commonness_in_words(result.common))
    yield from told("What to do", result.fix if result.failed else "")
    if result.observed:
        yield Fact("Observed", "prose", counted(result.observed, "time"))
    yield from told("Repeat", result.repeat, "command")


def evidence_facts(evidence: Sequence[Evidence], when: str = "") -> Iterator[Fact]:
    for one in evidence:
        yield from told(f"Sent{when}", one.sent, "message")
        yield Fact(f"Received{when}", "message", one.received or "(no response)")


def _on_the_wire(result: RuleResult, judgement: Judgement, places: Places) -> Iterator[Fact]:
    """The proof was shortened and made safe; its beginning finds the message again."""
    shown = [one.excerpt for one in result.findings if one.excerpt]
    shown += [text for one in result.evidence for text in (one.received, one.sent)]
    found = list(places.of_excerpts(*shown, files=judgement.captures))
    yield from found
    if result.observed and not found:
        sessions = (number for file in judgement.captures for number in places.sessions_in(file))
        yield from (Fact("In the session", "wire", session=one) for one in islice(sessions, 1))


# -- Scenarios as a source of the page -----------------------------------------------------------

_SIGNS = {
    CheckStatus.SUCCESS: "✓",
    CheckStatus.FAILURE: "✗",
    CheckStatus.WARNING: "!",
    CheckStatus.SKIPPED: "○",
    CheckStatus.UNTESTABLE: "·",
    CheckStatus.INFO: "i",
}


def source_of_conformance(report: ConformanceReport, places: Places) -> Source:
    compared = report.compared or Compared()
    changes = [Change(f"new failure: {one}", "fail", one.partition(":")[0]) for one in compared.new]
    for name in compared.stale:
        said = f"expected to fail, but passes: {name}"
        changes.append(Change(said, "warn", name.partition(":")[0]))
    return Source(
        kind=f"conformance of a {report.side.value}",
        subject=report.subject,
        summary=report.in_words(),
        notes=report.notes,
        changes=tuple(changes),
        columns=tuple(
            Column(name, report.subject, f"{one.revision.value} {one.transport}")
            for name, one in {_column(one, report): one for one in report.results}.items()
        ),
        entries=tuple(_entry(one, report, places) for one in report.results),
    )


def _column(result: ScenarioResult, report: ConformanceReport) -> str:
    return f"{report.subject} {result.revision.value} {result.transport}"


def _entry(result: ScenarioResult, report: ConformanceReport, places: Places) -> PageEntry:
    bad = result.told
    why = result.cause or result.unreached or (bad[0].message or bad[0].description if bad else "")
    untestable = [one for one in result.checks if one.status is CheckStatus.UNTESTABLE]
    unlocks = next((one.message for one in untestable if one.message), "")
    return PageEntry(
        name=result.scenario,
        outcome=_outcome(result, report),
        group=f"{result.revision.value} over {result.transport}",
        brief=brief(why or unlocks),
        ms=result.duration_ms,
        column=_column(result, report),
        id=result.scenario,
        facts=tuple(_conformance_facts(result, places)),
    )


def _outcome(result: ScenarioResult, report: ConformanceReport) -> Outcome:
    """As the run's own verdict counts: a known failure, or one that is not scored, is none."""
    if report.fails(result) and report.counts(result):
        new = None if report.compared is None else report.compared.new
        if new is None or any(one.partition(":")[0] == result.scenario for one in new):
            return "fail"
    outcomes: dict[str, Outcome] = {"passed": "pass", "unseen": "not_observed"}
    return outcomes.get(report.outcome(result), "warn")


def _conformance_facts(result: ScenarioResult, places: Places) -> Iterator[Fact]:
    yield from told("Could not be judged", result.cause, "code")
    yield from told("Not reached", result.unreached, "code")
    for check in result.checks:
        yield from _check(check, result, places)
    yield from told("Client's output", result.stdout, "code")
    yield from told("Stderr", result.stderr, "code")
    yield from told("Repeat", result.repeat, "command")
    yield from places.of_capture(result.capture)


def _check(check: CheckResult, result: ScenarioResult, places: Places) -> Iterator[Fact]:
    said = f"{check.status.value}: {check.description}"
    if check.message:
        said += f"\n{check.message}"
    yield Fact(f"{_SIGNS[check.status]} {check.id}", "code", said)
    yield from told("Evidence", check.excerpt, "message")
    yield from told("Details", in_json(check.details) if check.details else "", "message")
    if check.status.is_bad:
        yield from (Fact("Specification", "link", one.url) for one in check.references)
        if check.record is not None and places.sessions_in(result.capture):
            said = f"{check.id}: {check.message or check.description}"
            yield from places.of_capture(result.capture, check.record, said=said)


# -- Judged sessions as a source of the page, and their findings as pins on the messages ---------

SESSION_RULES = "session rules"


def source_of_sessions(report: SessionsReport, places: Places) -> Source:
    hazards = [
        PageEntry(
            name=hazard.title,
            id=hazard.id,
            outcome="fail",
            group="composition",
            brief=brief(hazard.message),
            facts=(
                Fact("Why", "code", hazard.message),
                *told("Servers", ", ".join(hazard.servers)),
                *told("Names", ", ".join(map(str, hazard.names)), "code"),
            ),
        )
        for hazard in report.composition
    ]
    entries = [
        _judged(
            verdict,
            _session_column(session),
            _session_facts(verdict, session, places),
            grave=report.strict is True,
        )
        for session in report.sessions
        for verdict in session.verdicts
    ]
    return Source(
        kind=SESSION_RULES,
        subject=", ".join(dict.fromkeys(one.label for one in report.sessions)),
        summary=f"{report.summary.passed} passed, {report.summary.fail} failed",
        notes=tuple(
            f"{one.label}: the capture is incomplete" for one in report.sessions if not one.complete
        ),
        columns=tuple(
            Column(_session_column(one), one.label, one.revision or "") for one in report.sessions
        ),
        entries=(*hazards, *entries),
    )


def _session_column(session: SessionReport) -> str:
    return f"{session.label} {session.revision or ''}".strip()


def _session_facts(verdict: RuleVerdict, session: SessionReport, places: Places) -> Iterator[Fact]:
    yield from _asked(verdict)
    for finding in verdict.findings:
        yield difference(finding)
        yield from told("Message", finding.excerpt, "message")
        if finding.record is not None:
            yield from places.of_capture(session.file, finding.record)
    more = verdict.findings_total - len(verdict.findings)
    if more > 0:
        yield Fact("More", "prose", f"{counted(more, 'more finding')} not kept")
    if verdict.observed:
        yield Fact("Observed", "prose", counted(verdict.observed, "time"))
    yield Fact("Session", "code", f"{session.label} ({session.file})")


def pins_of(session: SessionReport, wire: WireSession) -> Sequence[Pin]:
    """Every finding that names its record."""
    return tuple(
        Pin(
            row=wire.row_of(finding.record, finding.sender),
            rule=verdict.id,
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
