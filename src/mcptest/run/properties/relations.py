"""Metamorphic relations: what a server claims to be the same is looked at twice.

What changes by itself proves nothing, so each difference is looked at once more without cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.property import Way
from mcptest.model.show import show
from mcptest.model.verdict import Severity
from mcptest.run.exploring.annotations import Verifier
from mcptest.run.exploring.outcome import Kind, Outcome
from mcptest.run.exploring.subject import Offer, Subject
from mcptest.run.properties.judging import Violation
from mcptest.run.properties.playing import Steps
from mcptest.run.properties.sends import Relate
from mcptest.suite.json_equality import json_equal

_SEVERITIES = {"argument-order": Severity.SHOULD}
"""Nothing forbids it; JSON says that the members of an object have no order."""
_SLOW_MS = 1_000
_TITLES = {
    "idempotent": "a tool with idempotentHint changes nothing when it is called again",
    "read-only": "a tool with readOnlyHint changes nothing",
    "argument-order": "the order of its arguments does not matter to a tool",
    "same-lists": "two connections see the same lists",
}


class RelationBench:
    """One server that is asked the same twice. It comes back after a crash by itself."""

    is_fresh = False
    began_anew = False

    def __init__(
        self,
        subject: Subject,
        another: Callable[[], Subject],
        timeout: float,
        slow_tools: Mapping[str, str],
        note_slow: Callable[[str, float], None],
    ) -> None:
        self._subject = subject
        self._another = another
        self._timeout = timeout
        self._slow_tools = slow_tools
        self._note_slow = note_slow
        self._offer: Offer | None = None
        self._verifier: Verifier | None = None

    @property
    def subject(self) -> Subject:
        return self._subject

    def skips(self, steps: Steps) -> bool:
        return any(isinstance(one, Relate) and one.tool in self._slow_tools for one in steps)

    def learn(self, steps: Steps, found: Violation) -> None:
        """Nothing is found faster by that."""

    def renew(self, *, patient: bool = False) -> None:
        """A claim holds in every state, so there is no need for a fresh server."""

    def judged(self, steps: Steps) -> Sequence[Violation]:
        (relation,) = steps
        assert isinstance(relation, Relate)  # these properties are tried with nothing else
        if relation.relation == "same-lists":
            why = self._same_lists()
        elif relation.relation == "argument-order":
            why = self._order_matters(relation)
        else:
            why = self._claim_is_wrong(relation)
        if not why:
            return ()
        return (
            Violation(
                way=Way.RELATION,
                title=_TITLES[relation.relation],
                severity=Severity.SHOULD
                if relation.relation == "argument-order"
                else Severity.MUST,
                message=why,
            ),
        )

    def _known(self) -> Offer:
        if self._offer is None:
            self._offer = self._subject.offer()
        return self._offer

    def _claim_is_wrong(self, relation: Relate) -> str:
        if self._verifier is None:
            self._verifier = Verifier(self._subject, self._known(), None)
        tool = next((t for t in self._known().tools if _name(t) == relation.tool), None)
        if tool is None:
            return ""
        claims = self._verifier.claims(tool, relation.arguments, self._timeout)
        return next((one.detail for one in claims if one.holds is False), "")

    def _order_matters(self, relation: Relate) -> str:
        straight = relation.arguments
        turned = dict(reversed(straight.items()))
        first, again = self._called(relation, straight), self._called(relation, straight)
        if not _same(first, again) or first.kind is Kind.HUNG:
            return ""  # it never says the same twice
        other = self._called(relation, turned)
        if _same(first, other) or not _same(other, self._called(relation, turned)):
            return ""
        return f"it answers {_said(first)}, and turned round {_said(other)}"

    def _called(self, relation: Relate, arguments: Mapping[str, Any]) -> Outcome:
        outcome = self._subject.call(relation.tool, arguments, timeout=self._timeout)
        if outcome.duration_ms > _SLOW_MS:
            self._note_slow(relation.tool, outcome.duration_ms / 1000)
        return outcome

    def _same_lists(self) -> str:
        mine, theirs = self._subject.offer(), self._offer_of_another()
        for name in ("tools", "prompts", "resources", "templates"):
            if not json_equal(list(getattr(mine, name)), list(getattr(theirs, name))):
                again = self._subject.offer()
                if json_equal(list(getattr(mine, name)), list(getattr(again, name))):
                    return f"the list of {name} is not the same on a second connection"
        return ""

    def _offer_of_another(self) -> Offer:
        try:
            with self._another() as beside:
                return beside.offer()
        except PeerError as error:
            if error.kind not in {ErrorKind.EXITED, ErrorKind.CLOSED}:
                raise
        self._subject.drop()  # it may allow no second process beside itself
        with self._another() as alone:
            return alone.offer()


def _name(tool: Any) -> str:
    return tool.get("name", "") if isinstance(tool, Mapping) else ""


def _content(outcome: Outcome) -> Any:
    if outcome.reply is None:
        return outcome.kind.value
    value = outcome.reply.message.value
    body = value.get("result", value.get("error")) if isinstance(value, dict) else value
    return {k: v for k, v in body.items() if k != "_meta"} if isinstance(body, dict) else body


def _same(one: Outcome, other: Outcome) -> bool:
    return one.kind is other.kind and json_equal(_content(one), _content(other))


def _said(outcome: Outcome) -> str:
    return show(outcome.received, 120) or outcome.kind.value
