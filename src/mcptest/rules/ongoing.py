"""The rules over a session that goes on: fed one step at a time, asked at any time what is broken.

`rules.judge` feeds it a whole session and concludes. Whoever watches a session that does not end
asks after each piece what was broken with it, and never concludes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import Message
from mcptest.model.revision import Revision
from mcptest.model.verdict import Finding, Outcome, Verdict
from mcptest.rules.check import Check
from mcptest.rules.declare import Rule, Topic, Watching
from mcptest.rules.session import NO_MESSAGE, Session, Step, follow
from mcptest.wire.envelope import decode
from mcptest.wire.session_source import SessionSource


class RuleTable:
    """Rules, and which of them listen to what. One table serves any number of sessions."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.named = frozenset(name for one in self.rules for name in one.methods | one.answers_to)
        self._wanted: dict[Any, tuple[int, ...]] = {}
        self._standings: dict[Any, tuple[Standing, ...]] = {}

    def wanted(self, key: Any, topic: Topic, method: str, step: Step) -> tuple[int, ...]:
        """The places of the rules that listen to steps like this, which `key` stands for."""
        found = self._wanted.get(key)
        if found is None:
            places = enumerate(self.rules)
            found = tuple(n for n, rule in places if _wants(rule, topic, method, step))
            self._wanted[key] = found
        return found

    def standings(
        self, spoken: tuple[Revision | None, ...], transport: TransportName | None
    ) -> tuple[Standing, ...]:
        """How each rule stands to a session that spoke these revisions over that transport."""
        key = (*map(id, spoken), transport)
        found = self._standings.get(key)
        if found is None:
            found = tuple(_standing(rule, spoken, transport) for rule in self.rules)
            self._standings[key] = found
        return found


class Standing(msgspec.Struct, frozen=True):
    """Whether a rule has anything to say about a session of some sort."""

    verdict: Verdict | None = None
    """Decided before anything is seen: the rule is about other sessions."""
    is_sure: bool = True
    """False where the rule holds in some of the revisions that the session may be speaking."""


def _standing(
    rule: Rule, spoken: tuple[Revision | None, ...], transport: TransportName | None
) -> Standing:
    holding = [revision for revision in spoken if rule.may_hold(revision)]
    if not holding:
        names = ", ".join(str(revision or "a handshake revision") for revision in spoken)
        reason = f"holds in {rule.window}; the session speaks {names}"
        return Standing(Verdict(rule.id, Outcome.NOT_APPLICABLE, reason))
    if rule.transports:
        if transport is None:
            reason = "this capture has no transport facts"
            return Standing(Verdict(rule.id, Outcome.NOT_OBSERVED, reason))
        if transport not in rule.transports:
            needed = " or ".join(sorted(rule.transports))
            reason = f"is about {needed}; the session runs over {transport}"
            return Standing(Verdict(rule.id, Outcome.NOT_APPLICABLE, reason))
    return Standing(is_sure=any(rule.surely_holds(revision) for revision in holding))


def table_of(rules: Iterable[Rule] | RuleTable) -> RuleTable:
    return rules if isinstance(rules, RuleTable) else RuleTable(rules)


def _wants(rule: Rule, topic: Topic, method: str, step: Step) -> bool:
    return (
        topic in rule.listens
        and (not rule.methods or method in rule.methods)
        and (not rule.answers_to or not step.message.is_answer or method in rule.answers_to)
        and (not rule.sender or step.sender == rule.sender)
        and rule.may_hold(step.revision)
    )


class Watcher:
    """A rule's generator and its check.

    `broken` holds the exception of a rule that failed, `done` is one that has seen enough.
    """

    __slots__ = ("broken", "check", "done", "rule", "told", "watching")

    def __init__(self, rule: Rule, session: Session, kept: int) -> None:
        self.rule = rule
        self.check = Check(rule, session, kept)
        self.watching: Watching = rule.watch(self.check)
        self.broken: Exception | None = None
        self.done = False
        self.told = 0
        """Violations that whoever watches has heard of."""
        next(self.watching)

    @property
    def is_listening(self) -> bool:
        return self.broken is None and not self.done

    def finish(self) -> None:
        if self.is_listening:
            try:
                self.watching.send(None)
            except StopIteration:
                pass
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                self.broken = error
            else:
                self.broken = RuntimeError("the rule did not end with the session")


