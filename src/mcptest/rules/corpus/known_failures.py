"""Holding a judged server against its baseline.

A failure that is not listed is red, and so is a listed rule that passes. A flaky rule is neither
while it fails no more often than it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mcptest.model.compliance import GateResult, Judgement, RuleResult
from mcptest.model.scorecard import PastRun
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.rules.corpus.baseline_entries import KnownFailure, KnownFailures, is_known_matter
from mcptest.rules.corpus.baseline_file import load_known_failures
from mcptest.rules.corpus.baseline_update import known_failures_from

__all__ = [
    "KnownFailure",
    "KnownFailures",
    "hold_against",
    "known_failures_from",
    "load_known_failures",
]

GATE: Final = "baseline"
RUNS_FOR_A_RATE: Final = 5
"""Before that many runs saw a flaky rule, its rate says nothing and is not judged."""
_ROUNDING: Final = 1e-9
"""29 of 100 are 0.29, whatever the processor makes of it."""


@dataclass(slots=True)
class _Tally:
    new: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)
    expected: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def red(self) -> list[str]:
        return [*self.new, *self.stale, *self.unsteady]


def hold_against(
    known: KnownFailures, judgement: Judgement, history: Sequence[PastRun] = ()
) -> GateResult:
    """Whether the server fails what it is known to fail, no more and no less.

    `history` are the runs before this one; they count for rules that are flaky.
    """
    listed = known.of(judgement.revision)
    tally = _Tally()
    for result in judgement.results:
        entry = listed.get(result.id)
        if entry is None:
            _hold_unlisted(result, tally)
        elif entry.max_rate is None:
            _hold_listed(result, entry, tally)
        else:
            _hold_flaky(result, entry.max_rate, entry, _past(result, judgement, history), tally)
    if not judgement.observed:
        tally.new.append("nothing was observed, so nothing can be said of this server")
    return GateResult(GATE, not tally.red, _in_words(tally), (*tally.red, *tally.notes))


def _hold_unlisted(result: RuleResult, tally: _Tally) -> None:
    if not is_known_matter(result):
        return
    if result.failed:
        tally.new.append(f"new failure: {_named(result)} ({result.severity.value})")
    else:
        tally.new.append(f"not judged: {_named(result)}, because of {show(result.cause, 60)}")


def _hold_listed(result: RuleResult, entry: KnownFailure, tally: _Tally) -> None:
    if result.outcome is Outcome.PASS:
        remedy = f"remove it: {entry.place}" if entry.place.file else "remove it"
        tally.stale.append(f"stale: {_named(result)} passes; {remedy}")
        return
    tally.expected += is_known_matter(result)
    if not result.failed:
        word = result.outcome.value.replace("_", " ")
        tally.notes.append(f"note: {result.id} is listed and was {word}")
    elif not entry.reason:
        tally.notes.append(f"note: {result.id} is listed without a reason")


def _hold_flaky(
    result: RuleResult, limit: float, entry: KnownFailure, past: list[Outcome], tally: _Tally
) -> None:
    runs = [one for one in (*past, result.outcome) if one in (Outcome.PASS, Outcome.FAIL)]
    failed = sum(one is Outcome.FAIL for one in runs)
    said = f"{_named(result)} failed in {failed} of {len(runs)} runs"
    if len(runs) < RUNS_FOR_A_RATE:
        tally.notes.append(f"flaky: {said}; judged from {RUNS_FOR_A_RATE} runs on")
    elif failed / len(runs) > limit + _ROUNDING:
        why = f" ({show(entry.reason, 200)})" if entry.reason else ""
        tally.unsteady.append(f"too often: {said}, more than {limit:g}{why}")
    else:
        tally.notes.append(f"flaky: {said}, at most {limit:g} is allowed")


def _past(result: RuleResult, now: Judgement, history: Sequence[PastRun]) -> list[Outcome]:
    runs = (run for run in history if run.revision is now.revision)
    return [run.outcomes[result.id] for run in runs if result.id in run.outcomes]


def _named(result: RuleResult) -> str:
    return f"{show(result.id, 60)} {show(result.title, 160)}"


def _in_words(tally: _Tally) -> str:
    parts = (
        (len(tally.new), "new"),
        (len(tally.stale), "stale"),
        (len(tally.unsteady), "flaky too often"),
        (tally.expected, "known"),
    )
    return ", ".join(f"{number} {word}" for number, word in parts if number) or "no failures"
