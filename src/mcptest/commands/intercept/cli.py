"""`mcptest intercept`: sit between an agent and a server, then check what the agent did."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_common_options,
    add_listening_options,
    add_server_group,
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_group(parser)
    add = OptionGroup(parser, "selection")
    about = "suite with trajectories, or a folder of them (repeatable)"
    add("--trajectory FILE", about, required=True, type=str)
    add_listening_options(parser)
    add = OptionGroup(parser, "execution")
    about = "end and fail a session that lasts longer (default: no limit)"
    add("--max-time T", about, default="0", was="--timeout")
    add("--save-capture FILE", "write what went over the wire", was="--capture")
    add = OptionGroup(parser, "pass/fail criteria")
    add("--no-invariants", "check the trajectory only")
    add.known("--strict")
    add = OptionGroup(parser, "reports")
    add.known("--json-file", "--junit", "--markdown", "--html", "--strict-reports")
    add_common_options(parser)
