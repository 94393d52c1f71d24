"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_report_options,
    add_server_options,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = OptionGroup(parser, "selection")
    add.known("--tool")
    add("--input JSON", "send only this input, to the one --tool")
    add.known("--allow-tool", "--allow-writes")
    add = OptionGroup(parser, "execution")
    add("--runs N", "inputs for each tool (default: 50)", type=int, default=50)
    add("--seed N", "seed for reproducible inputs (default: random)", type=int)
    add("--jobs N", "servers in parallel (default: auto)", default="auto")
    add.known("--docker", "--fixture", "--max-time")
    add = OptionGroup(parser, "output files")
    add("--output DIR", "write a test for each failure")
    add.known("--overwrite")
    add_report_options(parser)
    add_common_options(parser)
