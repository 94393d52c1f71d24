"""One pass over a session with every rule watching, and the verdicts at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcptest.model.revision import Era, Revision
from mcptest.model.verdict import Outcome, Severity, Verdict
from mcptest.rules.check import Check
from mcptest.rules.composition import Offered
from mcptest.rules.declare import Rule, Topic, Watching
from mcptest.rules.session import NO_MESSAGE, Session, Step, steps_of
from mcptest.wire.session_source import SessionSource


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session, what was known of it in the end, and what the rules say."""

    label: str
    file: str
    form: str
    unit: str
    transport: str | None
    channel: str | None
    revision: Revision | None
    era: Era
    messages: int
    complete: bool
    """False when the capture was cut short."""
    verdicts: tuple[Verdict, ...]
    of_server: Mapping[str, int]
    """By rule, how often something that the server sent exercised it."""
    offered: Offered
    """What the server offers and which ids were used, for the composition of several servers."""


class _Watcher:
    """A rule's generator and its check.

    `broken` holds the exception of a rule that failed, `done` is one that has seen enough.
    """

    __slots__ = ("broken", "check", "done", "rule", "watching")

    def __init__(self, rule: Rule, session: Session) -> None:
        self.rule = rule
        self.check = Check(rule, session)
        self.watching: Watching = rule.watch(self.check)
        self.broken: Exception | None = None
        self.done = False
        next(self.watching)

    def finish(self) -> None:
        if self.broken is None and not self.done:
            try:
                self.watching.send(None)
            except StopIteration:
                pass
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                self.broken = error
            else:
                self.broken = RuntimeError("the rule did not end with the session")


def judge(
    source: SessionSource,
    rules: Iterable[Rule],
    spec_version: Revision | None = None,
    thorough: bool = False,
) -> JudgedSession:
    """Judge one session. `spec_version` overrides what the session itself says it speaks.

    `thorough` sends every step to every rule that listens, which finds the same and takes longer.
    """
    session = Session(source, spec_version)
    watchers = [_Watcher(rule, session) for rule in rules]
    offered = Offered()
    dispatch = _Dispatch(watchers, thorough)
    for step in steps_of(source, session):
        dispatch.take(step)
        offered.learn(step)
    dispatch.count_routine()
    for watcher in watchers:
        watcher.finish()
    revisions = session.revisions()
    return JudgedSession(
        label=source.label,
        file=source.file,
        form=source.form,
        unit=source.unit,
        transport=source.transport,
        channel=source.channel,
        revision=revisions[0],
        era=session.eras()[0],
        messages=session.messages,
        complete=session.ends_whole,
        verdicts=tuple(_verdict(watcher, session, revisions) for watcher in watchers),
        of_server={watcher.rule.id: watcher.check.of_server for watcher in watchers},
        offered=offered,
    )


class _Listeners:
    """Who hears of one sort of step. Routine ones are sent to few and counted for the others."""

    __slots__ = ("counting", "every", "of_server", "routine", "seen")

    def __init__(self, wanted: Sequence[_Watcher], thorough: bool, sender: str) -> None:
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


class _Dispatch:
    """Hands each step to the rules that listen to its sort."""

    def __init__(self, watchers: Sequence[_Watcher], thorough: bool) -> None:
        self.watchers = watchers
        self.thorough = thorough
        self.listeners: dict[Any, _Listeners] = {}
        rules = [watcher.rule for watcher in watchers]
        self.named = frozenset(name for rule in rules for name in rule.methods | rule.answers_to)

    def take(self, step: Step) -> None:
        # A peer chooses its methods, so only those that a rule names may widen the table.
        # Members of an enumeration are hashed in Python; their identity is as good and faster.
        method = step.method if step.method in self.named else ""
        kind: Any = step.kind if step.message is not NO_MESSAGE else type(step.record)
        key = (id(kind), method, step.sender, id(step.revision))
        listeners = self.listeners.get(key)
        if listeners is None:
            wanted = [one for one in self.watchers if _wants(one, kind, method, step)]
            listeners = self.listeners[key] = _Listeners(wanted, self.thorough, step.sender)
        chosen = listeners.every
        if step.routine:
            listeners.seen += 1
            chosen = listeners.routine
        for watcher, send in chosen:
            try:
                send(step)
            except StopIteration:
                watcher.done = True
                self.forget()
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                watcher.broken = error
                self.forget()

    def forget(self) -> None:
        """The table is made anew without the rules that have ended."""
        self.count_routine()
        self.listeners.clear()

    def count_routine(self) -> None:
        for listeners in self.listeners.values():
            listeners.count()


def _wants(watcher: _Watcher, topic: Topic, method: str, step: Step) -> bool:
    rule = watcher.rule
    return (
        watcher.broken is None
        and not watcher.done
        and topic in rule.listens
        and (not rule.methods or method in rule.methods)
        and (not rule.answers_to or not step.message.is_answer or method in rule.answers_to)
        and (not rule.sender or step.sender == rule.sender)
        and rule.may_hold(step.revision)
    )


def _verdict(watcher: _Watcher, session: Session, spoken: list[Revision | None]) -> Verdict:
    rule, check = watcher.rule, watcher.check
    if watcher.broken is not None:
        error = watcher.broken
        reason = f"the rule itself failed: {type(error).__name__}: {error} (a defect of mcptest)"
        return Verdict(rule.id, Outcome.INCONCLUSIVE, reason)
    holding = [revision for revision in spoken if rule.may_hold(revision)]
    if not holding:
        names = ", ".join(str(revision or "a handshake revision") for revision in spoken)
        return Verdict(
            rule.id, Outcome.NOT_APPLICABLE, f"holds in {rule.window}; the session speaks {names}"
        )
    if rule.transports:
        if session.transport is None:
            reason = "this capture has no transport facts"
            return Verdict(rule.id, Outcome.NOT_OBSERVED, reason)
        if session.transport not in rule.transports:
            needed = " or ".join(sorted(rule.transports))
            reason = f"is about {needed}; the session runs over {session.transport}"
            return Verdict(rule.id, Outcome.NOT_APPLICABLE, reason)
    if not any(rule.surely_holds(revision) for revision in holding):
        return check.verdict_without_revision()
    return check.verdict()


def severity_of(rule: Rule, session: JudgedSession) -> Severity:
    return rule.severity_in(session.revision)
