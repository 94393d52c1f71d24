"""From what was seen to the result of a rule, with its proof and the command that repeats it.

The rules over whole sessions are held against every conversation that was had.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from mcptest.core.capture import AnyRecord, Closed, Exited, Frame, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.judgement import Evidence, RuleResult
from mcptest.core.limits import MEBIBYTE
from mcptest.core.message import ABSENT
from mcptest.core.safe_text import in_one_line, show
from mcptest.core.verdict import Finding, Outcome, Severity, Side, Verdict
from mcptest.probe.compliance.conversation import AT_WORK, Asked, Conversation
from mcptest.probe.compliance.questions import SHOWN, Unasked, evidence_of
from mcptest.probe.compliance.site import Site
from mcptest.rules.corpus.explanation import explanations
from mcptest.rules.corpus.registry import CorpusRule, Row, unmet
from mcptest.rules.declaration import RULES, Rule, shown_by
from mcptest.rules.judge import decisiveness, judge
from mcptest.rules.protocol import objects_at
from mcptest.session.tape import Tape, answered_requests
from mcptest.suite.matching import compact_json
from mcptest.suite.observed import SeenExchange, judge_exchange
from mcptest.wire.envelope import decode

_SHOWN = 400
_MOST_EVIDENCE = 5
_SERVED = "a valid request that the server accepts"


class Results:
    def __init__(self, site: Site, *, is_second: bool = False) -> None:
        """Of a second sighting: silence that was waited out the first time is not again."""
        self._site = site
        self._is_second = is_second

    def unasked(self, rule: CorpusRule, why: Unasked) -> RuleResult:
        told = {"reason": why.reason, "unlocked_by": why.unlocked_by, "cause": why.cause}
        return self._result(rule, why.outcome, **told)

    def killed(self, rule: CorpusRule, error: PeerError, asked: Asked | None) -> RuleResult:
        """The server did not survive the question."""
        if asked is not None and asked.unsent:
            return self._never_sent(rule, asked)
        unanswered = self._cut_short(() if asked is None else (asked,))
        if error.kind is ErrorKind.TIMEOUT and unanswered is not None:
            return self._undecided(rule, unanswered)
        said = self._site.masker.text(error.message).split("\n")
        # The root cause shows all of stderr.
        message = in_one_line("\n".join(dict.fromkeys((said[0], said[-1]))), _SHOWN)
        finding = Finding(message=message, expected="a response, and a server that keeps running")
        evidence = self._evidence(() if asked is None else (asked,))
        return self._result(rule, Outcome.FAIL, findings=(finding,), evidence=evidence, observed=1)

    def exchanged(
        self, rule: CorpusRule, question: Row, exchange: SeenExchange, proof: Sequence[Asked]
    ) -> RuleResult:
        """An exchange against what is expected of it, where anything can be."""
        missing = unmet(question.when, exchange)
        if missing is not None:
            return self.unasked(rule, Unasked(Outcome.NOT_OBSERVED, missing.otherwise))
        judged = judge_exchange(question.expect, exchange)
        unanswered = self._cut_short(proof)
        unsent = next((one for one in proof if one.unsent), None)
        if not judged.passed and unsent is not None:
            return self._never_sent(rule, unsent)
        if not judged.passed and unanswered is not None:
            return self._undecided(rule, unanswered)
        outcome = Outcome.PASS if judged.passed else Outcome.FAIL
        findings = tuple(map(self._shown, explanations(question, judged.failures, exchange)))
        evidence = self._evidence(proof)
        return self._result(rule, outcome, findings=findings, evidence=evidence, observed=1)

    def beside(
        self, rule: CorpusRule, result: RuleResult, asked: Asked, others: Mapping[str, Asked | None]
    ) -> RuleResult:
        """The result, where what was asked beside it shows that the answer means something."""
        if result.outcome not in {Outcome.PASS, Outcome.FAIL}:
            return result
        if not _is_refused(asked):
            return self._beside_nothing(rule, result, asked, others.get("absent"))
        control, unlike = others.get("control"), others.get("unlike")
        beside, why = unlike, "the server rejects a valid request with the same error"
        meaningless = unlike is not None and _refusal(asked) == _refusal(unlike)
        if control is not None and _is_refused(control):
            same = _refusal(asked) == _refusal(control)
            if result.outcome is Outcome.PASS or same:
                beside, meaningless = control, True
                why = "the server also rejects the same request without the fault"
        if not meaningless or beside is None:
            return result
        shown = show(self._site.masker.cut_text(_refusal(beside)), 200)
        told = {
            "reason": f"{why}, so the rejection proves nothing: {shown}",
            "unlocked_by": _SERVED,
        }
        evidence = self._evidence((asked, beside))
        return self._result(rule, Outcome.NOT_OBSERVED, evidence=evidence, **told)

    def _beside_nothing(
        self, rule: CorpusRule, result: RuleResult, asked: Asked, absent: Asked | None
    ) -> RuleResult:
        """A server that answers everything in the same words has served nothing."""
        if result.outcome is not Outcome.FAIL or absent is None or _is_refused(absent):
            return result
        if _words_of_result(asked) != _words_of_result(absent):
            return result
        shown = show(self._site.masker.cut_text(_words_of_result(absent)), 200)
        why = f"the server returns the same result for a resource that does not exist: {shown}"
        evidence = self._evidence((asked, absent))
        return self._result(rule, Outcome.INCONCLUSIVE, reason=why, evidence=evidence)

    def _never_sent(self, rule: CorpusRule, unsent: Asked) -> RuleResult:
        """What the server was not asked it can't have answered wrongly."""
        why = in_one_line(f"a request could not be sent: {unsent.unsent}", _SHOWN)
        return self._result(rule, Outcome.INCONCLUSIVE, reason=why)

    def _cut_short(self, proof: Sequence[Asked]) -> Asked | None:
        """A request that got no answer in a short time, where none was waited for longer."""
        silent = [one for one in proof if one.exchange.answer == "none" and not one.received]
        if self._is_second or not silent or not silent[0].cut_short:
            return None
        return silent[0]

    def _undecided(self, rule: CorpusRule, unanswered: Asked) -> RuleResult:
        """A server that is slow for once is no server that does not answer."""
        why = (
            f"the server did not answer within {unanswered.seconds:.1f}s; mcptest did not wait "
            "longer because another request had already timed out"
        )
        evidence = self._evidence((unanswered,))
        return self._result(rule, Outcome.INCONCLUSIVE, reason=why, evidence=evidence)

    def over_sessions(self, rule: CorpusRule, deciding: Deciding) -> RuleResult:
        if not deciding:
            why = "no complete session to judge"
            return self._result(rule, Outcome.INCONCLUSIVE, reason=why)
        decided = deciding[0][0]
        found = [(one, seen.tape) for verdict, seen in deciding for one in verdict.findings]
        told = list({(one.message, one.pointer): (one, tape) for one, tape in found[::-1]}.values())
        told = told[::-1][:_KEPT]
        total = sum(max(one.findings_total, len(one.findings)) for one, _ in deciding)
        proof = (
            self._evidence_on(tape, finding, _BRIEF if place else SHOWN)
            for place, (finding, tape) in enumerate(told)
        )
        return self._result(
            rule,
            decided.outcome,
            reason=decided.reason,
            findings=tuple(_counted([self._masked(finding) for finding, _ in told], total)),
            evidence=tuple(one for one in proof if one is not None),
            observed=sum(verdict.observed for verdict, _ in deciding),
        )

    def _masked(self, finding: Finding) -> Finding:
        mask = self._site.masker.text
        shown = {name: getattr(finding, name) for name in ("message", "actual", "excerpt")}
        masked = {name: mask(text) for name, text in shown.items() if text is not None}
        return msgspec.structs.replace(finding, **masked)

    def _evidence_on(self, tape: Tape, finding: Finding, shown: int) -> Evidence | None:
        """The message at fault, and the request that it answers."""
        place = finding.record
        if place is None or place >= len(tape.records):
            return None
        record = tape.records[place]
        if not isinstance(record, Frame):
            return None
        mask = self._site.masker.message
        if record.sender == "client":
            return evidence_of(mask(record.raw), b"", shown)
        answered = decode(record.raw).id
        request = tape.request_with(answered) if answered not in (ABSENT, None) else b""
        return evidence_of(mask(request), mask(record.raw), shown)

    def _shown(self, found: Finding) -> Finding:
        mask = self._site.masker.cut_text
        texts = {name: getattr(found, name) for name in ("message", "expected", "pointer")}
        masked = {name: show(mask(text), _SHOWN) for name, text in texts.items() if text}
        return msgspec.structs.replace(found, **masked)

    def _evidence(self, proof: Sequence[Asked]) -> tuple[Evidence, ...]:
        return tuple(evidence_of(one.sent, one.received) for one in proof[:_MOST_EVIDENCE])

    def _result(self, rule: CorpusRule, outcome: Outcome, **more: Any) -> RuleResult:
        repeat = self._site.order.repeat
        return RuleResult(
            id=rule.id,
            title=rule.title,
            section=rule.section,
            severity=rule.severity or Severity.MUST,
            outcome=outcome,
            requirement=rule.requirement,
            url=rule.url,
            fix=rule.fix,
            repeat=f"{repeat} --rule {shlex.quote(rule.id)}" if repeat else "",
            **more,
        )


