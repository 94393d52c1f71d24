"""The session rules over a session that goes on: which of them were broken since the last look.

`rules.judge` judges a session that is over, which takes a millisecond however short it is. This
finds out in a fraction of that whether there is anything to judge: the same rules, kept going.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mcptest.model.capture import AnyRecord
from mcptest.model.revision import Revision
from mcptest.model.verdict import Finding, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Rule
from mcptest.rules.session import NO_MESSAGE, Session, Step, steps_of
from mcptest.run.compliance.sessions import POINTING_AT_THE_QUESTION
from mcptest.run.properties.reel import Reel

_KEPT = 50


class Watching:
    """One session and the rules that watch it."""

    def __init__(self, reel: Reel, rules: Iterable[Rule], revision: Revision) -> None:
        self.reel = reel
        self._spec_version = revision.wire_version
        self.session = Session(reel.source([], self._spec_version), revision)
        self._watchers = [_Watcher(rule, self.session) for rule in rules]
        named = (rule.methods | rule.answers_to for rule in rules)
        self._named = frozenset[str]().union(*named)
        self._listeners: dict[Any, list[_Watcher]] = {}
        self._place = 0
        self.broken_at_first = self.look(reel.beginning)
        """What the server broke before the first example."""

    def look(self, records: Sequence[AnyRecord]) -> list[tuple[Rule, Finding]]:
        """Take in more records; what the server broke with them."""
        broken: list[tuple[Rule, Finding]] = []
        source = self.reel.source(list(records), self._spec_version, self._place)
        self._place += len(records)
        for step in steps_of(source, self.session):
            for watcher in self._listeners_of(step):
                broken += ((watcher.rule, one) for one in watcher.take(step))
        return broken

    def _listeners_of(self, step: Step) -> list[_Watcher]:
        method = step.method if step.method in self._named else ""
        kind: Any = step.kind if step.message is not NO_MESSAGE else type(step.record)
        key = (id(kind), method, step.sender, step.routine)
        found = self._listeners.get(key)
        if found is None:
            found = self._listeners[key] = [
                one for one in self._watchers if one.wants(kind, method, step)
            ]
        return found


class _Watcher:
    """One rule at work."""

    __slots__ = ("_send", "_violations", "check", "done", "rule")

    def __init__(self, rule: Rule, session: Session) -> None:
        self.rule = rule
        self.check = Check(rule, session, kept=_KEPT)
        self.done = False
        watch = rule.watch(self.check)
        next(watch)
        self._send: Callable[[Step], None] = watch.send
        self._violations = 0

    def wants(self, kind: Any, method: str, step: Step) -> bool:
        rule = self.rule
        return (
            kind in rule.listens
            and (not rule.methods or method in rule.methods)
            and (not rule.answers_to or not step.message.is_answer or method in rule.answers_to)
            and (not rule.sender or step.sender == rule.sender)
            and (not step.routine or rule.on_routine == "send")
        )

    def take(self, step: Step) -> Iterable[Finding]:
        if self.done:
            return ()
        try:
            self._send(step)
        except StopIteration:
            self.done = True
        except Exception:  # noqa: BLE001 - a defect of one rule costs one verdict, as in rules.judge
            self.done = True
        before, self._violations = self._violations, self.check.violations
        if self._violations == before:
            return ()
        return of_the_server(self.rule, self.check.verdict().findings[before:])


def of_the_server(rule: Rule, findings: Iterable[Finding]) -> list[Finding]:
    """Of a rule that judges both sides: without what it has to say about us."""
    if rule.side is not Side.BOTH:
        return list(findings)
    ours = "server" if rule.id in POINTING_AT_THE_QUESTION else "client"
    return [one for one in findings if one.sender != ours]
