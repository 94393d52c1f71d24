"""One pass over a capture with every rule watching each session, and the verdicts at its end.

`judge` feeds whole sessions and concludes. Whoever watches a session that does not end feeds an
`OngoingJudge` one piece at a time, asks after each what was broken with it, and never concludes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord, Closed, TransportName
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import Message
from mcptest.core.revision import Era, Revision
from mcptest.core.verdict import Finding, Outcome, Verdict
from mcptest.rules.composition import Offered
from mcptest.rules.declaration import Check, Rule, Topic, Watching
from mcptest.rules.session import NO_MESSAGE, Session, Step, follow
from mcptest.rules.session_routing import routed
from mcptest.rules.yielding import without_repetition
from mcptest.wire.capture_forms import SessionSource
from mcptest.wire.envelope import decode


class RuleTable:
    """Rules, and which of them listen to what. One table serves any number of sessions."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.named = frozenset(name for one in self.rules for name in one.methods + one.answers_to)
        self._wanted: dict[Any, tuple[int, ...]] = {}
        self._standings: dict[Any, tuple[RuleStanding, ...]] = {}

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
    ) -> tuple[RuleStanding, ...]:
        """How each rule stands to a session that spoke these revisions over that transport."""
        key = (*map(id, spoken), transport)
        found = self._standings.get(key)
        if found is None:
            found = tuple(_standing(rule, spoken, transport) for rule in self.rules)
            self._standings[key] = found
        return found


RuleStanding: TypeAlias = Verdict | bool
"""Of a rule that is about other sessions its verdict, before anything is seen; otherwise whether it
holds in all revisions that the session may be speaking."""


def _standing(
    rule: Rule, spoken: tuple[Revision | None, ...], transport: TransportName | None
) -> RuleStanding:
    holding = [revision for revision in spoken if rule.may_hold(revision)]
    if not holding:
        names = ", ".join(str(revision or "a handshake revision") for revision in spoken)
        reason = f"applies to {rule.window}; the session uses {names}"
        return Verdict(rule.id, Outcome.NOT_APPLICABLE, reason)
    if rule.transports:
        if transport is None:
            reason = "the capture does not record the transport"
            return Verdict(rule.id, Outcome.NOT_OBSERVED, reason)
        if transport not in rule.transports:
            needed = " or ".join(sorted(rule.transports))
            reason = f"applies to {needed}; the session uses {transport}"
            return Verdict(rule.id, Outcome.NOT_APPLICABLE, reason)
    return any(rule.surely_holds(revision) for revision in holding)


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
    """A rule's function and its check.

    `broken` holds the exception of a rule that failed, `done` is one that has seen enough.
    """

    __slots__ = ("broken", "check", "done", "rule", "send", "told")

    def __init__(self, rule: Rule, session: Session, kept: int) -> None:
        self.rule = rule
        self.check = Check(rule, session, kept)
        self.broken: Exception | None = None
        self.done = bool(rule.transports) and session.transport not in rule.transports
        """It needs to see no more: here, because its verdict is that of another transport."""
        self.told = 0
        """Violations that whoever watches has heard of."""
        judging: Any = rule.judging
        self.send: Callable[[Step | None], object] = partial(judging, self.check)
        if not rule.by_step:
            watching: Watching = judging(self.check)
            next(watching)
            self.send = watching.send

    @property
    def is_listening(self) -> bool:
        return self.broken is None and not self.done

    def finish(self) -> None:
        if self.is_listening and not self.rule.by_step:
            try:
                self.send(None)
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
        kept: int = DEFAULT_LIMITS.findings,
        read: Callable[[bytes], Message] = decode,
    ) -> None:
        """Of `source` only what is known of the session is taken; `feed` gets its records.

        `kept` bounds the findings of each rule, and `read` is how a frame becomes a message, for
        whoever has it already.
        """
        self.session = Session(source, spec_version)
        self.table = table_of(rules)
        self.watchers = [Watcher(rule, self.session, kept) for rule in self.table.rules]
        self._read = read
        self._listeners: dict[Any, _Listeners] = {}

    def feed(self, records: Iterable[tuple[int, AnyRecord]]) -> None:
        """Take in more of the session: records with their places in it."""
        for _ in self.steps(records):
            pass

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
            places = self.table.wanted(key, kind, method, step)
            wanted = [self.watchers[place] for place in places if self.watchers[place].is_listening]
            listeners = self._listeners[key] = _Listeners(wanted, step.sender)
        chosen = listeners.every
        if step.routine:
            listeners.seen += 1
            chosen = listeners.routine
        for watcher, send in chosen:
            try:
                send(step)
            except Exception as error:  # noqa: BLE001 - a defect of one rule costs one verdict
                if type(error) is StopIteration and not watcher.rule.by_step:
                    watcher.done = True
                else:
                    watcher.broken = error
                self._forget()

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

    def __init__(self, wanted: Sequence[Watcher], sender: str) -> None:
        self.of_server = sender == "server"
        self.every = [(watcher, watcher.send) for watcher in wanted]
        self.routine = [one for one in self.every if one[0].rule.on_routine == "send"]
        self.counting = [one for one in wanted if one.rule.on_routine == "count"]
        self.seen = 0

    def count(self) -> None:
        for watcher in self.counting:
            watcher.check.observed += self.seen
            watcher.check.of_server += self.seen if self.of_server else 0
        self.seen = 0


