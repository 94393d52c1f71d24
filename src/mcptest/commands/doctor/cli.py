"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    FORMATS,
    OptionGroup,
    add_common_options,
    add_report_options,
    add_server_options,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = OptionGroup(parser, "selection")
    add("--to REV", "revision to move to", required=True)
    about = "revision to move from (default: the one the server speaks)"
    add("--from REV", about, dest="older", default="auto")
    add.known("--allow-tool")
    OptionGroup(parser, "execution").known("--max-time")
    add_report_options(parser, (*FORMATS, "markdown"))
    add_common_options(parser)
