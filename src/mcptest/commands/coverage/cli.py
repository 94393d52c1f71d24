"""`mcptest coverage`: which tools, prompts and resources of a live server a suite asserts on."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_common_options,
    add_fail_under,
    add_fixture_option,
    add_server_options,
    as_path,
)
from mcptest.commands.reporting import add_report_options
from mcptest.commands.suite_options import add_paths

KINDS = ("tools", "prompts", "resources", "templates")


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, is_argument=False)
    add = parser.add_argument_group("selection").add_argument
    add_paths(add)
    add(
        "--of",
        default=",".join(KINDS),
        metavar="LIST",
        help=f"kinds to count (default: {','.join(KINDS)})",
    )
    add = parser.add_argument_group("execution").add_argument
    add_fixture_option(add)
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_fail_under(add, "--threshold", "coverage in percent (default: never)", float)
    add_report_options(parser)
    parser.add_argument("--coverage-json", type=as_path, metavar="FILE", help=argparse.SUPPRESS)
    add_common_options(parser)
    parser.set_defaults(command_name="coverage")
