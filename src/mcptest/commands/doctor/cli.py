"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    FORMATS,
    add_allow_tool,
    add_common_options,
    add_max_time,
    add_server_options,
)
from mcptest.commands.reporting import add_report_options


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = parser.add_argument_group("selection").add_argument
    add("--to", required=True, metavar="REV", help="revision to move to")
    add(
        "--from",
        dest="older",
        default="auto",
        metavar="REV",
        help="revision to move from (default: the one the server speaks)",
    )
    add_allow_tool(add)
    add_max_time(parser.add_argument_group("execution").add_argument)
    add_report_options(parser, (*FORMATS, "markdown"))
    add_common_options(parser)
    parser.set_defaults(command_name="doctor")
