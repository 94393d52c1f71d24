"""`mcptest fleet`: judge and audit every server of a client configuration, into one report."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import USUAL_STARTUP, add_clean_env_option, add_common_options
from mcptest.commands.reporting import add_report_options

TIMEOUT, AUDIT_TIMEOUT = "30s", "15s"
"""As the commands that repeat a failure have them."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("config", nargs="?", type=Path, metavar="CONFIG", help="with mcpServers (.mcp.json)")
    add = parser.add_argument_group("the servers").add_argument
    add("--server", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add_clean_env_option(add, "a server")
    add("--spec-version", default="auto", metavar="REV", help="judge all by this revision")
    add(
        "--timeout",
        metavar="T",
        help=f"for each request ({TIMEOUT}, and {AUDIT_TIMEOUT} for each call of the audit)",
    )
    add(
        "--startup-timeout",
        metavar="T",
        help=f"for start and handshake (as --timeout, if that is given; else {USUAL_STARTUP})",
    )
    add("--server-timeout", default="5m", metavar="T", help="for all of one server (5m)")
    add = parser.add_argument_group("how it runs").add_argument
    add("--jobs", default="auto", metavar="N", help="servers at a time (auto: as many as pay off)")
    add("--scheduler", default="", metavar="ADDRESS", help="of a Dask cluster that does the work")
    add = parser.add_argument_group("what is good enough").add_argument
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add("--min-grade", default="", metavar="A-", help="fail below this grade")
    add("--min-score", type=int, metavar="N", help="fail below this audit score")
    add(
        "--prefixed",
        action="store_true",
        help="the client puts the server's name before each tool and prompt: equal names are fine",
    )
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fleet")