def _is_refused(asked: Asked) -> bool:
    """Answered with an error of either kind, or not at all."""
    result = asked.exchange.result
    return not isinstance(result, dict) or result.get("isError") is True


def _refusal(asked: Asked) -> str:
    """The words of a refusal, for comparing and for showing."""
    error, result = asked.exchange.error, asked.exchange.result
    if isinstance(error, dict):
        return f"{error.get('code')} {error.get('message')}"
    if isinstance(result, dict):
        return compact_json(result.get("content"))
    return f"HTTP {asked.exchange.http['status']}" if asked.exchange.http else "no response"


def _words_of_result(asked: Asked) -> str:
    """A result as text, without the URI that was asked for, which its contents repeat."""
    result = asked.exchange.result
    words = compact_json(result)
    for one in objects_at(result, "contents"):
        uri = one.get("uri")
        if isinstance(uri, str) and uri:
            words = words.replace(compact_json(uri)[1:-1], "…")
    return words


def for_a_cause(result: RuleResult, cause: str) -> RuleResult:
    """The same rule, which failed only because of something that is told once already."""
    without = without_findings(result, f"not judged: see {cause}")
    return msgspec.structs.replace(without, cause=cause)


def without_findings(result: RuleResult, why: str) -> RuleResult:
    """The same rule, which can't be held against the server for this reason."""
    return msgspec.structs.replace(result, outcome=Outcome.INCONCLUSIVE, reason=why, findings=())


