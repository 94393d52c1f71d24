"""`mcptest audit`: discover what a server offers, call what is safe, classify, score."""

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
    OptionGroup(parser, "selection").known("--tool", "--allow-tool", "--allow-writes")
    add = OptionGroup(parser, "execution")
    add.known("--docker", "--fixture")
    add("--no-verify", "skip the repeated calls that verify tool annotations")
    add.known("--max-time")
    add = OptionGroup(parser, "pass/fail criteria")
    about = "fail below this percentage of working items, and only then "
    about += "(default: fail on anything broken)"
    add("--fail-under N", about, type=int, was="--min-score")
    add = OptionGroup(parser, "output files")
    add("--output DIR", "write a starter test for each item")
    add.known("--overwrite")
    add_report_options(parser)
    add_common_options(parser)
