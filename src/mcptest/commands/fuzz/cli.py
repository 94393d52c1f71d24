"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_allow_tool,
    add_allow_writes,
    add_common_options,
    add_docker,
    add_fixture_option,
    add_jobs,
    add_max_time,
    add_output,
    add_seed,
    add_server_options,
    add_tool,
)
from mcptest.commands.reporting import add_report_options


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("selection").add_argument
    add_tool(add)
    add("--input", metavar="JSON", help="send only this input, to the one --tool")
    add_allow_tool(add)
    add_allow_writes(add)
    add = parser.add_argument_group("execution").add_argument
    add("--runs", type=int, default=50, metavar="N", help="inputs for each tool (default: 50)")
    add_seed(add, "inputs")
    add_jobs(add, "servers")
    add_docker(add)
    add_fixture_option(add)
    add_max_time(add)
    add = parser.add_argument_group("output files").add_argument
    add_output(add, "write a test for each failure")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fuzz")
