"""The rules over whole sessions, held against every conversation that was had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mcptest.model.capture import AnyRecord, Frame
from mcptest.model.compliance import Evidence
from mcptest.model.message import ABSENT, Kind, id_key
from mcptest.model.verdict import Finding, Outcome, Side, Verdict
from mcptest.rules.declare import RULES, Rule
from mcptest.rules.judge import judge
from mcptest.run.compliance.causes import evidence_of
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.site import Site
from mcptest.run.compliance.tape import Tape
from mcptest.wire.envelope import decode

_KEPT = 5
"""Findings of one rule that are told."""
_BEST_FIRST = (
    Outcome.FAIL,
    Outcome.PASS,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_OBSERVED,
    Outcome.NOT_APPLICABLE,
)


ON_THE_TOUR_ONLY = frozenset({"INV-004", "PAGE-003", "TOOL-005"})
"""Rules that draw conclusions from all that a client asked for. Only the tour asks as they take
for granted: for things that should work, and for one page after the other."""
ALSO_WHEN_RUDE = frozenset(
    {
        *("INV-006", "MSG-001", "MSG-002", "MSG-003", "MSG-010", "MSG-012", "MSG-016"),
        *("SHAPE-004", "STDIO-001", "STDIO-003", "HTTP-004", "SSE-001"),
    }
)
"""Rules about messages as such: a server keeps to them whatever it was sent."""
POINTING_AT_THE_QUESTION = frozenset({"MSG-009"})
"""Rules about answers that never came: the message they point at is of the other side."""
SEEN_WHEN_WE_SEND = frozenset({"CANCEL-002", "MSG-008"})
"""Rules about what must not come after a message of the other side."""
ABOUT_SILENCE = POINTING_AT_THE_QUESTION | SEEN_WHEN_WE_SEND
"""A server that has died or fallen silent says nothing about these, or the wrong thing."""


class SessionVerdict(msgspec.Struct, frozen=True):
    """What a rule says about all sessions together."""

    outcome: Outcome
    reason: str = ""
    observed: int = 0
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()


def judge_sessions(site: Site, rules: Sequence[Rule]) -> Mapping[str, SessionVerdict]:
    """By rule id, over all conversations that each rule can cope with.

    Most rules over sessions take it for granted that the client keeps to the specification. What
    the server does when it is treated badly is the matter of rows and probes.
    """
    found: dict[str, list[tuple[Verdict, Tape]]] = {rule.id: [] for rule in rules}
    for conversation in site.conversations:
        tape = conversation.tape
        held = [rule for rule in rules if _can_judge(rule, conversation, site)]
        if tape.dropped or not tape.records or not held:
            continue
        source = tape.as_session(site.revision.wire_version)
        judged = judge(source, held, site.revision)
        for verdict in judged.verdicts:
            of_server = judged.of_server[verdict.rule]
            found[verdict.rule].append((about_the_server(verdict, of_server), tape))
    return {name: _combined(verdicts, site) for name, verdicts in found.items()}


def _can_judge(rule: Rule, conversation: Conversation, site: Site) -> bool:
    if rule.id in ON_THE_TOUR_ONLY:
        return conversation is site.shared.get("tour")
    if rule.id in ABOUT_SILENCE and (conversation.gone or conversation.mute):
        return False  # what it died of, or fell silent over, is told already
    return conversation.polite or rule.id in ALSO_WHEN_RUDE


def about_the_server(verdict: Verdict, of_server: int) -> Verdict:
    """Of a rule that judges both sides: without what it has to say about us."""
    rule = verdict.rule
    if RULES[rule].side is not Side.BOTH or verdict.outcome not in {Outcome.PASS, Outcome.FAIL}:
        return verdict
    ours = "server" if rule in POINTING_AT_THE_QUESTION else "client"
    findings = tuple(one for one in verdict.findings if one.sender != ours)
    if findings:
        return msgspec.structs.replace(verdict, findings=findings)
    seen = verdict.observed - of_server if rule in SEEN_WHEN_WE_SEND else of_server
    if seen > 0:
        return Verdict(rule, Outcome.PASS, observed=seen)
    return Verdict(rule, Outcome.NOT_OBSERVED, "nothing of the server exercised it")


def _combined(verdicts: Sequence[tuple[Verdict, Tape]], site: Site) -> SessionVerdict:
    """A failure in any session counts; a pass in any counts where nothing failed."""
    if not verdicts:
        return SessionVerdict(Outcome.INCONCLUSIVE, "there is no whole session to judge it by")
    outcomes = {verdict.outcome for verdict, _ in verdicts}
    outcome = next(one for one in _BEST_FIRST if one in outcomes)
    deciding = [pair for pair in verdicts if pair[0].outcome is outcome]
    told = [(one, tape) for verdict, tape in deciding for one in verdict.findings][:_KEPT]
    return SessionVerdict(
        outcome,
        deciding[0][0].reason,
        sum(verdict.observed for verdict, _ in deciding),
        tuple(_masked(finding, site) for finding, _ in told),
        tuple(
            evidence
            for finding, tape in told
            if (evidence := _evidence(finding, tape, site)) is not None
        ),
    )


def _masked(finding: Finding, site: Site) -> Finding:
    mask = site.masker.text
    return msgspec.structs.replace(
        finding,
        message=mask(finding.message),
        actual=None if finding.actual is None else mask(finding.actual),
        excerpt=None if finding.excerpt is None else mask(finding.excerpt),
    )


def _evidence(finding: Finding, tape: Tape, site: Site) -> Evidence | None:
    """The message at fault, and the request that it answers."""
    place = finding.record
    if place is None or place >= len(tape.records):
        return None
    record = tape.records[place]
    if not isinstance(record, Frame):
        return None
    mask = site.masker.message
    if record.sender == "client":
        return evidence_of(mask(record.raw), b"")
    return evidence_of(mask(_request_of(record, tape.records[:place])), mask(record.raw))


def _request_of(answer: Frame, before: Sequence[AnyRecord]) -> bytes:
    wanted = decode(answer.raw).id
    if wanted in (ABSENT, None):
        return b""
    for record in reversed(before):
        if isinstance(record, Frame) and record.sender == "client":
            message = decode(record.raw)
            if message.kind is Kind.REQUEST and id_key(message.id) == id_key(wanted):
                return record.raw
    return b""
