"""The rules over whole sessions, held against every conversation that was had."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mcptest.model.capture import AnyRecord, Exited, Frame, Trouble
from mcptest.model.compliance import Evidence
from mcptest.model.message import ABSENT, Kind, id_key
from mcptest.model.verdict import Finding, Outcome, Side, Verdict
from mcptest.rules.declare import RULES, Rule
from mcptest.rules.judge import decisiveness, judge
from mcptest.run.compliance.causes import SHOWN, evidence_of
from mcptest.run.compliance.conversation import AT_WORK, Conversation
from mcptest.run.compliance.site import Site
from mcptest.run.compliance.tape import Tape
from mcptest.wire.envelope import decode

_KEPT = 3
"""Different findings of one rule that are told; how many there are in all is said."""
_BRIEF = 300
"""How much of the second message and of further ones is shown."""


ON_THE_TOUR_ONLY = frozenset({"INV-004", "PAGE-003", "TOOL-005"})
"""Rules that draw conclusions from all that a client asked for. Only the tour asks as they take
for granted: for things that should work, and for one page after the other."""
ALSO_WHEN_RUDE = frozenset(
    {
        *("INV-006", "MSG-001", "MSG-002", "MSG-003", "MSG-006", "MSG-010", "MSG-012", "MSG-016"),
        *("SHAPE-004", "STDIO-001", "STDIO-003", "HTTP-004", "SSE-001"),
    }
)
"""Rules about messages as such: a server keeps to them whatever it was sent."""
POINTING_AT_THE_QUESTION = frozenset({"MSG-009"})
"""Rules about answers that never came: the message they point at is of the other side."""
SEEN_WHEN_WE_SEND = frozenset({"CANCEL-002", "MSG-008"})
"""Rules about what must not come after a message of the other side."""
_WHOLE = 0.99
"""Of a timeout that was waited for: clocks are read a moment before and after."""
ABOUT_SILENCE = POINTING_AT_THE_QUESTION | SEEN_WHEN_WE_SEND
"""A server that has died or fallen silent says nothing about these, or the wrong thing."""


class SessionVerdict(msgspec.Struct, frozen=True):
    """What a rule says about all sessions together."""

    outcome: Outcome
    reason: str = ""
    observed: int = 0
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    seen_on: Conversation | None = None
    """The first session that decided it."""
    unchecked: bool = False


def judge_sessions(site: Site, rules: Sequence[Rule]) -> Mapping[str, SessionVerdict]:
    """By rule id, over all conversations that each rule can cope with.

    Most rules over sessions take it for granted that the client keeps to the specification. What
    the server does when it is treated badly is the matter of rows and probes.
    """
    found: dict[str, list[tuple[Verdict, Conversation]]] = {rule.id: [] for rule in rules}
    for conversation in site.conversations:
        held = [rule for rule in rules if _can_judge(rule, conversation, site)]
        for verdict in _verdicts(conversation, held, site):
            found[verdict.rule].append((verdict, conversation))
    return {name: _combined(verdicts, site) for name, verdicts in found.items()}


def judge_session(site: Site, rule: Rule, conversation: Conversation) -> SessionVerdict:
    """What one rule says about one session."""
    return _combined([(one, conversation) for one in _verdicts(conversation, [rule], site)], site)


def _verdicts(conversation: Conversation, rules: Sequence[Rule], site: Site) -> Iterator[Verdict]:
    tape = conversation.tape
    if tape.dropped or not tape.records or not rules:
        return
    source = tape.as_session(site.revision.wire_version)
    judged = judge(source, rules, site.revision, repeating=True)
    for verdict in judged.verdicts:
        of_server = about_the_server(verdict, judged.of_server[verdict.rule])
        yield without_impatience(of_server, tape.records, site.order.timeout)


def without_impatience(verdict: Verdict, records: Sequence[AnyRecord], timeout: float) -> Verdict:
    """Of a rule about answers that never came: without those that were not waited for long enough.

    Once silence was met, less is waited for the next answer. That decides what is asked of the
    server, and nothing about it.
    """
    if verdict.rule not in POINTING_AT_THE_QUESTION or verdict.outcome is not Outcome.FAIL:
        return verdict
    waited = tuple(
        one for one in verdict.findings if _silence_after(one, records) >= timeout * _WHOLE
    )
    if waited:
        return msgspec.structs.replace(verdict, findings=waited)
    return Verdict(verdict.rule, Outcome.INCONCLUSIVE, "no answer came while it was waited for")


def _silence_after(finding: Finding, records: Sequence[AnyRecord]) -> float:
    """For how long the answer was waited for; without end where no waiting decided it."""
    by_itself = any(isinstance(one, Exited) and not one.after for one in records)
    if finding.record is None or by_itself:
        return math.inf
    asked, *later = records[finding.record :]
    given_up = next((one for one in later if isinstance(one, Trouble)), None)
    may_take_long = isinstance(asked, Frame) and decode(asked.raw).method in AT_WORK
    heard_later = any(isinstance(one, Frame) and one.sender == "server" for one in later)
    if heard_later and not may_take_long:
        return math.inf  # others were answered meanwhile, and this one had nothing to wait for
    return (given_up or [asked, *later][-1]).t - asked.t


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


def _combined(verdicts: Sequence[tuple[Verdict, Conversation]], site: Site) -> SessionVerdict:
    if not verdicts:
        return SessionVerdict(Outcome.INCONCLUSIVE, "there is no whole session to judge it by")
    decided = min((verdict for verdict, _ in verdicts), key=decisiveness)
    deciding = [pair for pair in verdicts if decisiveness(pair[0]) == decisiveness(decided)]
    found = [(one, seen.tape) for verdict, seen in deciding for one in verdict.findings]
    told = list({(one.message, one.pointer): (one, tape) for one, tape in found[::-1]}.values())
    told = told[::-1][:_KEPT]
    total = sum(max(one.findings_total, len(one.findings)) for one, _ in deciding)
    return SessionVerdict(
        decided.outcome,
        decided.reason,
        sum(verdict.observed for verdict, _ in deciding),
        tuple(_counted([_masked(finding, site) for finding, _ in told], total)),
        tuple(
            evidence
            for place, (finding, tape) in enumerate(told)
            if (evidence := _evidence(finding, tape, site, brief=place > 0)) is not None
        ),
        deciding[0][1],
        decided.unchecked,
    )


def _counted(findings: Sequence[Finding], total: int) -> Iterator[Finding]:
    """The first says how often it was seen in all, where that is more than what is shown."""
    for place, one in enumerate(findings):
        often = f"{one.message} (and so on, {total} times in all)"
        is_more = place == 0 and total > len(findings)
        yield msgspec.structs.replace(one, message=often) if is_more else one


def _masked(finding: Finding, site: Site) -> Finding:
    mask = site.masker.text
    return msgspec.structs.replace(
        finding,
        message=mask(finding.message),
        actual=None if finding.actual is None else mask(finding.actual),
        excerpt=None if finding.excerpt is None else mask(finding.excerpt),
    )


def _evidence(finding: Finding, tape: Tape, site: Site, *, brief: bool) -> Evidence | None:
    """The message at fault, and the request that it answers."""
    place = finding.record
    if place is None or place >= len(tape.records):
        return None
    record = tape.records[place]
    if not isinstance(record, Frame):
        return None
    mask = site.masker.message
    shown = _BRIEF if brief else SHOWN
    if record.sender == "client":
        return evidence_of(mask(record.raw), b"", shown)
    return evidence_of(mask(_request_of(record, tape.records[:place])), mask(record.raw), shown)


def answers_of(site: Site) -> Iterator[tuple[str, bytes]]:
    """Every answer that came in any conversation, with the method that it answers."""
    for conversation in site.conversations:
        asked: dict[object, str] = {}
        for record in conversation.tape.records:
            if not isinstance(record, Frame):
                continue
            message = decode(record.raw)
            if record.sender == "client" and message.kind is Kind.REQUEST:
                asked[id_key(message.id)] = str(message.method)
            elif record.sender == "server" and message.id not in (ABSENT, None):
                method = asked.pop(id_key(message.id), None)
                if method is not None:
                    yield method, record.raw


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
