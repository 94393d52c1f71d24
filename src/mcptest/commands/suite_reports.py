"""How a run of suites ends: its reports, the text on the terminal, and the exit code."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.reporting import in_shard, say_run
from mcptest.commands.suite_command import nothing_matched
from mcptest.core.errors import ExitCode
from mcptest.core.results import Demand, RunReport, Suggestion
from mcptest.core.safe_text import show
from mcptest.probe.suites.settings import Settings
from mcptest.report.run_results import in_short, mcp_assert_json, render, render_suggestions
from mcptest.report.terminal import Style, columns
from mcptest.report.write import FORMS, Wanted, with_regressions, write_reports
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Test
from mcptest.transport.interrupt import Stop

if TYPE_CHECKING:  # baselines are compared by few runs
    from mcptest.report.baseline import Baseline

Renderer: TypeAlias = Callable[[RunReport, Style, int], str]
_REASONS = 3


class FinishedRun(msgspec.Struct, frozen=True):
    """What was run, and what came of it."""

    loaded: LoadedSuite
    tests: Sequence[Test]
    settings: Settings
    stop: Stop
    report: RunReport
    baseline: Baseline | None = None


class RunEnding(msgspec.Struct, frozen=True):
    """What a command does in its own way when a run ends."""

    demand: Demand | None = None
    """None: everything has to pass."""
    as_text: Renderer | None = None
    """None: the results as `mcptest run` shows them."""
    also_write: Callable[[RunReport], list[str]] = lambda _report: []
    """Writes further reports, and says what it could not write."""
    explain: Callable[[RunReport], None] = lambda _report: None
    """Says more, when the reports are written."""


def conclude(
    arguments: argparse.Namespace, finished: FinishedRun, ending: RunEnding | None = None
) -> int:
    """Write and print the reports; gives the exit code."""
    ending = ending or RunEnding()
    report = replace(finished.report, demand=ending.demand)
    suggested: list[Suggestion] = []
    if arguments.fix and not report.interrupted:
        from mcptest.probe.suites.position_fix import find_positions

        suggested += find_positions(finished.tests, report, finished.settings, finished.stop.is_set)
    report, unwritten = _publish(arguments, finished, report, ending)
    if arguments.fix:
        # On stderr when stdout is for a program.
        stream = sys.stdout if arguments.format == "text" and not arguments.json else sys.stderr
        stream.write(render_suggestions(suggested))
    ending.explain(report)
    if finished.stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    not_whole = finished.loaded.problems or (unwritten and arguments.strict_reports)
    if report.falls_short or (report.results and not_whole):
        return ExitCode.FAILED
    if report.passed or report.failed:
        return ExitCode.OK
    return nothing_matched(_why_nothing_ran(report)) if report.results else nothing_matched()


def _publish(
    arguments: argparse.Namespace, finished: FinishedRun, report: RunReport, ending: RunEnding
) -> tuple[RunReport, bool]:
    """The flag says whether a report that was wanted is missing."""
    baseline, wanted = finished.baseline, wanted_reports(arguments)
    report = with_regressions(in_shard(arguments, report), baseline, wanted)
    unwritten = [*write_reports(report, baseline, wanted), *ending.also_write(report)]
    for sentence in unwritten:
        sys.stderr.write(f"mcptest: {sentence}\n")
    report = replace(report, notes=(*report.notes, *unwritten))
    if arguments.json:
        sys.stdout.buffer.write(mcp_assert_json(report))
    elif arguments.format != "text":
        failed = report.falls_short or bool(finished.loaded.problems)
        say_run(arguments, report, failed or bool(unwritten and arguments.strict_reports))
    elif report.results:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        if arguments.quiet:
            text = in_short(report, style)
        elif ending.as_text is not None:
            text = ending.as_text(report, style, columns())
        else:
            words = {"verbose": arguments.verbose, "all_failures": arguments.all_failures}
            text = render(report, style, **words, width=columns())
        sys.stdout.write(text)
    sys.stdout.flush()
    return report, bool(unwritten)


def wanted_reports(arguments: argparse.Namespace) -> Wanted:
    files = {name: path for name in FORMS if (path := getattr(arguments, name, None)) is not None}
    narrowed = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    return Wanted(
        files=files,
        baseline=arguments.baseline,
        save_baseline=arguments.save_baseline,
        partial=bool(narrowed or arguments.fail_fast),
    )


def _why_nothing_ran(report: RunReport) -> str:
    details = (one.detail.removeprefix("skipped: ") for one in report.results)
    reasons = Counter(detail or "skip: true" for detail in details)
    shown = [f"{show(reason, 120)} ({count})" for reason, count in reasons.most_common(_REASONS)]
    more = ["…"] if len(reasons) > _REASONS else []
    why = ", ".join([*shown, *more])
    return f"nothing was run: all {report.skipped} tests were skipped: {why}"
