"""One pass over a session with every rule watching, and the verdicts at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    offered: Offered
    """What the server offers and which ids were used, for the composition of several servers."""


class _Watcher:
    """A rule's generator and its check; `broken` holds the exception of a rule that failed."""

    __slots__ = ("broken", "check", "rule", "watching")

    def __init__(self, rule: Rule, session: Session) -> None:
        self.rule = rule
        self.check = Check(rule, session)
        self.watching: Watching = rule.watch(self.check)
        self.broken: Exception | None = None
        next(self.watching)

    def finish(self) -> None:
        if self.broken is None:
            try:
                self.watching.send(None)
            except StopIteration:
                pass
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                self.broken = error
            else:
                self.broken = RuntimeError("the rule did not end with the session")


def judge(
    source: SessionSource, rules: Iterable[Rule], spec_version: Revision | None = None
) -> JudgedSession:
    """Judge one session. `spec_version` overrides what the session itself says it speaks."""
    session = Session(source, spec_version)
    watchers = [_Watcher(rule, session) for rule in rules]
    offered = Offered()
    _watch_all(source, session, watchers, offered)
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
        offered=offered,
    )


def _watch_all(
    source: SessionSource, session: Session, watchers: Sequence[_Watcher], offered: Offered
) -> None:
    named = frozenset(method for watcher in watchers for method in watcher.rule.methods)
    listeners: dict[Any, list[tuple[_Watcher, Callable[[Step | None], None]]]] = {}
    for step in steps_of(source, session):
        # A peer chooses its methods, so only those that a rule names may widen the table.
        # Members of an enumeration are hashed in Python; their identity is as good and faster.
        method = step.method if step.method in named else ""
        kind: Any = step.kind if step.message is not NO_MESSAGE else type(step.record)
        key = (id(kind), method, step.sender, id(step.revision))
        wanted = listeners.get(key)
        if wanted is None:
            wanted = listeners[key] = [
                (watcher, watcher.watching.send)
                for watcher in watchers
                if _wants(watcher, kind, method, step)
            ]
        for watcher, send in wanted:
            try:
                send(step)
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                watcher.broken = error
                listeners.clear()
        offered.learn(step)


def _wants(watcher: _Watcher, topic: Topic, method: str, step: Step) -> bool:
    rule = watcher.rule
    return (
        watcher.broken is None
        and topic in rule.listens
        and (not rule.methods or method in rule.methods)
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
