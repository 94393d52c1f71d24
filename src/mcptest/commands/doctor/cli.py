"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse

from mcptest.commands.options import FORMATS, add_common_options, add_max_time, add_server_options
from mcptest.commands.reporting import add_report_options


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--to", required=True, metavar="REV", help="the revision to move to")
    add(
        "--from",
        dest="older",
        default="auto",
        metavar="REV",
        help="where it comes from: auto (default) is what the server speaks today",
    )
    add_server_options(parser)
    add = parser.add_argument_group("how it runs").add_argument
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, though it does not say that it only reads; may repeat",
    )
    add_max_time(add)
    add_report_options(parser, (*FORMATS, "markdown"))
    add_common_options(parser)
    parser.set_defaults(command_name="doctor")
