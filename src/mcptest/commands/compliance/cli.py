"""`mcptest compliance`: judge servers and captures by the specification, and list the rules."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mcptest.commands.options import (
    FORMS,
    HIDDEN,
    OptionGroup,
    add_common_options,
    add_format_option,
    add_server_options,
)

_FORMATS = ("text", "json", "markdown", "md", "html", "agent", "tap")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    configure_run(commands.add_parser("run", help="judge and grade a live server"))
    _configure_invariants(commands.add_parser("invariants", help="judge captures, offline"))
    _configure_rules(commands.add_parser("rules", help="list the rules"))
    _configure_diff(commands.add_parser("diff", help="show what changes between two revisions"))


def configure_run(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    add = OptionGroup(parser, "selection")
    add("--from-suite FILE", "judge as the compliance block of this suite says")
    _add_rule(add)
    add.known("--allow-tool", "--map")
    _add_registry(add)
    OptionGroup(parser, "execution").known("--max-time", "--save-capture")
    add = OptionGroup(parser, "pass/fail criteria")
    add.known("--strict")
    add("--min-grade A-", "fail below this grade")
    add("--baseline FILE", "known failures, with reasons")
    add("--update-baseline", "write the current failures to --baseline")
    add = OptionGroup(parser, "reports")
    add_format_option(add, _FORMATS)
    add.known("--json", "--json-file", "--markdown", "--html", "--junit", *FORMS)
    add("--save-scorecard FILE", "write the grade, for grade_delta")
    add("--server-label NAME", "name of the server in the scorecard", default="")
    add.known("--strict-reports")
    add_common_options(parser)


def _configure_invariants(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("--capture FILE", "capture to judge (repeatable)", required=True, type=str)
    add("--separate-transports", "each session had its own transport")
    add("--spec-version REV", "judge by this revision (default: the one spoken)")
    _add_rule(add)
    OptionGroup(parser, "pass/fail criteria").known("--strict")
    add = OptionGroup(parser, "reports")
    add_format_option(add)
    add.known("--json", "--json-file", "--strict-reports")
    add = OptionGroup(parser, "messages")
    add.known("--quiet")
    add("--verbose", "list rules that were not observed, with reasons")
    add.known("--no-color")
    add("--debug", HIDDEN)


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("--spec-version REV", "list only rules of this revision")
    add("--side", "list only rules that judge this side", choices=("server", "client"))
    _add_listing(parser, ("text", "json"))


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("older FROM", "revision to move from")
    add("newer TO", "revision to move to")
    add("--rules-from SUITE", "show which tests of its compliance block change")
    _add_registry(add)
    _add_listing(parser, ("text", "json", "markdown"))


def _add_rule(add: OptionGroup) -> None:
    add("--rule ID", "judge only this rule (repeatable)")


def _add_registry(add: OptionGroup) -> None:
    add("--registry FILE", "use another registry.yml, with its corpora beside it", type=str)


def _add_listing(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    add = OptionGroup(parser, "reports")
    add("--format", "format on stdout (default: text)", choices=formats, default="text")
    add.known("--json")
    add = OptionGroup(parser, "messages")
    add.known("--no-color")
    add("--debug", HIDDEN)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "run":
        from mcptest.commands.compliance.run import judge_live

        return judge_live(arguments)
    if arguments.action == "invariants":
        from mcptest.commands.compliance.captures import judge_captures

        return judge_captures(arguments)
    from mcptest.commands.compliance.rule_lists import list_rules, show_diff

    return list_rules(arguments) if arguments.action == "rules" else show_diff(arguments)
