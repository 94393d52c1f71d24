"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_max_time,
    add_server_options,
    add_strict_option,
)
from mcptest.commands.reporting import add_html_option


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--to", required=True, metavar="REV", help="the revision to move to")
    add(
        "--from",
        dest="older",
        default="auto",
        metavar="REV",
        help="where it comes from: auto (default) is what the server speaks today",
    )
    add_server_options(parser)
    add = parser.add_argument_group("how it runs").add_argument
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, though it does not say that it only reads; may repeat",
    )
    add_max_time(add)
    add = parser.add_argument_group("reports").add_argument
    add("--format", choices=("text", "json", "markdown"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    add("--markdown", type=Path, metavar="FILE", help="the Markdown as well")
    add("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add_html_option(add)
    add_strict_option(add)
    add("--capture", type=Path, metavar="DIR", help="keep everything that went over the wire")
    add_common_options(parser)
