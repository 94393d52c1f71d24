"""A run of suites with the lanes that its files declare: one report, one exit code."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from mcptest import __version__
from mcptest.commands.command_line import as_one_word, repeat_line
from mcptest.commands.live_display import live_progress
from mcptest.commands.suite_command import WantedRun
from mcptest.core.judgement import Scorecard
from mcptest.core.results import RunReport, TestResult
from mcptest.probe.lanes import (
    LaneSettings,
    run_compliance_lane,
    run_invariants_lane,
    run_properties_lane,
)
from mcptest.probe.suites.settings import RunOptions, Settings
from mcptest.report.compliance.text import JudgingProgress
from mcptest.report.scorecards import earlier_scorecard
from mcptest.suite.lane_blocks import Lanes
from mcptest.suite.model import Test
from mcptest.transport.temporary import temporary_folder

CarryOut = Callable[[Settings], RunReport]


def with_lanes(run: WantedRun, carry_out: CarryOut) -> RunReport:
    """Run the tests by `carry_out`, then every lane, and put all results into one report."""
    settings, lanes = run.settings, run.lanes
    before = {
        one.file: earlier_scorecard(one.compliance.grade_delta.against)
        for one in lanes
        if one.compliance is not None and one.compliance.grade_delta is not None
    }
    began = time.monotonic()
    # Sessions are kept for a lane that judges them; for no longer, unless they were asked for.
    kept = settings.choice.captures is not None or not any(one.invariants for one in lanes)
    with contextlib.ExitStack() as lent:
        if not kept:
            choice = replace(settings.choice, captures=lent.enter_context(temporary_folder()))
            settings = replace(settings, choice=choice)
        folder = settings.choice.captures
        already = _written(folder)
        report = carry_out(settings)
        new = [path for path, at in _written(folder).items() if already.get(path) != at]
        results, notes = list(report.results), list(report.notes)
        if not kept:  # a file that is gone is not named
            results = [
                replace(one, proof=replace(one.proof, capture="")) if one.proof else one
                for one in results
            ]
        if run.options.fail_fast and report.failed:
            notes.append("stopped after the first failure: the lanes were not run")
            lanes = ()
        files = _files_of(run.tests, run.options)
        for one in lanes:
            captures = [path for path in new if files.get(path.name.partition("-")[0]) == one.file]
            results += _results(replace(run, settings=settings), one, captures, kept, before)
    return replace(
        report,
        results=tuple(results),
        notes=tuple(notes),
        tool=report.tool or f"mcptest {__version__}",
        trials=run.options.trials,
        interrupted=run.stop.is_set(),
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _results(
    run: WantedRun,
    lanes: Lanes,
    captures: Sequence[Path],
    kept: bool,
    before: Mapping[str, Scorecard | None],
) -> list[TestResult]:
    results: list[TestResult] = []
    settings, stop = run.settings, run.stop
    choice = settings.choice if kept else replace(settings.choice, captures=None)
    tests = replace(settings, choice=choice, should_stop=stop.is_set)
    how = LaneSettings(tests, before, repeat=lambda file: _repeat(run.arguments, file))
    if lanes.invariants is not None and not stop.is_set():
        limit = settings.timeout
        results += run_invariants_lane(lanes.invariants, captures, kept=kept, limit=limit)
    if lanes.compliance is not None and not stop.is_set():
        with live_progress(run.arguments, 0) as progress:
            results += run_compliance_lane(lanes, how, JudgingProgress(progress))
    if lanes.properties is not None and not stop.is_set():
        results += run_properties_lane(lanes, how)
    return results


def _repeat(arguments: argparse.Namespace, file: str) -> str:
    words = ["mcptest", "compliance", "run", "--from-suite", file]
    if arguments.server:
        words += ["--server", arguments.server]
    elif arguments.server_command:
        words += ["--server", as_one_word(arguments.server_command)]
    return repeat_line(words, arguments)


def _written(folder: Path | None) -> dict[Path, int]:
    if folder is None:
        return {}
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*.jsonl"))}


def _files_of(tests: Sequence[Test], options: RunOptions) -> dict[str, str]:
    """The file of each test by the number that its capture has."""
    times = options.trials * max(1, len(options.languages))
    return {
        f"{place * times + repeated + 1:04d}": test.place.file
        for place, test in enumerate(tests)
        for repeated in range(times)
    }
