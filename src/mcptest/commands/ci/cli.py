"""`mcptest ci`: `run` for continuous integration: gates, step summary, annotations."""

from __future__ import annotations

import argparse
import os
import sys

from msgspec.structs import replace

from mcptest.commands.options import is_for_a_program
from mcptest.commands.suite_command import run_suites
from mcptest.commands.suite_options import add_options_of_run
from mcptest.commands.suite_reports import RunEnding
from mcptest.core.errors import UsageError
from mcptest.core.results import Demand, RunReport
from mcptest.report import markdown
from mcptest.report.annotations import github
from mcptest.report.write import append_to_step_summary


def configure(parser: argparse.ArgumentParser) -> None:
    add_options_of_run(parser)
    parser.set_defaults(strict_reports=True)
    add = parser.add_argument_group("what is good enough").add_argument
    add("--threshold", type=int, default=100, metavar="N", help="lowest pass rate in percent (100)")
    add(
        "--fail-on-regression",
        action="store_true",
        help="fail when a test of --baseline passed and does not pass now",
    )


def run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.threshold <= 100:
        raise UsageError("--threshold is a percentage: a number from 0 to 100")
    if arguments.fail_on_regression and arguments.baseline is None:
        raise UsageError("--fail-on-regression requires --baseline")
    asks = arguments.threshold != 100 or arguments.baseline is not None
    ending = RunEnding(
        # What was asked for, so that each report tells the verdict of the command.
        demand=Demand(arguments.threshold, arguments.fail_on_regression) if asks else None,
        also_write=lambda report: append_to_step_summary(markdown.render(report)),
        explain=lambda report: _explain(arguments, report),
    )
    return run_suites(arguments, ending=ending)


def _explain(arguments: argparse.Namespace, report: RunReport) -> None:
    """Annotations, and why it is not good enough."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # A CI system reads both streams; stdout stays pure when it is for a program.
        stream = sys.stderr if is_for_a_program(arguments) else sys.stdout
        stream.write("".join(f"{line}\n" for line in github(report)))
    if replace(report, regressions=()).falls_short:
        rate = report.passed * 100 // (report.passed + report.failed)
        sys.stderr.write(f"mcptest: pass rate {rate}% is below threshold {arguments.threshold}%\n")
    if report.regressions and arguments.fail_on_regression:
        sys.stderr.write(f"mcptest: {len(report.regressions)} regression(s) detected\n")
