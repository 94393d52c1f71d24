"""How a run of suites ends: its reports, the text on the terminal, and the exit code."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.reporting import in_shard, tell_written, write_files
from mcptest.commands.suite_command import WantedRun, nothing_matched
from mcptest.core.errors import ExitCode
from mcptest.core.results import Demand, RunReport, Suggestion
from mcptest.core.safe_text import show
from mcptest.report.baseline import Baseline, saved_baseline, with_regressions
from mcptest.report.head import code_of
from mcptest.report.run_results import in_short, mcp_assert_json, render, render_suggestions
from mcptest.report.terminal import Style, columns, say_json
from mcptest.report.write import rendered, write_all

Renderer: TypeAlias = Callable[[RunReport, Style], str]
_REASONS = 3


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
    run: WantedRun,
    report: RunReport,
    baseline: Baseline | None,
    ending: RunEnding | None,
    *,
    has_problems: bool,
) -> int:
    """Write and print the reports; gives the exit code. `has_problems`: the suites, as written."""
    arguments, ending = run.arguments, ending or RunEnding()
    report = replace(report, demand=ending.demand)
    suggested: list[Suggestion] = []
    if arguments.fix and not report.interrupted:
        from mcptest.probe.suites.position_fix import find_positions

        suggested += find_positions(run.tests, report, run.settings, run.stop.is_set)
    chosen = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    partial = bool(chosen or arguments.fail_fast)  # what is missing is not stale
    report = with_regressions(in_shard(arguments, report), baseline, partial=partial)
    unwritten = write_files(arguments, report)
    kept = arguments.save_baseline
    amends = kept if partial or report.interrupted else None
    saved = [(kept, lambda: saved_baseline(report, baseline, amends))]
    unwritten += write_all(saved, arguments.written)
    unwritten += ending.also_write(report)
    for sentence in unwritten:
        sys.stderr.write(f"mcptest: {sentence}\n")
    report = replace(report, notes=(*report.notes, *unwritten))
    not_whole = has_problems or bool(unwritten and arguments.strict_reports)
    _say(arguments, report, ending, failed=report.falls_short or not_whole)
    if arguments.fix:
        # On stderr when stdout is for a program.
        stream = sys.stdout if arguments.format == "text" and not arguments.json else sys.stderr
        stream.write(render_suggestions(suggested))
    if report.results:
        tell_written(arguments)
    ending.explain(report)
    if run.stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if report.falls_short or (report.results and not_whole):
        return ExitCode.FAILED
    if report.passed or report.failed:
        return ExitCode.OK
    return nothing_matched(_why_nothing_ran(report)) if report.results else nothing_matched()


def _say(
    arguments: argparse.Namespace, report: RunReport, ending: RunEnding, *, failed: bool
) -> None:
    if arguments.json:
        sys.stdout.buffer.write(mcp_assert_json(report))
    elif arguments.format != "text":
        seen = bool(report.passed or report.failed)
        code = code_of(seen, failed=failed, interrupted=report.interrupted)
        say_json(sys.stdout, rendered(arguments.format, report, code=code))
    elif report.results:
        how = {"verbose": arguments.verbose, "width": columns()}
        style = Style.of(sys.stdout, no_color=arguments.no_color, **how)
        if arguments.quiet:
            text = in_short(report, style)
        elif ending.as_text is not None:
            text = ending.as_text(report, style)
        else:
            text = render(report, style, all_failures=arguments.all_failures)
        sys.stdout.write(text)
    sys.stdout.flush()


def _why_nothing_ran(report: RunReport) -> str:
    details = (one.detail.removeprefix("skipped: ") for one in report.results)
    reasons = Counter(detail or "skip: true" for detail in details)
    shown = [f"{show(reason, 120)} ({count})" for reason, count in reasons.most_common(_REASONS)]
    more = ["…"] if len(reasons) > _REASONS else []
    why = ", ".join([*shown, *more])
    return f"nothing was run: all {report.skipped} tests were skipped: {why}"
