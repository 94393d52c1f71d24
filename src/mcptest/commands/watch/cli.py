"""`mcptest watch`: rerun what changed, and show what flipped."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_common_options, add_report_files, add_strict_option
from mcptest.commands.suite_options import add_run_options, add_server_options, add_suite_options

REPORTS = ("json_file", "junit", "markdown", "badge")


_DESCRIPTION = """\
Run suites again whenever something changes, and show which outcomes flipped.
Only what a change touches is run: a suite, a fixture, or with --also the
server's own files. A run in which nothing flips changes one line at the
bottom of the terminal.
"""
_EPILOG = """\
examples:
  mcptest watch --suite evals
  mcptest watch evals --also src --fixture evals/fixtures
  mcptest watch evals --server "node dist/index.js" --also dist

keys: a runs all tests, r what failed, q quits

exit codes:
  0    left with q, and all passed
  1    left with q, and not all passed
  2    could not start
  4    left with q, and there was no test
  130  interrupted

see also: mcptest run, docs/commands/watch.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_suite_options(parser)
    add_server_options(parser)
    group = parser.add_argument_group("what is watched beside the suites and the fixture")
    group.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PATH",
        help="files and folders of the server: a change there runs everything; may repeat",
    )
    group.add_argument(
        "--interval",
        metavar="T",
        help="look for changes this often instead of being told: for network drives",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports, after each run with all latest results")
    add_report_files(reports.add_argument, REPORTS)
    add_strict_option(reports.add_argument)
    parser.set_defaults(json=False, baseline=None, save_baseline=None)
    add_common_options(parser)
