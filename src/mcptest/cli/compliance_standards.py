"""What a judged server is held against: an earlier scorecard, a baseline, a lowest grade."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mcptest.cli.compliance_case import Case
from mcptest.model.compliance import ComplianceReport, GateResult, Judgement
from mcptest.model.errors import UsageError
from mcptest.model.scorecard import SCORECARD_FORMAT, PastRun, Scorecard
from mcptest.report.flaky_history import history_beside, read_history, save_history
from mcptest.report.scorecard import read_scorecard, refuse_other_file, save_scorecard
from mcptest.rules.corpus.known_failures import (
    KnownFailures,
    hold_against,
    known_failures_from,
    load_known_failures,
)
from mcptest.run.lanes_compliance import min_grade_gate
from mcptest.transport.files import replace_file


@dataclass(frozen=True, slots=True)
class BaselineInUse:
    path: Path
    known: KnownFailures
    history: tuple[PastRun, ...] = ()
    is_written_anew: bool = False


@dataclass(frozen=True, slots=True)
class Standards:
    """Everything that was read before the server was started, so that a mistake costs nothing."""

    before: Scorecard | None = None
    baseline: BaselineInUse | None = None
    min_grade: str = ""
    scorecard: Path | None = None
    server_label: str = ""

    @property
    def needs_grade(self) -> bool:
        return self.scorecard is not None or bool(self.min_grade)

    def gates(
        self, judgements: Sequence[Judgement], graded: Judgement | None
    ) -> Iterator[GateResult]:
        several = len(judgements) > 1
        for one in judgements:
            if self.baseline is not None:
                yield _named(_held(self.baseline, one), one, several=several)
        for one in judgements if several or graded is None else [graded]:
            if self.min_grade:
                yield _named(min_grade_gate(self.min_grade, one), one, several=several)

    def keep(self, report: ComplianceReport, graded: Judgement | None) -> Iterator[str]:
        """Write what later runs are held against; gives a sentence for what can't be written."""
        if self.scorecard is not None and graded is not None:
            path, label = self.scorecard, self.server_label or report.server
            yield from _tried("scorecard", lambda: save_scorecard(path, graded, label))
        if self.baseline is not None and report.judgements:
            used = self.baseline
            yield from _tried("baseline", lambda: _keep_baseline(used, report.judgements))


def _tried(what: str, write: Callable[[], None]) -> Iterator[str]:
    try:
        write()
    except (UsageError, OSError) as error:
        yield f"the {what} was not written: {error}"


def _keep_baseline(used: BaselineInUse, judgements: Sequence[Judgement]) -> None:
    if used.is_written_anew:
        replace_file(used.path, known_failures_from(judgements, used.known).encode())
    history = used.history
    for judgement in judgements:
        history = save_history(history_beside(used.path), used.known, judgement, history)


def _held(used: BaselineInUse, judgement: Judgement) -> GateResult:
    if not used.is_written_anew:
        return hold_against(used.known, judgement, used.history)
    return GateResult("baseline", True, f"written anew: {used.path}")


def _named(gate: GateResult, judgement: Judgement, *, several: bool) -> GateResult:
    return replace(gate, name=f"{gate.name} {judgement.revision.label}") if several else gate


def standards_of(arguments: argparse.Namespace, case: Case) -> Standards:
    """UsageError when one of the files can't be used."""
    delta = case.block.grade_delta
    if case.every_revision and (delta is not None or arguments.save_scorecard is not None):
        raise UsageError(
            "--spec-version all gives several grades, and a scorecard holds one",
            hint="name one revision",
        )
    if arguments.save_scorecard is not None:
        if case.order is None:
            raise UsageError("there is no grade to save: the suite asks nothing of a server")
        refuse_other_file(arguments.save_scorecard, SCORECARD_FORMAT, "a scorecard")
    return Standards(
        before=earlier_scorecard(delta.against) if delta is not None else None,
        baseline=_baseline(arguments, case),
        min_grade=arguments.min_grade or "",
        scorecard=arguments.save_scorecard,
        server_label=arguments.server_label,
    )


def earlier_scorecard(against: str) -> Scorecard | None:
    """What `grade_delta` compares with; None on the first run. Relative to where we are started."""
    return read_scorecard(Path(against)) if against else None


def _baseline(arguments: argparse.Namespace, case: Case) -> BaselineInUse | None:
    path: Path | None = arguments.baseline
    if path is None:
        return None
    anew = arguments.update_baseline
    if anew and not path.exists():
        return BaselineInUse(path, KnownFailures(), is_written_anew=True)
    own = [test.name for test in case.block.tests or () if not test.runs_corpus_rule]
    known = load_known_failures(path, corpora=case.corpora, also=own)
    return BaselineInUse(path, known, read_history(history_beside(path)), anew)
