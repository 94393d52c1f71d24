"""`mcptest watch`: rerun what changed, and show what flipped."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_run_options,
    add_servers_of_suites,
    add_suite_options,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_servers_of_suites(parser)
    add = OptionGroup(parser, "watching")
    about = "file or folder of the server; a change runs every test (repeatable)"
    add("--also PATH", about)
    about = "poll for changes this often, for network drives (default: file events)"
    add("--interval T", about)
    add_run_options(parser)
    add = OptionGroup(parser, "reports")
    add.known("--json-file", "--junit", "--markdown", "--badge", "--strict-reports")
    parser.set_defaults(json=False, baseline=None, save_baseline=None)
    add_common_options(parser)