_KEPT = 3
"""Different findings of one rule that are told; how many there are in all is said."""
_BRIEF = 300
"""How much of the second message and of further ones is shown."""


_WHOLE = 0.99
"""Of a timeout that was waited for: clocks are read a moment before and after."""


Deciding: TypeAlias = Sequence[tuple[Verdict, Conversation]]
"""The verdicts of one rule that decide what it says about all sessions, each with its session."""


def judge_sessions(site: Site, rules: Sequence[Rule]) -> Mapping[str, Deciding]:
    """By rule id, over all conversations that each rule can cope with.

    Most rules over sessions take it for granted that the client keeps to the specification. What
    the server does when it is treated badly is the matter of rows and probes.
    """
    found: dict[str, list[tuple[Verdict, Conversation]]] = {rule.id: [] for rule in rules}
    for conversation in site.conversations:
        held = [rule for rule in rules if _can_judge(rule, conversation)]
        for verdict in _verdicts(conversation, held):
            found[verdict.rule].append((verdict, conversation))
    return {name: _deciding(verdicts) for name, verdicts in found.items()}


def judge_session(rule: Rule, conversation: Conversation) -> Deciding:
    return [(one, conversation) for one in _verdicts(conversation, [rule])]


def _verdicts(conversation: Conversation, rules: Sequence[Rule]) -> Iterator[Verdict]:
    tape, site = conversation.tape, conversation.site
    cut_off = tape.dropped and conversation.ends is None
    if cut_off or not tape.records or not rules:
        return
    parts = {conversation.ends: list(rules)}
    if conversation.tour_ends is not None:  # what came after the tour is no matter of its rules
        of_tour = [rule for rule in rules if rule.conversations == "tour"]
        others = [rule for rule in rules if rule.conversations != "tour"]
        parts = {conversation.tour_ends: of_tour, conversation.ends: others}
    for end, some in parts.items():
        records = tape.records[:end]
        if end is not None:
            records.append(Closed(t=records[-1].t, records=end))
        source = tape.as_session(site.revision.wire_version, records)
        judged = judge(source, some, site.revision, repeating=True)
        for verdict in judged.verdicts:
            of_server = about_the_server(verdict, judged.of_server[verdict.rule])
            yield without_impatience(of_server, records, site.order.timeout)


