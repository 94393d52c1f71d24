"""`mcptest compliance`: judge captures by the specification, and list the rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.compliance_options import configure_run
from mcptest.cli.unwritten import add_strict_option, code_with_reports, tell_unwritten
from mcptest.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from mcptest.report.verdicts_json import Report
    from mcptest.rules.composition import CompositionRule
    from mcptest.rules.declare import Rule
    from mcptest.rules.judge import JudgedSession


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    configure_run(commands.add_parser("run", help="judge a server"))
    _configure_invariants(commands.add_parser("invariants", help="judge captures"))
    _configure_rules(commands.add_parser("rules", help="list the rules"))
    _configure_diff(commands.add_parser("diff", help="what a move to a revision changes"))


def _configure_invariants(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--capture", action="append", required=True, metavar="FILE", help="may be given again")
    add("--format", choices=("text", "json"), default="text")
    add("--json", action="store_true", help="the same as --format json")
    add("--json-file", type=Path, metavar="FILE", help="write the JSON report there as well")
    add("--separate-transports", action="store_true", help="each session had its own transport")
    add("--spec-version", metavar="REV", help="judge by this revision")
    add("--rule", action="append", metavar="ID", help="only this rule; may be given again")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add_strict_option(add)
    add("--verbose", action="store_true", help="list what was not observed, with the reason")
    add("--no-color", action="store_true")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--format", choices=("text", "json"), default="text")
    add("--json", action="store_true", help="the same as --format json")
    add("--spec-version", metavar="REV", help="only rules that hold in this revision")
    add("--side", choices=("server", "client"), help="only rules that judge this side")
    add("--no-color", action="store_true")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("older", metavar="FROM", help="the revision that is left")
    add("newer", metavar="TO", help="the revision to go to")
    add("--format", choices=("text", "json", "markdown"), default="text")
    add("--json", action="store_true", help="the same as --format json")
    add("--rules-from", metavar="SUITE", help="say which tests of its compliance block it touches")
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--no-color", action="store_true")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "run":
        from mcptest.cli.compliance_run import judge_live

        return judge_live(arguments)
    if arguments.action == "rules":
        return _list_rules(arguments)
    if arguments.action == "diff":
        from mcptest.cli.compliance_diff import show_diff

        return show_diff(arguments)
    return _judge_captures(arguments)


def _judge_captures(arguments: argparse.Namespace) -> int:
    from mcptest.report.terminal import say_json
    from mcptest.report.verdicts_json import build_report, exit_code_for, report_as_json
    from mcptest.report.write import write_all
    from mcptest.rules.composition import compose

    sessions = _judged(arguments)
    hazards = compose(sessions, arguments.separate_transports)
    code = exit_code_for(sessions, hazards, arguments.strict)
    report = build_report(sessions, hazards, "compliance invariants", code)
    if arguments.json or arguments.format == "json":
        say_json(sys.stdout, report_as_json(report))
    else:
        _print_text(sessions, report, arguments)
    if code is ExitCode.NOTHING_MATCHED:
        sys.stderr.write("mcptest: nothing to judge: the capture exercised none of the rules\n")
    unwritten = write_all([(arguments.json_file, lambda: report_as_json(report))])
    tell_unwritten(arguments, unwritten)
    return code_with_reports(arguments, code, unwritten)


def _judged(arguments: argparse.Namespace) -> list[JudgedSession]:
    from mcptest.model.revision import parse_revision
    from mcptest.rules.judge import judge
    from mcptest.transport.capture_file import open_capture

    revision = parse_revision(arguments.spec_version) if arguments.spec_version else None
    rules = _chosen_rules(arguments.rule)
    return [
        judge(source, rules, revision)
        for path in arguments.capture
        for source in open_capture(path)
    ]


def _chosen_rules(names: list[str] | None) -> list[Rule]:
    from mcptest.rules.catalogue import all_rules, find_rule
    from mcptest.rules.declare import Rule

    if not names:
        return all_rules()
    chosen = [find_rule(name) for name in names]
    for rule in chosen:
        if not isinstance(rule, Rule):
            raise UsageError(
                f"{rule.id} is about several sessions together and is always looked at",
                hint="--rule takes rules that judge one session",
            )
    return [rule for rule in chosen if isinstance(rule, Rule)]


def _print_text(
    sessions: list[JudgedSession], report: Report, arguments: argparse.Namespace
) -> None:
    from mcptest.report.terminal import Style, say
    from mcptest.report.verdicts_text import verdict_lines

    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for line in verdict_lines(sessions, report.composition, style, arguments.verbose):
        say(sys.stdout, line + "\n")


def _list_rules(arguments: argparse.Namespace) -> int:
    from mcptest.model.revision import parse_revision
    from mcptest.report.corpus_rules import all_listed_rules
    from mcptest.report.rules_list import rules_as_json, rules_as_lines
    from mcptest.report.terminal import Style, say, say_json
    from mcptest.rules.composition import COMPOSITION_RULES

    revision = parse_revision(arguments.spec_version) if arguments.spec_version else None
    rules = all_listed_rules(revision, arguments.side)
    together: list[CompositionRule] = [] if arguments.side else list(COMPOSITION_RULES.values())
    if arguments.json or arguments.format == "json":
        say_json(sys.stdout, rules_as_json(rules, together, revision))
        return ExitCode.OK
    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for line in rules_as_lines(rules, together, revision, style):
        say(sys.stdout, line + "\n")
    return ExitCode.OK
