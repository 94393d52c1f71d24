"""`mcptest compliance`: judge servers and captures by the specification, and list the rules."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_file_options,
    add_format_option,
    add_max_time,
    add_report_files,
    add_server_options,
    add_strict_option,
)

_FORMATS = ("text", "json", "markdown", "md", "html", "agent", "tap")
_FILES = ("json_file", "markdown", "html", "junit")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    configure_run(commands.add_parser("run", help="judge a server"))
    _configure_invariants(commands.add_parser("invariants", help="judge captures"))
    _configure_rules(commands.add_parser("rules", help="list the rules"))
    _configure_diff(commands.add_parser("diff", help="what a move to a revision changes"))


def configure_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from-suite", type=Path, metavar="FILE", help="judge as the compliance block of it says"
    )
    add_server_options(parser)
    add_max_time(parser.add_argument)
    add = parser.add_argument_group("what is judged").add_argument
    add("--rule", action="append", default=[], metavar="ID", help="only this rule; may repeat")
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, although it does not say that it only reads; may repeat",
    )
    add(
        "--fixture",
        action="append",
        default=[],
        metavar="NAME=TOOL",
        help="which tool, prompt or resource of the server is this fixture; may repeat",
    )
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--capture", type=Path, metavar="DIR", help="keep what went over the wire")
    add = parser.add_argument_group("what is good enough").add_argument
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add("--min-grade", metavar="A-", help="fail below this grade")
    add("--baseline", type=Path, metavar="FILE", help="rules that are known to fail, with reasons")
    add("--update-baseline", action="store_true", help="write what fails now into --baseline")
    add = parser.add_argument_group("reports").add_argument
    add_format_option(add, _FORMATS)
    add("--json", action="store_true", help="the same as --format json")
    add_report_files(add, _FILES)
    add_file_options(add)
    add("--save-scorecard", type=Path, metavar="FILE", help="keep the grade, for grade_delta")
    add("--server-label", default="", metavar="S", help="what the scorecard calls the server")
    add_strict_option(add)
    add_common_options(parser)


def _configure_invariants(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what is judged").add_argument
    add("--capture", action="append", required=True, metavar="FILE", help="a capture; may repeat")
    add("--separate-transports", action="store_true", help="each session had its own transport")
    add("--spec-version", metavar="REV", help="judge by this revision")
    add("--rule", action="append", metavar="ID", help="only this rule; may repeat")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add = parser.add_argument_group("reports").add_argument
    add_format_option(add)
    add("--json", action="store_true", help="the same as --format json")
    add("--json-file", type=Path, metavar="FILE", help="write the JSON report there as well")
    add_strict_option(add)
    add("--verbose", action="store_true", help="list what was not observed, with the reason")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--format", choices=("text", "json"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--spec-version", metavar="REV", help="only rules that hold in this revision")
    add("--side", choices=("server", "client"), help="only rules that judge this side")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("older", metavar="FROM", help="the revision that is left")
    add("newer", metavar="TO", help="the revision to go to")
    add("--format", choices=("text", "json", "markdown"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--rules-from", metavar="SUITE", help="say which tests of its compliance block it touches")
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--no-color", action="store_true", help="plain text")
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
