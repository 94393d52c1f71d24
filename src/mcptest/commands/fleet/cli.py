"""`mcptest fleet`: judge and audit every server of a client configuration, into one report."""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    OptionGroup,
    add_clean_env_option,
    add_common_options,
    add_report_options,
    add_talk_options,
    as_path,
)

TIMEOUT, AUDIT_TIMEOUT = "30s", "15s"
"""As the commands that repeat a failure have them."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "server")
    about = "client configuration with mcpServers (default: .mcp.json)"
    add("config CONFIG", about, nargs="?", type=as_path)
    add("--server NAME", "judge only this server (repeatable)")
    add_clean_env_option(add)
    add_talk_options(add, None, shown_timeout=f"{TIMEOUT}; {AUDIT_TIMEOUT} for audit calls")
    about = "time limit for everything about one server (default: 5m)"
    add("--server-timeout T", about, default="5m")
    add = OptionGroup(parser, "execution")
    add("--jobs N", "servers in parallel (default: auto)", default="auto")
    add("--scheduler ADDRESS", "Dask scheduler to run on", default="")
    add = OptionGroup(parser, "pass/fail criteria")
    add.known("--strict")
    add("--min-grade A-", "fail below this grade", default="")
    about = "fail below this audit score in percent (default: never)"
    add("--fail-under N", about, type=int, was="--min-score")
    about = "allow equal names: the client prefixes tools and prompts with the server name"
    add("--prefixed", about)
    add_report_options(parser)
    add_common_options(parser)
