"""`mcptest coverage`: which tools, prompts and resources of a live server a suite asserts on."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.commands.server_options import add_fixture_option

KINDS = ("tools", "prompts", "resources", "templates")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="suites, as files or folders")
    add_fixture_option(add_server_options(parser).add_argument)
    add = parser.add_argument_group("what is tested").add_argument
    add("--suite", action="append", default=[], metavar="PATH", help="a suite; may repeat")
    add(
        "--of",
        default=",".join(KINDS),
        metavar="LIST",
        help=f"what counts: {','.join(KINDS)} (default: all)",
    )
    add = parser.add_argument_group("what is good enough").add_argument
    add("--threshold", type=float, metavar="N", help="fail below this share, in percent")
    add_report_options(parser)
    parser.add_argument("--coverage-json", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    add_common_options(parser)
    parser.set_defaults(command_name="coverage")
