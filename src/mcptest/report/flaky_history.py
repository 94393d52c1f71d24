"""How often flaky rules failed: a small file beside the baseline that remembers the latest runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from mcptest.model.compliance import Judgement
from mcptest.model.scorecard import HISTORY_FORMAT, PastRun
from mcptest.report.results_json import as_json
from mcptest.report.scorecard import read_document, refuse_other_file
from mcptest.rules.corpus.baseline_entries import KnownFailures
from mcptest.transport.files import replace_file

RUNS_KEPT: Final = 50
"""Of each revision."""


class History(msgspec.Struct, frozen=True):
    format: str
    runs: tuple[PastRun, ...] = ()


def history_beside(baseline: Path) -> Path:
    """`known.yml` has its history in `known.yml.history.json`."""
    return baseline.with_name(f"{baseline.name}.history.json")


def read_history(path: Path) -> tuple[PastRun, ...]:
    """The runs that are remembered, oldest first; none when there is no file yet."""
    hint = "remove it to begin anew: the rates of flaky rules are then not judged for some runs"
    found = read_document(path, History, HISTORY_FORMAT, "a history of flaky rules", hint)
    return found.runs if found is not None else ()


def save_history(
    path: Path, known: KnownFailures, judgement: Judgement, history: Sequence[PastRun] = ()
) -> tuple[PastRun, ...]:
    """Remember this run after the earlier ones; without flaky rules nothing is written."""
    flaky = known.flaky_rules
    outcomes = {one.id: one.outcome for one in judgement.results if one.id in flaky}
    if not outcomes:
        return tuple(history)
    runs = _latest((*history, PastRun(judgement.revision, outcomes)))
    refuse_other_file(path, HISTORY_FORMAT, "a history of flaky rules")
    replace_file(path, as_json(msgspec.to_builtins(History(HISTORY_FORMAT, runs))))
    return runs


def _latest(runs: Sequence[PastRun]) -> tuple[PastRun, ...]:
    kept: list[PastRun] = []
    for run in reversed(runs):
        if sum(one.revision is run.revision for one in kept) < RUNS_KEPT:
            kept.append(run)
    return tuple(reversed(kept))