MOST_SESSIONS = 100
"""How many sessions of one source are followed at a time. Beyond that, the one that was silent the
longest is concluded, which keeps memory bounded."""
_ORDER = (
    Outcome.FAIL,
    Outcome.PASS,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_OBSERVED,
    Outcome.NOT_APPLICABLE,
)


def decisiveness(verdict: Verdict) -> int:
    """Which verdict on one rule counts where there are several sessions: the lowest.

    A failure in any session counts; a pass in any counts where nothing failed, where all could be
    looked at, and where nothing is in doubt.
    """
    return 0 if verdict.unchecked or verdict.doubtful else 2 * _ORDER.index(verdict.outcome) - 1


class JudgedSession(SessionSource, frozen=True, kw_only=True):
    """A session whose records were read, what was known of it in the end, and what rules say."""

    offered: Offered
    """What the server offers and which ids were used, for the composition of several servers."""
    revision: Revision | None = None
    era: Era = Era.HANDSHAKE
    messages: int = 0
    complete: bool = True
    """False when the capture was cut short."""
    verdicts: tuple[Verdict, ...] = ()
    of_server: Mapping[str, int] = {}
    """By rule, how often something that the server sent exercised it."""


def judge(
    source: SessionSource,
    rules: Iterable[Rule] | RuleTable,
    spec_version: Revision | None = None,
    *,
    repeating: bool = False,
) -> JudgedSession:
    """Judge one session. `spec_version` overrides what the session itself says it speaks.

    Whoever judges many short sessions by the same rules gives a `RuleTable` of them.
    One fault is told by one rule, unless the verdicts are `repeating`: then by each that sees it.

    A source that holds several sessions, as the capture of a client that connects twice does, is
    told apart: each is judged by itself, and the verdicts are those of all of them together.
    """
    table = table_of(rules)
    read = lru_cache(maxsize=1)(decode)  # once for whoever routes a message and whoever judges it
    judges: dict[int, OngoingJudge] = {}
    concluded: list[JudgedSession] = []
    offered = Offered()
    begun, forgotten = 0, False
    for number, records in groupby(routed(source, read), key=itemgetter(0)):
        ongoing = judges.pop(number, None)
        if ongoing is None and number < begun:
            # It was concluded long ago. Its end says nothing new; anything else is not judged.
            forgotten |= any(type(record) is not Closed for _, (_, record) in records)
            continue
        if ongoing is None:
            begun = number + 1
            ongoing = OngoingJudge(source, table, spec_version, read=read)
        judges[number] = ongoing  # the one that was used last is last
        for step in ongoing.steps(numbered for _, numbered in records):
            offered.learn(step)
        if len(judges) > MOST_SESSIONS:
            oldest = judges.pop(next(iter(judges)))
            concluded = [_together([*concluded, _conclude(source, oldest, offered)])]
    if not judges:
        judges[0] = OngoingJudge(source, table, spec_version)
    concluded += [_conclude(source, one, offered) for _, one in sorted(judges.items())]
    judged = _together(concluded)
    if not repeating:
        judged = replace(judged, verdicts=without_repetition(judged.verdicts))
    return replace(judged, complete=False) if forgotten else judged


def _conclude(source: SessionSource, ongoing: OngoingJudge, offered: Offered) -> JudgedSession:
    ongoing.finish()
    session, watchers = ongoing.session, ongoing.watchers
    revisions = session.revisions()
    standings = ongoing.table.standings(tuple(revisions), session.transport)
    return JudgedSession(
        **{**msgspec.structs.asdict(source), "records": iter(())},
        offered=offered,
        revision=revisions[0],
        era=session.eras()[0],
        messages=session.messages,
        complete=session.ends_whole,
        verdicts=tuple(map(_verdict, watchers, standings)),
        of_server={watcher.rule.id: watcher.check.of_server for watcher in watchers},
    )


def _together(sessions: Sequence[JudgedSession]) -> JudgedSession:
    """The first, with what the rules say about all."""
    first = sessions[0]
    if len(sessions) == 1:
        return first
    return replace(
        first,
        messages=sum(one.messages for one in sessions),
        complete=sessions[-1].complete,
        verdicts=tuple(map(_worst, *(one.verdicts for one in sessions))),
        of_server={rule: sum(one.of_server[rule] for one in sessions) for rule in first.of_server},
    )


def _worst(*verdicts: Verdict) -> Verdict:
    deciding = min(verdicts, key=decisiveness)
    findings = tuple(finding for one in verdicts for finding in one.findings)
    return replace(
        deciding,
        observed=sum(one.observed for one in verdicts),
        findings=findings[: DEFAULT_LIMITS.findings],
        findings_total=sum(one.findings_total for one in verdicts),
    )


def _verdict(watcher: Watcher, standing: RuleStanding) -> Verdict:
    rule, check, error = watcher.rule, watcher.check, watcher.broken
    if error is not None:
        reason = f"internal error in mcptest: {type(error).__name__}: {error}"
        return Verdict(rule.id, Outcome.INCONCLUSIVE, reason)
    if isinstance(standing, Verdict):
        return standing
    verdict, why = check.verdict(), ""
    refused = check.session.is_refused_probe and not rule.surely_holds(None)
    of_server = any(finding.sender != "client" for finding in verdict.findings)
    if not standing and check.violations:  # what breaks nothing conforms in each revision
        why = "the capture does not name its revision; set it with --spec-version"
    elif standing and refused and of_server:  # it is not held to what it does not speak
        why = "the server does not speak such a revision"
    if not why:
        return verdict
    reason = f"applies to {rule.window}, but {why}"
    return Verdict(rule.id, Outcome.INCONCLUSIVE, reason, check.observed)
