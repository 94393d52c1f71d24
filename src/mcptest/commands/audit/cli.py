"""`mcptest audit`: discover what a server offers, call what is safe, classify, score."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_allow_tool,
    add_allow_writes,
    add_common_options,
    add_docker,
    add_fail_under,
    add_fixture_option,
    add_max_time,
    add_output,
    add_server_options,
    add_tool,
)
from mcptest.commands.reporting import add_report_options


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("selection").add_argument
    add_tool(add)
    add_allow_tool(add)
    add_allow_writes(add)
    add = parser.add_argument_group("execution").add_argument
    add_docker(add)
    add_fixture_option(add)
    add(
        "--no-verify",
        action="store_true",
        help="skip the repeated calls that verify tool annotations",
    )
    add_max_time(add)
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_fail_under(
        add,
        "--min-score",
        "percentage of working items, and only then (default: fail on anything broken)",
    )
    add = parser.add_argument_group("output files").add_argument
    add_output(add, "write a starter test for each item")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="audit")
