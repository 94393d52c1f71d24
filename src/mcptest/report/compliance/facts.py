"""What every report of a judged server tells: words, groups and proof, safe and of bounded size.

The words may be the peer's. No text that leaves this module can steer a terminal or a CI system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcptest.core.judgement import (
    CUT_SHORT,
    Commonness,
    Evidence,
    GateResult,
    Grade,
    Judgement,
    RuleResult,
)
from mcptest.core.safe_text import in_one_line, show
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.report.evidence import without_boilerplate
from mcptest.report.terminal import Style, counted, duration

if TYPE_CHECKING:
    from mcptest.report.compliance.compliance_report import ComplianceReport
    from mcptest.report.verdicts import RuleVerdict

TITLE = 200
LINE = 600
COMMAND = 4_000
"""A command that was cut would not run; this is longer than any that a person writes."""
CAUSES_SHOWN = 20
NOTES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class FactBounds:
    """How much of the proof is shown."""

    wire: int
    """Characters of what was sent or received."""
    exchanges: int
    findings: int
    whole_requirement: bool = True
    """Else its first paragraph; `mcptest explain` has the rest."""


BRIEF = FactBounds(wire=600, exchanges=2, findings=3, whole_requirement=False)
FULL = FactBounds(wire=4_000, exchanges=20, findings=50)


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that share the reason why they were not judged."""

    why: str
    rules: tuple[RuleResult, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(show(one.id, 40) for one in self.rules)


def is_broken(result: RuleResult | RuleVerdict) -> bool:
    """A MUST that failed. Any other keyword that failed is a warning."""
    return result.failed and result.severity is Severity.MUST


def sign_of(result: RuleResult | RuleVerdict, style: Style) -> str:
    if result.failed:
        return style.cross if is_broken(result) else style.warning
    signs = {Outcome.PASS: style.tick, Outcome.INCONCLUSIVE: style.unsure}
    return signs.get(result.outcome, style.dash)


def failures_first(judgement: Judgement) -> list[RuleResult]:
    """Every failing rule: what is the server's own first, then MUST before SHOULD before MAY."""
    return sorted(judgement.failures, key=_own_and_weighty_first)


def _own_and_weighty_first(result: RuleResult) -> tuple[bool, int]:
    return result.from_sdk is not None, list(Severity).index(result.severity)


def origin_in_words(result: RuleResult) -> str:
    """Which SDK a failure comes from; empty where none is known to do this."""
    source = result.from_sdk
    if source is None:
        return ""
    return (
        f"the {show(source.name, 60)}, not your code: a server with nothing but this SDK responds "
        f"the same way (measured with {show(source.measured, 60)})"
    )


def commonness_in_words(common: Commonness) -> str:
    return f"{common.broken} of {common.of} published servers break this ({show(common.when, 20)})"


def server_in_words(judgement: Judgement) -> str:
    """How the server names itself."""
    return show(f"{judgement.server_name} {judgement.server_version}".strip(), TITLE)


def scope_in_words(judgement: Judgement) -> list[str]:
    """What was judged and what it took, part by part."""
    parts = [f"{judgement.revision} over {show(judgement.transport, 40)}"]
    parts.append(counted(len(judgement.results), "rule"))
    parts += [counted(judgement.requests, "request")] if judgement.requests else []
    parts += [duration(judgement.duration_ms)] if judgement.duration_ms else []
    return parts


def letter_of(grade: Grade | None) -> str:
    """The letter, safe and short; empty when there is none."""
    return show(grade.letter, 4) if grade is not None else ""


def why_no_letter(judgement: Judgement) -> str:
    """Why there is no grade; empty when there is one."""
    if letter_of(judgement.grade):
        return ""
    if CUT_SHORT in judgement.notes:
        return "not graded: stopped before every rule was judged"
    if judgement.grade is None:
        return "not graded: only some rules were selected"
    return "not graded: too few rules were observed"


def caps_in_words(grade: Grade | None) -> list[str]:
    """`capped at B+: 1 MUST rule failed`"""
    caps = [show(one, 300) for one in (grade.caps if grade is not None else ())]
    return [
        f"capped at {one.removeprefix('at best ')}"
        if one.startswith("at best ")
        else f"capped: {one}"
        for one in caps
    ]


def score_in_words(grade: Grade) -> str:
    return f"{score(grade.score)} of 100"


def score(value: float) -> str:
    """With one digit, and never rounded up to a full mark."""
    return "100" if value >= 100 else f"{int(value * 10) / 10:.1f}"


def percent(share: float) -> str:
    return "100%" if share >= 1 else f"{int(share * 1000) / 10:.1f}%"


def coverage_in_words(judgement: Judgement) -> str:
    seen, applicable = judgement.observed, judgement.applicable
    return f"{percent(judgement.coverage)}: {seen} of {applicable} applicable rules judged"


def tally(judgement: Judgement) -> list[tuple[int, str, str]]:
    """How many rules came to what: number, word, colour."""
    broken = judgement.broken_musts
    warnings = judgement.count(Outcome.FAIL) - broken
    return [
        (broken, "failed", "red"),
        (warnings, "warning" if warnings == 1 else "warnings", "yellow"),
        (judgement.count(Outcome.PASS), "passed", "green"),
        (judgement.count(Outcome.INCONCLUSIVE), "inconclusive", "yellow"),
        (judgement.count(Outcome.NOT_OBSERVED), "not observed", "dim"),
        (judgement.count(Outcome.NOT_APPLICABLE), "not applicable", "dim"),
    ]


def gate_line(gate: GateResult) -> str:
    """`grade_delta: FAIL (the grade fell from A to B)`"""
    detail = f" ({show(gate.detail, LINE)})" if gate.detail else ""
    line = f"{show(gate.name, 60)}: {'PASS' if gate.passed else 'FAIL'}{detail}"
    return show(line, 2 * LINE)  # a name of one colon makes a command of CI with the colon after it


def not_observed(judgement: Judgement) -> list[Group]:
    """By what is needed to observe them: the largest group first, unknown reasons last."""
    rules = [one for one in judgement.results if one.outcome is Outcome.NOT_OBSERVED]
    known = _grouped((one.unlocked_by, one) for one in rules if one.unlocked_by)
    others = [one for one in rules if not one.unlocked_by]
    unknown = "nothing in this run exercised the rule"
    return known + _grouped((one.reason or unknown, one) for one in others)


def inconclusive(judgement: Judgement) -> list[Group]:
    """By what kept them from being judged."""
    causes = {one.id: f"{one.id}: {in_one_line(one.message, LINE)}" for one in judgement.causes}
    return _grouped(
        (causes.get(one.cause, one.cause) or one.reason or "no reason given", one)
        for one in judgement.results
        if one.outcome is Outcome.INCONCLUSIVE
    )


def not_applicable(judgement: Judgement) -> list[Group]:
    rules = (one for one in judgement.results if one.outcome is Outcome.NOT_APPLICABLE)
    return _grouped((one.reason or "no reason given", one) for one in rules)


def _grouped(pairs: Iterable[tuple[str, RuleResult]]) -> list[Group]:
    found: dict[str, list[RuleResult]] = {}
    for why, result in pairs:
        found.setdefault(show(why, LINE), []).append(result)
    groups = [Group(why, tuple(rules)) for why, rules in found.items()]
    return sorted(groups, key=lambda group: -len(group.rules))


def proof_of(result: RuleResult, bounds: FactBounds) -> Iterator[tuple[str, str]]:
    """Pairs of label and text, which may be empty: what was demanded, what happened, what to do."""
    first, _, _ = result.requirement.partition("\n\n")
    yield "requires", _in_one_line(result.requirement if bounds.whole_requirement else first)
    yield "spec", show(result.url, 500)
    yield from exchanges_of(result.evidence, bounds)
    yield from exchanges_of(result.again, bounds, "retried")
    for finding in result.findings[: bounds.findings]:
        yield from _finding(finding, result.evidence, bounds)
    more = len(result.findings) - bounds.findings
    if more > 0:
        yield "", f"and {more} more like this"
    yield "why", show(result.reason, LINE)
    yield "needs", show(result.unlocked_by, LINE)
    yield "from", origin_in_words(result)
    yield "common", commonness_in_words(result.common) if result.common is not None else ""
    yield "fix", _in_one_line(result.fix) if result.failed else ""
    yield "repeat", show(result.repeat, COMMAND)


def _in_one_line(text: str) -> str:
    return show(" ".join(text[:4_000].split()), 2_000)


def exchanges_of(
    evidence: tuple[Evidence, ...], bounds: FactBounds, sent: str = "sent"
) -> Iterator[tuple[str, str]]:
    for one in evidence[: bounds.exchanges]:
        yield sent, show(without_boilerplate(one.sent), bounds.wire)
        yield "received", show(one.received, bounds.wire) or "(no response)"
    more = len(evidence) - bounds.exchanges
    if more > 0:
        yield "", f"and {counted(more, 'more exchange')}"


def _finding(
    finding: Finding, evidence: tuple[Evidence, ...], bounds: FactBounds
) -> Iterator[tuple[str, str]]:
    message = show(finding.message, LINE)
    yield "why", message
    facts = [("expected", finding.expected), ("actual", finding.actual), ("at", finding.pointer)]
    for label, text in facts:
        if text and show(text, LINE) not in message:
            yield label, show(text, LINE)
    shown = {one.received for one in evidence[: bounds.exchanges]}
    if finding.excerpt and finding.excerpt not in shown:
        yield "message", show(finding.excerpt, bounds.wire)


def newest_failures(report: ComplianceReport) -> list[tuple[RuleResult, tuple[Judgement, ...]]]:
    """Each rule that fails anywhere, as it failed in the newest revision, and where it fails."""
    where: dict[str, list[Judgement]] = {}
    newest: dict[str, RuleResult] = {}
    for judgement in sorted(report.judgements, key=lambda one: one.revision.place):
        for result in judgement.failures:
            where.setdefault(result.id, []).append(judgement)
            newest[result.id] = result
    ranked = sorted(newest.values(), key=_own_and_weighty_first)
    return [(one, tuple(where[one.id])) for one in ranked]
