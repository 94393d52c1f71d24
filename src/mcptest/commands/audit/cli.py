"""`mcptest audit`: discover what a server offers, call what is safe, classify, score."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_max_time, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.commands.server_options import add_fixture_option


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("what is tested").add_argument
    add("--include-writes", action="store_true", help="call tools that may write, too")
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add = parser.add_argument_group("how it runs").add_argument
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(add)
    add("--no-verify", action="store_true", help="don't call tools again to verify their hints")
    add_max_time(add)
    add = parser.add_argument_group("what is good enough").add_argument
    add(
        "--min-score",
        type=int,
        metavar="N",
        help="fail below this share of items that work, in percent, and only then; "
        "without it anything that is broken fails",
    )
    add = parser.add_argument_group("files that are written").add_argument
    add("--output", type=Path, metavar="DIR", help="write a starter test for each item")
    add("--overwrite", action="store_true", help="replace starter tests that exist")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="audit")
