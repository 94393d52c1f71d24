"""`mcptest lint`: can a model use what this server offers?"""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    add_common_options,
    add_renamed,
    add_server_options,
    add_tool,
    as_path,
)
from mcptest.commands.reporting import add_report_options
from mcptest.rules.lint.finding import OWN_PROFILE, PROFILES

THRESHOLDS = {
    "max_tools": "most tools of a server (default: 20)",
    "max_tokens": "most tokens of all tools together (default: 8000)",
    "max_tool_tokens": "most tokens of one tool (default: 1000)",
    "max_depth": "most levels of an input schema (default: 3)",
    "max_parameters": "most parameters of a tool (default: 12)",
    "min_description": "fewest characters of a description (default: 20)",
    "max_description": "most characters of a description (default: 500)",
    "max_response_kb": "largest result in kB, with --call-tools (default: 100)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("selection").add_argument
    add("--tools", type=as_path, metavar="FILE", help="lint a tools/list result or a capture")
    add_tool(add)
    add("--select", action="append", default=[], metavar="CODES", help="check only these codes")
    add("--ignore", action="append", default=[], metavar="CODES", help="skip these codes")
    add("--skip-rules", dest="ignore", action="append", help=argparse.SUPPRESS)
    add(
        "--profile",
        choices=PROFILES,
        default=OWN_PROFILE,
        help=f"codes and severities to use (default: {OWN_PROFILE})",
    )
    add("--call-tools", action="store_true", help="call tools marked readOnlyHint, for E301")
    add(
        "--detect-nondeterminism",
        action="store_true",
        help="call tools marked readOnlyHint three times, for W107",
    )
    add("--list", action="store_true", help="list the codes, and lint nothing")
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add("--strict", action="store_true", help="fail on warnings, too")
    add_renamed(
        add,
        "--threshold",
        "--max-findings",
        type=int,
        metavar="N",
        help="fail on more than N errors and warnings (default: any error)",
    )
    for name, words in THRESHOLDS.items():
        add(f"--{name.replace('_', '-')}", type=int, metavar="N", help=words)
    add(
        "--similarity",
        type=float,
        metavar="X",
        help="largest similarity of two descriptions (default: 0.8)",
    )
    add_report_options(parser)
    add = parser.add_argument_group("messages").add_argument
    add("--fix", action="store_true", help="show a concrete change for each finding")
    add_common_options(parser)
    parser.set_defaults(command_name="lint", fixture=None)
