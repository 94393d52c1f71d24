"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_max_time, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.commands.server_options import add_fixture_option


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("what is tested").add_argument
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add("--input", metavar="JSON", help="only this input, for the one --tool that is named")
    add("--include-writes", action="store_true", help="fuzz tools that may write, too")
    add = parser.add_argument_group("how it runs").add_argument
    add("--runs", type=int, default=50, metavar="N", help="inputs for each tool (50)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same inputs (random)")
    add("--jobs", default="auto", metavar="N", help="servers at a time (auto: as many as pay off)")
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(add)
    add_max_time(add)
    add = parser.add_argument_group("files that are written").add_argument
    add("--output", type=Path, metavar="DIR", help="save each failure as a test")
    add("--overwrite", action="store_true", help="replace saved failures that exist")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fuzz")
