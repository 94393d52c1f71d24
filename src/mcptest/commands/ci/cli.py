"""`mcptest ci`: `run` in CI mode: gates, step summary, annotations."""

from __future__ import annotations

import argparse
import os
import sys

from msgspec.structs import replace

from mcptest.commands.options import OptionGroup, add_options_of_run, check_share, is_for_a_program
from mcptest.commands.reporting import RunEnding
from mcptest.commands.suite_command import run_suites
from mcptest.core.errors import UsageError
from mcptest.core.results import Demand, RunReport
from mcptest.report import markdown
from mcptest.report.annotations import github
from mcptest.report.write import append_to_step_summary


def configure(parser: argparse.ArgumentParser) -> None:
    add_options_of_run(parser)
    parser.set_defaults(strict_reports=True)
    add = OptionGroup(parser, "pass/fail criteria")
    about = "fail below this pass rate in percent (default: 100)"
    add("--fail-under N", about, type=int, default=100, was="--threshold")
    add("--fail-on-regression", "fail if a test that passed in --baseline no longer passes")


def run(arguments: argparse.Namespace) -> int:
    check_share(arguments.fail_under)
    if arguments.fail_on_regression and arguments.baseline is None:
        raise UsageError("--fail-on-regression requires --baseline")
    asks = arguments.fail_under != 100 or arguments.baseline is not None
    ending = RunEnding(
        # What was asked for, so that each report tells the verdict of the command.
        demand=Demand(arguments.fail_under, arguments.fail_on_regression) if asks else None,
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
        sys.stderr.write(
            f"mcptest: pass rate {rate}% is below --fail-under {arguments.fail_under}%\n"
        )
    if report.regressions and arguments.fail_on_regression:
        sys.stderr.write(f"mcptest: {len(report.regressions)} regression(s) detected\n")
