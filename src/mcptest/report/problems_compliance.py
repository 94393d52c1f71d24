"""What a judged server breaks, as problems: the rules, what kept them from being judged, gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcptest.model.compliance import ComplianceReport, GateResult, Judgement, RuleResult
from mcptest.model.errors import ExitCode
from mcptest.model.show import in_one_line, show
from mcptest.model.verdict import Severity
from mcptest.report.problems import (
    NAME,
    Level,
    Problem,
    Problems,
    ReportedRule,
    facts_of,
    shown_notes,
)

LEVELS: Mapping[Severity, Level] = {
    Severity.MUST: "error",
    Severity.SHOULD: "warning",
    Severity.MAY: "note",
}
_BASELINE = "baseline"
_FINDINGS = 10
_COUNTS_ALL_THE_SAME = ("new failure: ", "too often: ")


def problems_of_compliance(report: ComplianceReport, file: str = "") -> Problems:
    """`file` is the suite that asked for it, if one did."""
    rules: dict[str, ReportedRule] = {}
    found = [
        problem
        for judgement in report.judgements
        for problem in _of_judgement(judgement, report, file, rules)
    ]
    found += [_of_gate(gate, report, file, rules) for gate in report.gates if not gate.passed]
    return Problems(
        command="compliance",
        found=tuple(found),
        rules=rules,
        tool=report.tool,
        started=report.started,
        interrupted=report.exit_code == ExitCode.INTERRUPTED,
        notes=shown_notes(report.notes),
    )


def excused_in(judgement: Judgement, report: ComplianceReport) -> dict[str, str]:
    """Rules that fail, and causes, that do not count since a baseline says so; with the reason."""
    named = {_BASELINE, f"{_BASELINE} {judgement.revision.label}"}
    gate = next((gate for gate in report.gates if gate.name in named), None)
    if gate is None:
        return {}
    excused = [one.id for one in judgement.failures if not _counts(one.id, gate.lines)]
    excused += [cause.id for cause in judgement.causes if gate.passed]
    return dict.fromkeys(excused, "the baseline lists it")


def _counts(rule: str, lines: tuple[str, ...]) -> bool:
    marks = tuple(f"{mark}{show(rule, 60)} " for mark in _COUNTS_ALL_THE_SAME)
    return any(line.startswith(marks) for line in lines)


def _of_judgement(
    judgement: Judgement, report: ComplianceReport, file: str, rules: dict[str, ReportedRule]
) -> Iterator[Problem]:
    subject = f"{show(report.server, NAME)} ({judgement.revision.label})"
    excused = excused_in(judgement, report)
    for cause in judgement.causes:
        if cause.kept_from_judging:
            rule = ReportedRule("judging/complete", "every rule can be judged")
            rules[rule.id] = rule
            hint = f"\n{show(cause.hint, 600)}" if cause.hint else ""
            kept = f"{cause.kept_from_judging} rules could not be judged"
            said = f"{in_one_line(cause.message, 600)}; {kept}{hint}"
            why = excused.get(cause.id, "")
            yield Problem(rule.id, said, subject=subject, file=file, excused=why, grave=True)
    for result in judgement.failures:
        rule = _rule(result)
        rules[rule.id] = rule
        yield Problem(
            rule.id,
            _said(result),
            rule.level,
            subject=subject,
            file=file,
            page=result.url,
            excused=excused.get(result.id, ""),
            facts=_facts(result),
        )


def _rule(result: RuleResult) -> ReportedRule:
    return ReportedRule(
        id=show(result.id, 60) or "(no id)",
        title=show(result.title, NAME),
        text=show(result.requirement, 2_000),
        help=show(result.fix, 2_000),
        url=result.url,
        level=LEVELS[result.severity],
        tags=(show(result.section, 60),) if result.section else (),
    )


def _said(result: RuleResult) -> str:
    lines = [f"{show(result.title, NAME)} ({result.severity.value})"]
    for finding in result.findings[:_FINDINGS]:
        lines.append(show(finding.message, 1_000))
        lines += [
            f"  {label}: {show(text, 500)}"
            for label, text in (("expected", finding.expected), ("actual", finding.actual))
            if text is not None
        ]
    more = len(result.findings) - _FINDINGS
    return "\n".join([*lines, f"(and {more} more)"] if more > 0 else lines)


def _facts(result: RuleResult) -> dict[str, str]:
    last = result.evidence[-1] if result.evidence else None
    return facts_of(
        repeat=result.repeat,
        request=last.sent if last is not None else "",
        response=last.received if last is not None else "",
    )


def _of_gate(
    gate: GateResult, report: ComplianceReport, file: str, rules: dict[str, ReportedRule]
) -> Problem:
    name = show(gate.name, 60)
    rule = ReportedRule(f"gate/{name}", f"the gate {name} holds")
    rules[rule.id] = rule
    lines = [show(line, 600) for line in (gate.detail, *gate.lines[:20]) if line]
    said = "\n".join(lines) or f"{name} failed"
    return Problem(rule.id, said, subject=show(report.server, NAME), file=file)