def without_impatience(verdict: Verdict, records: Sequence[AnyRecord], timeout: float) -> Verdict:
    """Of a rule about answers that never came: without those that were not waited for long enough.

    Once silence was met, less is waited for the next answer. That decides what is asked of the
    server, and nothing about it.
    """
    if shown_by(verdict.rule) != "missing answer" or verdict.outcome is not Outcome.FAIL:
        return verdict
    least = timeout * _WHOLE
    waited = tuple(one for one in verdict.findings if _silence_after(one, records) >= least)
    if waited:
        return msgspec.structs.replace(verdict, findings=waited)
    return Verdict(
        verdict.rule, Outcome.INCONCLUSIVE, "the server did not answer before the check gave up"
    )


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


def _can_judge(rule: Rule, conversation: Conversation) -> bool:
    if rule.conversations == "tour":
        return conversation is conversation.site.tour
    if rule.is_about_silence and (conversation.gone or conversation.mute):
        return False  # what it died of, or fell silent over, is told already
    if rule.conversations == "any":
        return not conversation.goes_on
    return conversation.polite


def of_the_server(rule: Rule, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Of a rule that judges both sides: without what it has to say about us."""
    ours = "server" if rule.shown_by == "missing answer" else "client"
    return tuple(one for one in findings if rule.side is not Side.BOTH or one.sender != ours)


def about_the_server(verdict: Verdict, of_server: int) -> Verdict:
    """The verdict by what it says of the server."""
    rule = RULES[verdict.rule]
    if rule.side is not Side.BOTH or verdict.outcome not in {Outcome.PASS, Outcome.FAIL}:
        return verdict
    findings = of_the_server(rule, verdict.findings)
    if findings:
        return msgspec.structs.replace(verdict, findings=findings)
    seen = verdict.observed - of_server if rule.shown_by == "silence" else of_server
    if seen > 0:
        return Verdict(rule.id, Outcome.PASS, observed=seen)
    return Verdict(rule.id, Outcome.NOT_OBSERVED, "the server sent nothing that the rule covers")


def _deciding(verdicts: Deciding) -> Deciding:
    most = min((decisiveness(verdict) for verdict, _ in verdicts), default=None)
    return [pair for pair in verdicts if decisiveness(pair[0]) == most]


def _counted(findings: Sequence[Finding], total: int) -> Iterator[Finding]:
    """The first says how often it was seen in all, where that is more than what is shown."""
    for place, one in enumerate(findings):
        often = f"{one.message} ({total} times in total)"
        is_more = place == 0 and total > len(findings)
        yield msgspec.structs.replace(one, message=often) if is_more else one


def answers_of(site: Site) -> Iterator[tuple[str, bytes]]:
    """Every answer that came in any conversation, with the method that it answers.

    But for the largest: this is done last, when the time of the command may be over.
    """
    for conversation in site.conversations:
        records = conversation.tape.records
        for request, answer in answered_requests(
            one for one in records if not (isinstance(one, Frame) and len(one.raw) > MEBIBYTE)
        ):
            yield str(request.method), answer.raw
