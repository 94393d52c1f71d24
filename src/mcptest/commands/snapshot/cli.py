"""`mcptest snapshot`: the answers of a suite's tests as golden files, written and compared."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_run_options,
    add_servers_of_suites,
    add_suite_options,
)
from mcptest.suite.golden import BUILT_IN


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_servers_of_suites(parser)
    add = OptionGroup(parser, "golden files")
    add("--update", "write new and changed golden files")
    about = "regular expression (RE2) of text that differs in every run (repeatable)"
    add("--mask PATTERN", about)
    about = f"do not mask {', '.join(BUILT_IN)}, or all (repeatable)"
    add("--no-mask NAME", about, choices=(*BUILT_IN, "all"))
    add_run_options(parser)
    add = OptionGroup(parser, "reports")
    add.known("--json-file", "--junit", "--markdown", "--badge", "--html")
    add("--json", "print JSON only")
    add.known("--strict-reports")
    add_common_options(parser)
