"""`mcptest snapshot`: the answers of a suite's tests as golden files, written and compared."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_common_options, add_report_files, add_strict_option
from mcptest.commands.suite_options import add_run_options, add_server_options, add_suite_options
from mcptest.suite.golden import BUILT_IN

REPORTS = ("json_file", "junit", "markdown", "badge", "html")


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_server_options(parser)
    add = parser.add_argument_group("golden files").add_argument
    add("--update", action="store_true", help="write new and changed golden files")
    add(
        "--mask",
        action="append",
        default=[],
        metavar="PATTERN",
        help="regular expression (RE2) of text that differs in every run (repeatable)",
    )
    add(
        "--no-mask",
        action="append",
        default=[],
        choices=(*BUILT_IN, "all"),
        metavar="NAME",
        help=f"do not mask {', '.join(BUILT_IN)}, or all (repeatable)",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports")
    add_report_files(reports.add_argument, REPORTS)
    reports.add_argument("--json", action="store_true", help="print JSON only")
    add_strict_option(reports.add_argument)
    add_common_options(parser)
