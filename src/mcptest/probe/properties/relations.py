"""Metamorphic relations: what a server claims to be the same is looked at twice.

What changes by itself proves nothing, so each difference is looked at once more without cause.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity
from mcptest.probe.hint_checks import Verifier
from mcptest.probe.live_server import OutcomeKind, Subject
from mcptest.probe.properties.example_judge import Violation
from mcptest.probe.properties.player import ExampleServer
from mcptest.probe.properties.steps import Relate, Steps
from mcptest.report.property import Way
from mcptest.session.pages import Offer, named_items
from mcptest.suite.matching import json_equal

_SEVERITIES = {"argument-order": Severity.SHOULD}
"""Nothing forbids it; JSON says that the members of an object have no order."""
_SLOW_MS = 1_000
_LARGE = 1_000_000
_TITLES = {
    "idempotent": "a tool with idempotentHint changes nothing when called again",
    "read-only": "a tool with readOnlyHint changes nothing",
    "argument-order": "the order of arguments does not change a tool's response",
    "same-lists": "two connections get the same lists",
}


class RelationBench:
    """One server that is asked the same twice. It comes back after a crash by itself."""

    is_fresh = False
    began_anew = False

    def __init__(self, stage: ExampleServer) -> None:
        """Of the stage: which server it is, and which of its tools are slow."""
        self._stage = stage
        self._timeout = stage.order.timeout
        self._subject = self._another()

    def _another(self) -> Subject:
        order = self._stage.order
        return Subject(
            order.target,
            revision=self._stage.revision,
            timeout=order.timeout,
            startup=order.startup,
            should_stop=order.is_over,
        )

    def close(self) -> None:
        self._subject.close()

    def skips(self, steps: Steps) -> bool:
        slow = self._stage.slow_tools
        return any(isinstance(one, Relate) and one.tool in slow for one in steps)

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
        severity = _SEVERITIES.get(relation.relation, Severity.MUST)
        title = _TITLES[relation.relation]
        return (Violation(way=Way.RELATION, title=title, severity=severity, message=why),)

    @cached_property
    def _offer(self) -> Offer:
        return self._subject.offer()

    @cached_property
    def _verifier(self) -> Verifier:
        return Verifier(self._subject, self._offer, None)

    def _claim_is_wrong(self, relation: Relate) -> str:
        for tool in named_items(self._offer.tools):
            if tool["name"] == relation.tool:
                claims = self._verifier.claims(tool, relation.arguments, self._timeout)
                return next((one.detail for one in claims if one.holds is False), "")
        return ""

    def _order_matters(self, relation: Relate) -> str:
        straight = relation.arguments
        turned = dict(reversed(straight.items()))
        first, again = self._called(relation, straight), self._called(relation, straight)
        if not first.is_like(again) or first.kind is OutcomeKind.HUNG:
            return ""  # it never says the same twice
        other = self._called(relation, turned)
        if first.is_like(other) or not other.is_like(self._called(relation, turned)):
            return ""
        return f"the tool returned {first.shown}, and {other.shown} with the arguments reversed"

    def _called(self, relation: Relate, arguments: Mapping[str, Any]) -> _Answered:
        outcome = self._subject.call(relation.tool, arguments, timeout=self._timeout)
        if outcome.duration_ms > _SLOW_MS:
            self._stage.note_slow(relation.tool, outcome.duration_ms / 1000)
        content: Any = outcome.kind.value
        if outcome.reply is not None:
            value = outcome.reply.message.value
            content = value.get("result", value.get("error")) if isinstance(value, dict) else value
            if isinstance(content, dict):
                content = {key: part for key, part in content.items() if key != "_meta"}
        if len(outcome.received) >= _LARGE:  # four answers of 15 MB are too many to keep at once
            content = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return _Answered(outcome.kind, content, show(outcome.received, 120) or outcome.kind.value)

    def _same_lists(self) -> str:
        mine, theirs = self._subject.offer(), self._offer_of_another()
        for name in ("tools", "prompts", "resources", "templates"):
            if not json_equal(list(getattr(mine, name)), list(getattr(theirs, name))):
                again = self._subject.offer()
                if json_equal(list(getattr(mine, name)), list(getattr(again, name))):
                    return f"the list of {name} differs on a second connection"
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


class _Answered(msgspec.Struct, frozen=True):
    kind: OutcomeKind
    content: Any
    shown: str

    def is_like(self, other: _Answered) -> bool:
        return self.kind is other.kind and json_equal(self.content, other.content)
