"""From what was seen to the result of a rule, with its proof and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mcptest.model.compliance import Evidence, RuleResult
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import in_one_line, show
from mcptest.model.verdict import Finding, Outcome, Severity
from mcptest.rules.corpus.rows import CorpusRule, unmet
from mcptest.rules.corpus.words import answer_in_words
from mcptest.run.compliance.causes import evidence_of
from mcptest.run.compliance.conversation import Asked
from mcptest.run.compliance.planning import Question, Unasked
from mcptest.run.compliance.sessions import SessionVerdict
from mcptest.run.compliance.site import Site
from mcptest.suite.exchange_targets import Exchange, judge_exchange
from mcptest.suite.failure import Failure
from mcptest.suite.text_under_test import compact_json

_SHOWN = 400
_MOST_EVIDENCE = 5
_SERVED = "a request with nothing wrong in it that the server does not refuse"


class Results:
    """Makes the results of one run."""

    def __init__(self, site: Site, *, is_second: bool = False) -> None:
        """Of a second sighting: silence that was waited out the first time is not again."""
        self._site = site
        self._is_second = is_second

    def unasked(self, rule: CorpusRule, why: Unasked) -> RuleResult:
        return self._result(rule, why.outcome, reason=why.reason, unlocked_by=why.unlocked_by)

    def kept_from(self, rule: CorpusRule, cause: str) -> RuleResult:
        """Something else went wrong before it could be judged."""
        return self._result(
            rule, Outcome.INCONCLUSIVE, reason=f"could not be judged: see {cause}", cause=cause
        )

    def killed(self, rule: CorpusRule, error: PeerError, asked: Asked | None) -> RuleResult:
        """The server did not survive the question."""
        unanswered = self._cut_short(() if asked is None else (asked,))
        if error.kind is ErrorKind.TIMEOUT and unanswered is not None:
            return self._undecided(rule, unanswered)
        message = in_one_line(self._site.masker.text(error.message), _SHOWN)
        finding = Finding(message=message, expected="an answer, and a server that lives on")
        proof = () if asked is None else (asked,)
        return self._result(
            rule, Outcome.FAIL, findings=(finding,), evidence=self._evidence(proof), observed=1
        )

    def exchanged(
        self, rule: CorpusRule, question: Question, exchange: Exchange, proof: Sequence[Asked]
    ) -> RuleResult:
        """An exchange against what is expected of it, where anything can be."""
        missing = unmet(question.when, exchange)
        if missing is not None:
            return self.unasked(rule, Unasked(Outcome.NOT_OBSERVED, missing.otherwise))
        judged = judge_exchange(question.expect, exchange)
        unanswered = self._cut_short(proof)
        if not judged.passed and unanswered is not None:
            return self._undecided(rule, unanswered)
        outcome = Outcome.PASS if judged.passed else Outcome.FAIL
        return self._result(
            rule,
            outcome,
            findings=tuple(self._finding(one, rule, exchange) for one in judged.failures),
            evidence=self._evidence(proof),
            observed=1,
        )

    def beside(
        self,
        rule: CorpusRule,
        result: RuleResult,
        asked: Asked,
        others: Mapping[str, Asked | None],
    ) -> RuleResult:
        """The result, where what was asked beside it shows that the answer means something."""
        if result.outcome not in {Outcome.PASS, Outcome.FAIL}:
            return result
        if not _is_refused(asked):
            return self._beside_nothing(rule, result, asked, others.get("absent"))
        control, unlike = others.get("control"), others.get("unlike")
        beside, why = unlike, "a request with nothing wrong in it is refused in the same words"
        meaningless = unlike is not None and _refusal(asked) == _refusal(unlike)
        if control is not None and _is_refused(control):
            same = _refusal(asked) == _refusal(control)
            if result.outcome is Outcome.PASS or same:
                beside, meaningless = control, True
                why = "the same request with nothing wrong in it is refused too"
        if not meaningless or beside is None:
            return result
        shown = show(self._site.masker.cut_text(_refusal(beside)), 200)
        reason = f"{why}, so a refusal says nothing: {shown}"
        return self._result(
            rule,
            Outcome.NOT_OBSERVED,
            reason=reason,
            unlocked_by=_SERVED,
            evidence=self._evidence((asked, beside)),
        )

    def _beside_nothing(
        self, rule: CorpusRule, result: RuleResult, asked: Asked, absent: Asked | None
    ) -> RuleResult:
        """A server that answers everything in the same words has served nothing."""
        if result.outcome is not Outcome.FAIL or absent is None or _is_refused(absent):
            return result
        if _words_of_result(asked) != _words_of_result(absent):
            return result
        shown = show(self._site.masker.cut_text(_words_of_result(absent)), 200)
        return self._result(
            rule,
            Outcome.INCONCLUSIVE,
            reason=f"what is not there is answered in the same words, so nothing was read: {shown}",
            evidence=self._evidence((asked, absent)),
        )

    def _cut_short(self, proof: Sequence[Asked]) -> Asked | None:
        """A request that got no answer in a short time, where none was waited for longer."""
        silent = [one for one in proof if one.exchange.answer == "none" and not one.received]
        if self._is_second or not silent or not silent[0].cut_short:
            return None
        return silent[0]

    def _undecided(self, rule: CorpusRule, unanswered: Asked) -> RuleResult:
        """A server that is slow for once is no server that does not answer."""
        why = (
            f"no answer came within {unanswered.seconds:.1f} s; it was not waited for longer, "
            "since a whole timeout had been waited for another answer"
        )
        evidence = self._evidence((unanswered,))
        return self._result(rule, Outcome.INCONCLUSIVE, reason=why, evidence=evidence)

    def over_sessions(self, rule: CorpusRule, verdict: SessionVerdict) -> RuleResult:
        return self._result(
            rule,
            verdict.outcome,
            reason=verdict.reason,
            findings=verdict.findings,
            evidence=verdict.evidence,
            observed=verdict.observed,
        )

    def _finding(self, failure: Failure, rule: CorpusRule, exchange: Exchange) -> Finding:
        mask = self._site.masker.cut_text
        if rule.row is not None and rule.row.says and failure.check == "exchange":
            came = mask(answer_in_words(exchange))
            return Finding(message=came, sender="server", expected=rule.row.says)
        return Finding(
            message=show(mask(failure.message), _SHOWN),
            sender="server",
            expected=self._shown(failure.expected),
            actual=self._shown(failure.actual),
            pointer=show(mask(failure.pointer), 200) or None,
        )

    def _shown(self, value: Any) -> str | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else compact_json(value)
        return show(self._site.masker.cut_text(text[: 4 * _SHOWN]), _SHOWN)

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
    return f"HTTP {asked.exchange.http['status']}" if asked.exchange.http else "no answer"


def _words_of_result(asked: Asked) -> str:
    """A result as text, without the URI that was asked for, which its contents repeat."""
    result = asked.exchange.result
    contents = result.get("contents") if isinstance(result, dict) else None
    words = compact_json(result)
    for one in contents if isinstance(contents, list) else ():
        uri = one.get("uri") if isinstance(one, dict) else None
        if isinstance(uri, str) and uri:
            words = words.replace(compact_json(uri)[1:-1], "…")
    return words


def for_a_cause(result: RuleResult, cause: str) -> RuleResult:
    """The same rule, which failed only because of something that is told once already."""
    without = without_findings(result, f"could not be judged: see {cause}")
    return msgspec.structs.replace(without, cause=cause)


def without_findings(result: RuleResult, why: str) -> RuleResult:
    """The same rule, which can't be held against the server for this reason."""
    return msgspec.structs.replace(result, outcome=Outcome.INCONCLUSIVE, reason=why, findings=())
