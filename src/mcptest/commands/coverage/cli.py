"""`mcptest coverage`: which tools, prompts and resources of a live server a suite asserts on."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    HIDDEN,
    OptionGroup,
    add_common_options,
    add_paths,
    add_report_options,
    add_server_options,
)

KINDS = "tools,prompts,resources,templates"


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, is_argument=False)
    add = OptionGroup(parser, "selection")
    add_paths(add)
    add("--of LIST", f"kinds to count (default: {KINDS})", default=KINDS)
    OptionGroup(parser, "execution").known("--fixture")
    add = OptionGroup(parser, "pass/fail criteria")
    about = "fail below this coverage in percent (default: never)"
    add("--fail-under N", about, type=float, was="--threshold")
    add_report_options(parser)
    OptionGroup(parser)("--coverage-json FILE", HIDDEN)
    add_common_options(parser)
