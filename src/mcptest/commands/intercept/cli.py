"""`mcptest intercept`: sit between an agent and a server, then check what the agent did."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_listening_options,
    add_report_files,
    add_server_group,
    add_strict_option,
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trajectory",
        action="append",
        required=True,
        metavar="FILE",
        help="a suite with trajectories, or a folder of them; may repeat",
    )
    add_server_group(parser).add_argument(
        "--timeout",
        default="0",
        metavar="T",
        help="end a session that lasts longer, which fails it (0: as long as it lasts)",
    )
    add_listening_options(parser)
    add = parser.add_argument_group("what is good enough").add_argument
    add("--no-invariants", action="store_true", help="check the trajectory only")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add = parser.add_argument_group("reports").add_argument
    add_report_files(add, ("json_file", "junit", "markdown"))
    add("--html", type=Path, metavar="FILE", help="one page; with --capture also of the wire")
    add_strict_option(add)
    add("--capture", type=Path, metavar="FILE", help="keep everything that went over the wire")
    add_common_options(parser)
