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

_DESCRIPTION = """\
Run suites in CI, with gates, a step summary and annotations. It takes
everything that `mcptest run` takes. It fails when the pass rate, passed / (passed +
failed), is below --threshold; a regression against --baseline is shown, and
fails only with --fail-on-regression; a report that can't be written fails;
and when all tests are skipped nothing was run, which is never green.

The Markdown report is appended to $GITHUB_STEP_SUMMARY, and under GitHub
Actions each failure becomes an annotation of the suite's line.
"""
_EPILOG = """\
examples:
  mcptest ci --suite evals/ --fixture evals/fixtures --junit results.xml
  mcptest ci evals/ --threshold 95 --baseline base.json --fail-on-regression
  mcptest ci evals/ --shard 1/4 --json-file shard-1.json

exit codes:
  0    good enough
  1    below the threshold, a regression, or a report that could not be
       written
  2    could not start
  4    nothing was run
  130  interrupted

see also: mcptest run, mcptest report, docs/reports.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_options_of_run(parser)
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
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
