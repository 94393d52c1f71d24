"""`mcptest ci`: `run` with the manners of continuous integration."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

from mcptest.cli import run as suite_run
from mcptest.cli.options import is_for_a_program
from mcptest.model.errors import UsageError
from mcptest.model.results import Demand, RunReport
from mcptest.report import markdown
from mcptest.report.annotations import github
from mcptest.report.write import append_to_step_summary
from mcptest.run.interrupt import stopping_on_signals


def configure(parser: argparse.ArgumentParser) -> None:
    suite_run.configure(parser)
    parser.set_defaults(strict_reports=True)
    group = parser.add_argument_group("what is good enough")
    group.add_argument(
        "--threshold", type=int, default=100, metavar="N", help="lowest pass rate in percent (100)"
    )
    group.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="fail when a test of --baseline passed and does not pass now",
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    loaded, tests = suite_run.chosen_tests(arguments)
    lanes = suite_run.chosen_lanes(arguments, loaded)
    if arguments.list:
        return suite_run.show_list(tests, lanes, as_data=arguments.json)
    stored = suite_run.baseline_of(arguments)
    settings, options = suite_run.settings_of(arguments, loaded), suite_run.run_options(arguments)
    with stopping_on_signals() as stop:
        report = suite_run.carry_out(arguments, tests, settings, options, stop, lanes)
        report = msgspec.structs.replace(report, demand=_demand(arguments))
        suggested = suite_run.suggestions(arguments, tests, report, settings, stop)
        report, unwritten = suite_run.publish(
            arguments,
            report,
            stored,
            elsewhere=lambda done: append_to_step_summary(markdown.render(done)),
            fails=lambda done: done.falls_short or bool(loaded.problems),
        )
        suite_run.tell_suggestions(arguments, suggested)
        _annotate(arguments, report)
    return suite_run.exit_code(
        loaded,
        report,
        interrupted=stop.is_set(),
        failed=_is_below(arguments.threshold, report) | _has_regressed(arguments, report),
        unwritten=unwritten,
    )


def _check(arguments: argparse.Namespace) -> None:
    if not 0 <= arguments.threshold <= 100:
        raise UsageError("--threshold is a percentage: a number from 0 to 100")
    if arguments.fail_on_regression and arguments.baseline is None:
        raise UsageError("--fail-on-regression requires --baseline")


def _demand(arguments: argparse.Namespace) -> Demand | None:
    """What was asked for, so that each report tells the verdict of the command."""
    if arguments.threshold == 100 and arguments.baseline is None:
        return None
    return Demand(arguments.threshold, arguments.fail_on_regression)


def _is_below(threshold: int, report: RunReport) -> bool:
    if not msgspec.structs.replace(report, regressions=()).falls_short:
        return False
    rate = report.passed * 100 // (report.passed + report.failed)
    sys.stderr.write(f"mcptest: pass rate {rate}% is below threshold {threshold}%\n")
    return True


def _has_regressed(arguments: argparse.Namespace, report: RunReport) -> bool:
    if not report.regressions or not arguments.fail_on_regression:
        return False
    sys.stderr.write(f"mcptest: {len(report.regressions)} regression(s) detected\n")
    return True


def _annotate(arguments: argparse.Namespace, report: RunReport) -> None:
    """A CI system reads both streams; stdout stays pure when it is for a program."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    stream = sys.stderr if is_for_a_program(arguments) else sys.stdout
    stream.write("".join(f"{line}\n" for line in github(report)))
