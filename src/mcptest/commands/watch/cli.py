"""`mcptest watch`: rerun what changed, and show what flipped."""

from __future__ import annotations

import argparse

from mcptest.commands.options import add_common_options, add_report_files, add_strict_option
from mcptest.commands.suite_options import add_run_options, add_server_options, add_suite_options

REPORTS = ("json_file", "junit", "markdown", "badge")


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_server_options(parser)
    group = parser.add_argument_group("watching")
    group.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PATH",
        help="file or folder of the server; a change runs every test (repeatable)",
    )
    group.add_argument(
        "--interval",
        metavar="T",
        help="poll for changes this often, for network drives (default: file events)",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports")
    add_report_files(reports.add_argument, REPORTS)
    add_strict_option(reports.add_argument)
    parser.set_defaults(json=False, baseline=None, save_baseline=None)
    add_common_options(parser)
