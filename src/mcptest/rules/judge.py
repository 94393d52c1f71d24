"""One pass over a session with every rule watching, and the verdicts at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcptest.model.revision import Era, Revision
from mcptest.model.verdict import Outcome, Severity, Verdict
from mcptest.rules.composition import Offered
from mcptest.rules.declare import Rule
from mcptest.rules.ongoing import OngoingJudge, RuleTable, Standing, Watcher
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


def judge(
    source: SessionSource,
    rules: Iterable[Rule] | RuleTable,
    spec_version: Revision | None = None,
    thorough: bool = False,
) -> JudgedSession:
    """Judge one session. `spec_version` overrides what the session itself says it speaks.

    Whoever judges many short sessions by the same rules gives a `RuleTable` of them.
    `thorough` sends every step to every rule that listens, which finds the same and takes longer.
    """
    ongoing = OngoingJudge(source, rules, spec_version, thorough=thorough)
    session, watchers = ongoing.session, ongoing.watchers
    offered = Offered()
    for step in ongoing.steps(source.records):
        offered.learn(step)
    ongoing.finish()
    revisions = session.revisions()
    standings = ongoing.table.standings(tuple(revisions), session.transport)
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
        verdicts=tuple(map(_verdict, watchers, standings)),
        of_server={watcher.rule.id: watcher.check.of_server for watcher in watchers},
        offered=offered,
    )


def _verdict(watcher: Watcher, standing: Standing) -> Verdict:
    if watcher.broken is not None:
        error = watcher.broken
        reason = f"the rule itself failed: {type(error).__name__}: {error} (a defect of mcptest)"
        return Verdict(watcher.rule.id, Outcome.INCONCLUSIVE, reason)
    if standing.verdict is not None:
        return standing.verdict
    check = watcher.check
    return check.verdict() if standing.is_sure else check.verdict_without_revision()


def severity_of(rule: Rule, session: JudgedSession) -> Severity:
    return rule.severity_in(session.revision)