class OngoingJudge:
    """Every rule at work on one session."""

    def __init__(
        self,
        source: SessionSource,
        rules: Iterable[Rule] | RuleTable,
        spec_version: Revision | None = None,
        *,
        thorough: bool = False,
        kept: int = DEFAULT_LIMITS.findings,
        read: Callable[[bytes], Message] = decode,
    ) -> None:
        """Of `source` only what is known of the session is taken; `feed` gets its records.

        `thorough` sends every step to every rule that listens, `kept` bounds the findings of each
        rule, and `read` is how a frame becomes a message, for whoever has it already.
        """
        self.session = Session(source, spec_version)
        self.table = table_of(rules)
        self.watchers = [Watcher(rule, self.session, kept) for rule in self.table.rules]
        self._thorough = thorough
        self._read = read
        self._listeners: dict[Any, _Listeners] = {}

    def feed(self, records: Iterable[tuple[int, AnyRecord]]) -> None:
        """Take in more of the session: records with their places in it."""
        for step in follow(records, self.session, self._read):
            self.take(step)

    def steps(self, records: Iterable[tuple[int, AnyRecord]]) -> Iterator[Step]:
        """The same, handing out each step that the rules have seen."""
        for step in follow(records, self.session, self._read):
            self.take(step)
            yield step

    def take(self, step: Step) -> None:
        """Hand one step of this session to the rules that listen to its sort."""
        # A peer chooses its methods, so only those that a rule names may widen the table.
        # Members of an enumeration are hashed in Python; their identity is as good and faster.
        method = step.method if step.method in self.table.named else ""
        kind: Any = step.kind if step.message is not NO_MESSAGE else type(step.record)
        key = (id(kind), method, step.sender, id(step.revision))
        listeners = self._listeners.get(key)
        if listeners is None:
            listeners = self._listeners[key] = self._listeners_of(key, kind, method, step)
        chosen = listeners.every
        if step.routine:
            listeners.seen += 1
            chosen = listeners.routine
        for watcher, send in chosen:
            try:
                send(step)
            except StopIteration:
                watcher.done = True
                self._forget()
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                watcher.broken = error
                self._forget()

    def _listeners_of(self, key: Any, kind: Topic, method: str, step: Step) -> _Listeners:
        places = self.table.wanted(key, kind, method, step)
        wanted = [self.watchers[place] for place in places if self.watchers[place].is_listening]
        return _Listeners(wanted, self._thorough, step.sender)

    def _forget(self) -> None:
        """The table is made anew without the rules that have ended."""
        self._count_routine()
        self._listeners.clear()

    def _count_routine(self) -> None:
        for listeners in self._listeners.values():
            listeners.count()

    def broken_since(self) -> list[tuple[Rule, Finding]]:
        """What was broken since this was asked the last time, in the order in which it was seen."""
        news: list[tuple[Rule, Finding]] = []
        for watcher in self.watchers:
            violations = watcher.check.violations
            if violations != watcher.told:
                findings = watcher.check.verdict().findings[watcher.told :]
                news += ((watcher.rule, one) for one in findings)
                watcher.told = violations
        return sorted(news, key=lambda one: -1 if one[1].record is None else one[1].record)

    def finish(self) -> None:
        """Nothing more will come: every rule has its last word."""
        self._count_routine()
        for watcher in self.watchers:
            watcher.finish()


class _Listeners:
    """Who hears of one sort of step. Routine ones are sent to few and counted for the others."""

    __slots__ = ("counting", "every", "of_server", "routine", "seen")

    def __init__(self, wanted: Sequence[Watcher], thorough: bool, sender: str) -> None:
        self.of_server = sender == "server"
        self.every = [(watcher, watcher.watching.send) for watcher in wanted]
        self.routine = [
            (watcher, watcher.watching.send)
            for watcher in wanted
            if thorough or watcher.rule.on_routine == "send"
        ]
        self.counting = [] if thorough else [w for w in wanted if w.rule.on_routine == "count"]
        self.seen = 0

    def count(self) -> None:
        for watcher in self.counting:
            watcher.check.observed += self.seen
            watcher.check.of_server += self.seen if self.of_server else 0
        self.seen = 0
