"""`mcptest snapshot`: the answers of a suite's tests as golden files, written and compared."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_common_options, add_report_files, add_strict_option
from mcptest.commands.suite_options import add_run_options, add_server_options, add_suite_options
from mcptest.suite.golden import BUILT_IN

REPORTS = ("json_file", "junit", "markdown", "badge", "html")


_DESCRIPTION = """\
Golden answers: keep what each test is answered, and see what has changed
since. The answer is held against .snapshots/NAME.snap beside the suite; what
the test expects of it is the business of `mcptest run`. Timestamps, UUIDs,
random ids, durations and the place of the fixture stand in golden files as
<timestamp>, <uuid>, <id>, <duration> and <fixture>. Golden files of tests
that did not run are never touched. A .snapshots.json of mcp-assert is read as
it is.
"""
_EPILOG = """\
examples:
  mcptest snapshot --suite evals --server "npx -y my-server" --update
  mcptest snapshot --suite evals --server "npx -y my-server"
  mcptest snapshot evals --update --mask "build (?P<build>[0-9a-f]+)"
  mcptest snapshot evals -k "read and not slow" --junit snapshots.xml

exit codes:
  0    all match, or were written
  1    something is changed, new or missing, or a server gave no answer
  2    could not start
  4    nothing was compared
  130  interrupted

see also: mcptest run, mcptest init, docs/commands/snapshot.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_suite_options(parser)
    add_server_options(parser)
    group = parser.add_argument_group("golden files")
    group.add_argument("--update", action="store_true", help="write what is new or has changed")
    group.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="PATTERN",
        help="what differs in every run (RE2); an update remembers it. May repeat",
    )
    group.add_argument(
        "--no-mask",
        action="append",
        default=[],
        choices=(*BUILT_IN, "all"),
        metavar="NAME",
        help=f"write these as they are: {', '.join(BUILT_IN)}, or all. May repeat",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports")
    add_report_files(reports.add_argument, REPORTS)
    reports.add_argument("--json", action="store_true", help="results as JSON on stdout, alone")
    add_strict_option(reports.add_argument)
    add_common_options(parser)
