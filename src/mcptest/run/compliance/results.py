"""From what was seen to the result of a rule, with its proof and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from mcptest.model.compliance import Evidence, RuleResult
from mcptest.model.errors import PeerError
from mcptest.model.show import in_one_line, show
from mcptest.model.verdict import Finding, Outcome, Severity
from mcptest.rules.corpus.rows import CorpusRule, unmet
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


class Results:
    """Makes the results of one run."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def unasked(self, rule: CorpusRule, why: Unasked) -> RuleResult:
        return self._result(rule, why.outcome, reason=why.reason, unlocked_by=why.unlocked_by)

    def kept_from(self, rule: CorpusRule, cause: str) -> RuleResult:
        """Something else went wrong before it could be judged."""
        return self._result(
            rule, Outcome.INCONCLUSIVE, reason=f"could not be judged: see {cause}", cause=cause
        )

    def killed(self, rule: CorpusRule, error: PeerError, asked: Asked | None) -> RuleResult:
        """The server did not survive the question."""
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
        outcome = Outcome.PASS if judged.passed else Outcome.FAIL
        return self._result(
            rule,
            outcome,
            findings=tuple(self._finding(one, rule) for one in judged.failures),
            evidence=self._evidence(proof),
            observed=1,
        )

    def over_sessions(self, rule: CorpusRule, verdict: SessionVerdict) -> RuleResult:
        return self._result(
            rule,
            verdict.outcome,
            reason=verdict.reason,
            findings=verdict.findings,
            evidence=verdict.evidence,
            observed=verdict.observed,
        )

    def _finding(self, failure: Failure, rule: CorpusRule) -> Finding:
        mask = self._site.masker.cut_text
        in_words = rule.row.says if rule.row is not None and failure.check == "exchange" else ""
        return Finding(
            message=show(mask(failure.message), _SHOWN),
            sender="server",
            expected=in_words or self._shown(failure.expected),
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


def for_a_cause(result: RuleResult, cause: str) -> RuleResult:
    """The same rule, which failed only because of something that is told once already."""
    return msgspec.structs.replace(
        result,
        outcome=Outcome.INCONCLUSIVE,
        reason=f"could not be judged: see {cause}",
        cause=cause,
        findings=(),
    )
