"""`mcptest intercept`: sit between an agent and a server, then check what the agent did."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_common_options,
    add_listening_options,
    add_renamed,
    add_report_files,
    add_save_capture,
    add_server_group,
    add_strict,
    add_strict_option,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_group(parser)
    add = parser.add_argument_group("selection").add_argument
    add(
        "--trajectory",
        action="append",
        required=True,
        metavar="FILE",
        help="suite with trajectories, or a folder of them (repeatable)",
    )
    add_listening_options(parser)
    add = parser.add_argument_group("execution").add_argument
    add_renamed(
        add,
        "--timeout",
        "--max-time",
        default="0",
        metavar="T",
        help="end and fail a session that lasts longer (default: no limit)",
    )
    add_save_capture(add, "FILE")
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add("--no-invariants", action="store_true", help="check the trajectory only")
    add_strict(add)
    add = parser.add_argument_group("reports").add_argument
    add_report_files(add, ("json_file", "junit", "markdown", "html"))
    add_strict_option(add)
    add_common_options(parser)
