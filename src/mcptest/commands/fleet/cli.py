"""`mcptest fleet`: judge and audit every server of a client configuration, into one report."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_clean_env_option,
    add_common_options,
    add_fail_under,
    add_jobs,
    add_strict,
    add_talk_options,
    as_path,
)
from mcptest.commands.reporting import add_report_options

TIMEOUT, AUDIT_TIMEOUT = "30s", "15s"
"""As the commands that repeat a failure have them."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("server").add_argument
    add(
        "config",
        nargs="?",
        type=as_path,
        metavar="CONFIG",
        help="client configuration with mcpServers (default: .mcp.json)",
    )
    add(
        "--server",
        action="append",
        default=[],
        metavar="NAME",
        help="judge only this server (repeatable)",
    )
    add_clean_env_option(add)
    add_talk_options(add, None, shown_timeout=f"{TIMEOUT}; {AUDIT_TIMEOUT} for audit calls")
    add(
        "--server-timeout",
        default="5m",
        metavar="T",
        help="time limit for everything about one server (default: 5m)",
    )
    add = parser.add_argument_group("execution").add_argument
    add_jobs(add, "servers")
    add("--scheduler", default="", metavar="ADDRESS", help="Dask scheduler to run on")
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_strict(add)
    add("--min-grade", default="", metavar="A-", help="fail below this grade")
    add_fail_under(add, "--min-score", "audit score in percent (default: never)")
    add(
        "--prefixed",
        action="store_true",
        help="allow equal names: the client prefixes tools and prompts with the server name",
    )
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fleet")
