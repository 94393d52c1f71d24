"""The JSON report of verdicts: `mcptest.report/1`. The structs below are also its JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from mcptest import __version__
from mcptest.model.errors import ExitCode
from mcptest.model.verdict import Finding, Outcome, Severity, Verdict
from mcptest.rules.composition import Hazard, labels_of
from mcptest.rules.declare import RULES
from mcptest.rules.judge import JudgedSession

SCHEMA = "mcptest.report/1"


class RuleVerdict(msgspec.Struct, frozen=True):
    """What one rule says about one session, with what the rule is."""

    rule: str
    title: str
    category: str
    severity: Severity
    side: str
    outcome: Outcome
    reason: str
    observed: int
    findings: tuple[Finding, ...]
    findings_total: int
    specification: str


class SessionReport(msgspec.Struct, frozen=True):
    label: str
    file: str
    form: Literal["full", "exchanges"]
    transport: str | None
    revision: str | None
    era: Literal["handshake", "stateless"]
    messages: int
    complete: bool
    verdicts: tuple[RuleVerdict, ...]
    revision_reason: str = ""


class Summary(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """How many verdicts of each outcome; `fail` counts MUST rules, `warn` the others."""

    passed: int
    fail: int
    warn: int
    not_observed: int
    not_applicable: int
    inconclusive: int
    hazards: int


class Report(msgspec.Struct, frozen=True):
    schema: Literal["mcptest.report/1"]
    tool: str
    command: str
    exit_code: int
    summary: Summary
    sessions: tuple[SessionReport, ...]
    composition: tuple[Hazard, ...]


def is_failure(verdict: Verdict, session: JudgedSession, strict: bool = False) -> bool:
    """A broken MUST decides; a broken SHOULD is a warning unless `strict`. What could not be
    looked at is no success whatever the rule says."""
    if verdict.outcome is not Outcome.FAIL:
        return verdict.unchecked
    return strict or RULES[verdict.rule].severity_in(session.revision) is Severity.MUST


def summarise(sessions: Sequence[JudgedSession], hazards: Sequence[Hazard]) -> Summary:
    counts = dict.fromkeys(Outcome, 0)
    warnings = 0
    for session in sessions:
        for verdict in session.verdicts:
            if verdict.outcome is Outcome.FAIL and not is_failure(verdict, session):
                warnings += 1
            else:
                counts[verdict.outcome] += 1
    return Summary(
        passed=counts[Outcome.PASS],
        fail=counts[Outcome.FAIL],
        warn=warnings,
        not_observed=counts[Outcome.NOT_OBSERVED],
        not_applicable=counts[Outcome.NOT_APPLICABLE],
        inconclusive=counts[Outcome.INCONCLUSIVE],
        hazards=len(hazards),
    )


def exit_code_for(
    sessions: Sequence[JudgedSession], hazards: Sequence[Hazard], strict: bool = False
) -> ExitCode:
    """0 only if something was judged in each session and nothing that counts is broken."""
    for session in sessions:
        if any(is_failure(verdict, session, strict) for verdict in session.verdicts):
            return ExitCode.FAILED
    if hazards:
        return ExitCode.FAILED
    decided = {Outcome.PASS, Outcome.FAIL}
    if all(any(v.outcome in decided for v in session.verdicts) for session in sessions):
        return ExitCode.OK
    return ExitCode.NOTHING_MATCHED


def build_report(
    sessions: Sequence[JudgedSession], hazards: Sequence[Hazard], command: str, code: int
) -> Report:
    labels = labels_of(sessions)
    return Report(
        schema="mcptest.report/1",
        tool=f"mcptest {__version__}",
        command=command,
        exit_code=int(code),
        summary=summarise(sessions, hazards),
        sessions=tuple(map(_session_report, sessions, labels)),
        composition=tuple(hazards),
    )


def _session_report(session: JudgedSession, label: str) -> SessionReport:
    return SessionReport(
        label=label,
        file=session.file,
        form="full" if session.form == "full" else "exchanges",
        transport=session.transport,
        revision=session.revision.value if session.revision else None,
        era=session.era.value,
        messages=session.messages,
        complete=session.complete,
        verdicts=tuple(_rule_verdict(verdict, session) for verdict in session.verdicts),
        revision_reason=session.revision_reason,
    )


def _rule_verdict(verdict: Verdict, session: JudgedSession) -> RuleVerdict:
    rule = RULES[verdict.rule]
    return RuleVerdict(
        rule=rule.id,
        title=rule.title,
        category=rule.category,
        severity=rule.severity_in(session.revision),
        side=rule.side.value,
        outcome=verdict.outcome,
        reason=verdict.reason,
        observed=verdict.observed,
        findings=verdict.findings,
        findings_total=verdict.findings_total,
        specification=rule.url(session.revision),
    )


def report_as_json(report: Report) -> bytes:
    text = msgspec.json.encode(report)
    return msgspec.json.format(text, indent=2) + b"\n"
