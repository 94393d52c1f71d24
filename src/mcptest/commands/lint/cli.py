"""`mcptest lint`: can a model use what this server offers?"""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import add_common_options, add_server_options
from mcptest.commands.reporting import add_report_options
from mcptest.rules.lint.finding import OWN_PROFILE, PROFILES

THRESHOLDS = {
    "max_tools": "tools of a server (20)",
    "max_tokens": "tokens of all tools together (8000)",
    "max_tool_tokens": "tokens of one tool (1000)",
    "max_depth": "levels of an input schema (3)",
    "max_parameters": "parameters of a tool (12)",
    "min_description": "characters of a description, at least (20)",
    "max_description": "characters of a description (500)",
    "max_response_kb": "size of an answer, with --call-tools (100)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--profile",
        choices=PROFILES,
        default=OWN_PROFILE,
        help="mcp-assert: its codes with its severities; notes become errors and warnings",
    )
    add("--fix", action="store_true", help="show a concrete change for each finding")
    add = parser.add_argument_group("thresholds").add_argument
    for name, words in THRESHOLDS.items():
        add(f"--{name.replace('_', '-')}", type=int, metavar="N", help=words)
    add("--similarity", type=float, metavar="X", help="likeness of two descriptions (0.8)")
    add_server_options(parser, timeout="15s")
    add = parser.add_argument_group("what is tested").add_argument
    add("--tools", type=Path, metavar="FILE", help="a tools/list answer or a capture, no server")
    add("--select", action="append", default=[], metavar="CODES", help="only these codes")
    add("--ignore", action="append", default=[], metavar="CODES", help="not these codes")
    add("--skip-rules", dest="ignore", action="append", help=argparse.SUPPRESS)
    add("--call-tools", action="store_true", help="also call tools that only read: E301")
    add(
        "--detect-nondeterminism",
        action="store_true",
        help="also call tools that only read three times: W107",
    )
    add("--list", action="store_true", help="explain the codes, and lint nothing")
    add = parser.add_argument_group("what is good enough").add_argument
    add("--strict", action="store_true", help="fail on warnings, too")
    add("--threshold", type=int, metavar="N", help="fail on more than N errors and warnings")
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="lint", fixture=None)
