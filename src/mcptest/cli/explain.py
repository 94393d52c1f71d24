"""`mcptest explain ID`: one rule in full."""

from __future__ import annotations

import argparse
import sys

from mcptest.model.errors import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="ID", help="a rule's id, like INV-003 or PROTO-002")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-color", action="store_true")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.report.corpus_rules import find_any_rule
    from mcptest.report.rules_list import rule_page, rules_as_json
    from mcptest.report.terminal import Style, say, say_json
    from mcptest.rules.composition import CompositionRule

    rule = find_any_rule(arguments.rule)
    if arguments.json:
        alone, together = ([], [rule]) if isinstance(rule, CompositionRule) else ([rule], [])
        say_json(sys.stdout, rules_as_json(alone, together, None))
        return ExitCode.OK
    for line in rule_page(rule, Style.of(sys.stdout, no_color=arguments.no_color)):
        say(sys.stdout, line + "\n")
    return ExitCode.OK
