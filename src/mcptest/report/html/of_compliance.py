"""A judged server as a source of the page: each rule with its requirement, verdict and proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mcptest.model.compliance import (
    ComplianceReport,
    Evidence,
    GateResult,
    Judgement,
    RootCause,
    RuleResult,
)
from mcptest.model.verdict import Finding, Severity
from mcptest.report.compliance_facts import (
    commonness_in_words,
    coverage_in_words,
    letter_of,
    origin_in_words,
    score_in_words,
)
from mcptest.report.html.facts import Change, Entry, Fact, Outcome, Source, brief, paragraphs, told
from mcptest.report.html.grades import column_of, name_of_column
from mcptest.report.html.places import Places


def source_of_compliance(report: ComplianceReport, file: str, code: int, places: Places) -> Source:
    entries = [_gate(gate) for gate in report.gates]
    for judgement in report.judgements:
        column = name_of_column(report, judgement)
        entries += [_cause(one, judgement, column) for one in judgement.causes]
        entries += [_rule(one, judgement, column, places) for one in judgement.results]
    return Source(
        file=file,
        kind="compliance",
        subject=report.server,
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=code,
        grade=letter_of(report.judgements[0].grade) if len(report.judgements) == 1 else "",
        summary=_summary(report),
        notes=(*report.notes, *(note for one in report.judgements for note in one.notes)),
        changes=tuple(_changes(report.gates)),
        columns=tuple(column_of(report, one) for one in report.judgements),
        entries=tuple(entries),
    )


def _changes(gates: Sequence[GateResult]) -> Iterator[Change]:
    """What the gates say that compare with something earlier."""
    for gate in gates:
        outcome: Outcome = "pass" if gate.passed else "fail"
        lines = gate.lines or ((gate.detail,) if gate.detail else ())
        yield from (Change(f"{gate.name}: {line}", outcome) for line in lines)


def _summary(report: ComplianceReport) -> str:
    if len(report.judgements) == 1:
        return _in_full(report.judgements[0])
    grades = (f"{one.revision.value} {letter_of(one.grade)}" for one in report.judgements)
    return ", ".join(map(str.strip, grades))


def _in_full(judgement: Judgement) -> str:
    parts = [f"{judgement.revision.value} over {judgement.transport}"]
    if judgement.grade is not None and letter_of(judgement.grade):
        parts.append(f"{letter_of(judgement.grade)}, {score_in_words(judgement.grade)}")
    parts.append(coverage_in_words(judgement))
    return ", ".join(parts)


def _gate(gate: GateResult) -> Entry:
    return Entry(
        name=gate.name,
        outcome="pass" if gate.passed else "fail",
        group="gates",
        brief=brief(gate.detail),
        facts=(*told("Why", gate.detail), *told("In full", "\n".join(gate.lines), "code")),
    )


def _cause(cause: RootCause, judgement: Judgement, column: str) -> Entry:
    kept = f"{cause.kept_from_judging} rules could not be judged because of it"
    facts = [Fact("What went wrong", "code", cause.message), *told("What to do", cause.hint)]
    return Entry(
        name=brief(cause.message),
        id=cause.id,
        outcome="fail" if cause.kept_from_judging else "warn",
        group="root causes",
        brief=kept,
        column=column,
        facts=(*facts, Fact("Effect", "prose", kept), *_evidence(cause.evidence)),
    )


def _rule(result: RuleResult, judgement: Judgement, column: str, places: Places) -> Entry:
    why = result.findings[0].message if result.findings else result.reason or result.unlocked_by
    return Entry(
        name=result.title,
        id=result.id,
        outcome=outcome_of(result.outcome.value, result.severity),
        group=result.section,
        severity=result.severity.value,
        brief=brief(why),
        column=column,
        facts=tuple(_facts(result, judgement, places)),
    )


def outcome_of(outcome: str, severity: Severity) -> Outcome:
    """A keyword below MUST that is broken is a warning."""
    if outcome == "fail" and severity is not Severity.MUST:
        return "warn"
    words: dict[str, Outcome] = {
        "pass": "pass",
        "fail": "fail",
        "inconclusive": "inconclusive",
        "not_observed": "not_observed",
        "not_applicable": "not_applicable",
    }
    return words[outcome]


def _facts(result: RuleResult, judgement: Judgement, places: Places) -> Iterator[Fact]:
    yield from told("Requirement", paragraphs(result.requirement))
    yield from told("Specification", result.url, "link")
    yield from told("Why", result.reason)
    yield from map(finding_fact, result.findings[:1])
    yield from _on_the_wire(result, judgement, places)
    yield from map(finding_fact, result.findings[1:])
    yield from _evidence(result.evidence)
    yield from _evidence(result.again, " when it was asked again")
    yield from told("Unlocked by", result.unlocked_by)
    yield from told("Comes from", origin_in_words(result))
    if result.common is not None:
        yield Fact("How common", "prose", commonness_in_words(result.common))
    yield from told("What to do", result.fix if result.failed else "")
    if result.observed:
        yield Fact("Observed", "prose", f"{result.observed} times")
    yield from told("Judge it again", result.repeat, "command")


def finding_fact(finding: Finding) -> Fact:
    at = f"\nat {finding.pointer}" if finding.pointer else ""
    return Fact(
        "Finding", "diff", finding.message + at, expected=finding.expected, actual=finding.actual
    )


def _evidence(evidence: Sequence[Evidence], when: str = "") -> Iterator[Fact]:
    for one in evidence:
        yield from told(f"Sent{when}", one.sent, "message")
        yield Fact(f"Received{when}", "message", one.received or "(nothing)")


def _on_the_wire(result: RuleResult, judgement: Judgement, places: Places) -> Iterator[Fact]:
    """The proof was shortened and made safe; its beginning finds the message again."""
    shown = [one.excerpt for one in result.findings if one.excerpt]
    shown += [text for one in result.evidence for text in (one.received, one.sent) if text]
    for excerpt in shown:
        found = places.showing(judgement.captures, excerpt)
        if found is not None:
            yield Fact("On the wire", "wire", session=found[0], row=found[1])
            return
    if result.observed:
        sessions = (number for file in judgement.captures for number in places.sessions_in(file))
        yield from (Fact("In the session", "wire", session=one) for one in islice(sessions, 1))
