"""`mcptest compliance`: judge servers and captures by the specification, and list the rules."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from mcptest.commands.options import (
    add_allow_tool,
    add_common_options,
    add_file_options,
    add_format_option,
    add_json,
    add_map,
    add_max_time,
    add_no_color,
    add_report_files,
    add_save_capture,
    add_server_options,
    add_strict,
    add_strict_option,
    as_path,
)

_FORMATS = ("text", "json", "markdown", "md", "html", "agent", "tap")
_FILES = ("json_file", "markdown", "html", "junit")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    configure_run(commands.add_parser("run", help="judge and grade a live server"))
    _configure_invariants(commands.add_parser("invariants", help="judge captures, offline"))
    _configure_rules(commands.add_parser("rules", help="list the rules"))
    _configure_diff(commands.add_parser("diff", help="show what changes between two revisions"))


def configure_run(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = parser.add_argument_group("selection").add_argument
    add(
        "--from-suite",
        type=as_path,
        metavar="FILE",
        help="judge as the compliance block of this suite says",
    )
    _add_rule(add)
    add_allow_tool(add)
    add_map(add)
    _add_registry(add)
    add = parser.add_argument_group("execution").add_argument
    add_max_time(add)
    add_save_capture(add)
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_strict(add)
    add("--min-grade", metavar="A-", help="fail below this grade")
    add("--baseline", type=as_path, metavar="FILE", help="known failures, with reasons")
    add("--update-baseline", action="store_true", help="write the current failures to --baseline")
    add = parser.add_argument_group("reports").add_argument
    add_format_option(add, _FORMATS)
    add_json(add)
    add_report_files(add, _FILES)
    add_file_options(add)
    add("--save-scorecard", type=as_path, metavar="FILE", help="write the grade, for grade_delta")
    add("--server-label", default="", metavar="NAME", help="name of the server in the scorecard")
    add_strict_option(add)
    add_common_options(parser)


def _configure_invariants(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add(
        "--capture",
        action="append",
        required=True,
        metavar="FILE",
        help="capture to judge (repeatable)",
    )
    add("--separate-transports", action="store_true", help="each session had its own transport")
    add("--spec-version", metavar="REV", help="judge by this revision (default: the one spoken)")
    _add_rule(add)
    add = parser.add_argument_group("pass/fail criteria").add_argument
    add_strict(add)
    add = parser.add_argument_group("reports").add_argument
    add_format_option(add)
    add_json(add)
    add_report_files(add, ("json_file",))
    add_strict_option(add)
    add = parser.add_argument_group("messages").add_argument
    add("--verbose", action="store_true", help="list rules that were not observed, with reasons")
    add_no_color(add)
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("--spec-version", metavar="REV", help="list only rules of this revision")
    add("--side", choices=("server", "client"), help="list only rules that judge this side")
    _add_listing(parser, ("text", "json"))


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("selection").add_argument
    add("older", metavar="FROM", help="revision to move from")
    add("newer", metavar="TO", help="revision to move to")
    add("--rules-from", metavar="SUITE", help="show which tests of its compliance block change")
    _add_registry(add)
    _add_listing(parser, ("text", "json", "markdown"))


def _add_rule(add: Callable[..., Any]) -> None:
    add(
        "--rule",
        action="append",
        default=[],
        metavar="ID",
        help="judge only this rule (repeatable)",
    )


def _add_registry(add: Callable[..., Any]) -> None:
    add("--registry", metavar="FILE", help="use another registry.yml, with its corpora beside it")


def _add_listing(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    add = parser.add_argument_group("reports").add_argument
    add("--format", choices=formats, default="text", help="format on stdout (default: text)")
    add_json(add)
    add = parser.add_argument_group("messages").add_argument
    add_no_color(add)
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "run":
        from mcptest.commands.compliance.run import judge_live

        return judge_live(arguments)
    if arguments.action == "invariants":
        from mcptest.commands.compliance.captures import judge_captures

        return judge_captures(arguments)
    from mcptest.commands.compliance.rule_lists import list_rules, show_diff

    return list_rules(arguments) if arguments.action == "rules" else show_diff(arguments)
