"""One pass over a capture with every rule watching each session, and the verdicts at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from mcptest.model.capture import Closed
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.revision import Era, Revision
from mcptest.model.verdict import Outcome, Severity, Verdict
from mcptest.rules.composition import Offered
from mcptest.rules.declare import Rule
from mcptest.rules.ongoing import OngoingJudge, RuleTable, Standing, Watcher, table_of
from mcptest.rules.session_routing import Remembered, routed
from mcptest.rules.yielding import without_repetition
from mcptest.wire.envelope import decode
from mcptest.wire.session_source import SessionSource

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

    A failure in any session counts; a pass in any counts where nothing failed, and where all could
    be looked at.
    """
    return 0 if verdict.unchecked else 2 * _ORDER.index(verdict.outcome) - 1


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
    revision_reason: str
    """Why the client that recorded it spoke that revision, where the capture says."""
    era: Era
    messages: int
    complete: bool
    """False when the capture was cut short."""
    verdicts: tuple[Verdict, ...]
    of_server: Mapping[str, int]
    """By rule, how often something that the server sent exercised it."""
    offered: Offered
    """What the server offers and which ids were used, for the composition of several servers."""


def judge(
    source: SessionSource,
    rules: Iterable[Rule] | RuleTable,
    spec_version: Revision | None = None,
    thorough: bool = False,
    *,
    repeating: bool = False,
) -> JudgedSession:
    """Judge one session. `spec_version` overrides what the session itself says it speaks.

    Whoever judges many short sessions by the same rules gives a `RuleTable` of them.
    `thorough` sends every step to every rule that listens, which finds the same and takes longer.
    One fault is told by one rule, unless the verdicts are `repeating`: then by each that sees it.

    A source that holds several sessions, as the capture of a client that connects twice does, is
    told apart: each is judged by itself, and the verdicts are those of all of them together.
    """
    table, read = table_of(rules), Remembered(decode)
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
            ongoing = OngoingJudge(source, table, spec_version, thorough=thorough, read=read)
        judges[number] = ongoing  # the one that was used last is last
        for step in ongoing.steps(numbered for _, numbered in records):
            offered.learn(step)
        if len(judges) > MOST_SESSIONS:
            oldest = judges.pop(next(iter(judges)))
            concluded = [_together([*concluded, _conclude(source, oldest, offered)])]
    if not judges:
        judges[0] = OngoingJudge(source, table, spec_version, thorough=thorough)
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
    verdicts = tuple(map(_verdict, watchers, standings))
    return JudgedSession(
        label=source.label,
        file=source.file,
        form=source.form,
        unit=source.unit,
        transport=source.transport,
        channel=source.channel,
        revision=revisions[0],
        revision_reason=source.revision_reason,
        era=session.eras()[0],
        messages=session.messages,
        complete=session.ends_whole,
        verdicts=verdicts,
        of_server={watcher.rule.id: watcher.check.of_server for watcher in watchers},
        offered=offered,
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
    return Verdict(
        rule=deciding.rule,
        outcome=deciding.outcome,
        reason=deciding.reason,
        observed=sum(one.observed for one in verdicts),
        findings=findings[: DEFAULT_LIMITS.findings],
        findings_total=sum(one.findings_total for one in verdicts),
        unchecked=deciding.unchecked,
    )


def _verdict(watcher: Watcher, standing: Standing) -> Verdict:
    if watcher.broken is not None:
        error = watcher.broken
        reason = f"the rule itself failed: {type(error).__name__}: {error} (a defect of mcptest)"
        return Verdict(watcher.rule.id, Outcome.INCONCLUSIVE, reason)
    if standing.verdict is not None:
        return standing.verdict
    check = watcher.check
    if not standing.is_sure:
        return check.verdict_without_revision()
    refused = check.session.is_refused_probe and not watcher.rule.surely_holds(None)
    return check.verdict_on_the_client() if refused else check.verdict()


def severity_of(rule: Rule, session: JudgedSession) -> Severity:
    return rule.severity_in(session.revision)
