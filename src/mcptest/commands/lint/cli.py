"""`mcptest lint`: can a model use what this server offers?"""

from __future__ import annotations

import argparse

from mcptest.commands.options import (
    HIDDEN,
    OptionGroup,
    add_common_options,
    add_report_options,
    add_server_options,
)
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
    add = OptionGroup(parser, "selection")
    add("--tools FILE", "lint a tools/list result or a capture")
    add.known("--tool")
    add("--select CODES", "check only these codes", action="append", default=[])
    add("--ignore CODES", "skip these codes", action="append", default=[])
    add("--skip-rules CODES", HIDDEN, dest="ignore", action="append")
    about = f"codes and severities to use (default: {OWN_PROFILE})"
    add("--profile", about, choices=PROFILES, default=OWN_PROFILE)
    add("--call-tools", "call tools marked readOnlyHint, for E301")
    about = "call tools marked readOnlyHint three times, for W107"
    add("--detect-nondeterminism", about)
    add("--list", "list the codes, and lint nothing")
    add = OptionGroup(parser, "pass/fail criteria")
    add("--strict", "fail on warnings, too")
    about = "fail on more than N errors and warnings (default: any error)"
    add("--max-findings N", about, type=int, was="--threshold")
    for name, about in THRESHOLDS.items():
        add(f"--{name.replace('_', '-')} N", about, type=int)
    add("--similarity X", "largest similarity of two descriptions (default: 0.8)", type=float)
    add_report_options(parser)
    OptionGroup(parser, "messages")("--fix", "show a concrete change for each finding")
    add_common_options(parser)
    parser.set_defaults(fixture=None)
