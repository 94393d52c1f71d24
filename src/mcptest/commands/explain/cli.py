"""`mcptest explain ID`: one rule, or one code of the linter or of an audit, in full."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.safe_text import show
from mcptest.report.audit import audit_code_page, find_audit_code
from mcptest.report.codec import as_json
from mcptest.report.lint_explained import find_lint_rule, lint_rule_as_json, lint_rule_page
from mcptest.report.rules import find_any_rule, rule_page, rules_as_json
from mcptest.report.terminal import Style, say, say_json
from mcptest.rules.composition import CompositionRule

_CODE = re.compile(r"\s*[EWL]\d+\s*", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rule",
        metavar="ID",
        help="the id of a rule, like INV-003, or a code of lint or audit, like E101 or E201",
    )
    parser.add_argument("--json", action="store_true", help="as JSON on stdout, alone")
    parser.add_argument("--no-color", action="store_true", help="plain text")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    data, lines = _explained(arguments.rule, Style.of(sys.stdout, no_color=arguments.no_color))
    if arguments.json:
        say_json(sys.stdout, data)
        return ExitCode.OK
    for line in lines:
        say(sys.stdout, line + "\n")
    return ExitCode.OK


def _explained(name: str, style: Style) -> tuple[bytes, Iterable[str]]:
    """As JSON, and as a page."""
    # The two kinds of names can't be confused: a rule's has a hyphen.
    if not _CODE.fullmatch(name):
        rule = find_any_rule(name)
        alone, together = ([], [rule]) if isinstance(rule, CompositionRule) else ([rule], [])
        return rules_as_json(alone, together, None), rule_page(rule, style)
    audited = find_audit_code(name)
    if audited is not None:
        return as_json(audited), audit_code_page(audited, style)
    lint_rule = find_lint_rule(name)
    if lint_rule is None:
        raise UsageError(
            f"unknown lint code: {show(name.strip(), 40)}", hint="mcptest lint --list has them all"
        )
    return lint_rule_as_json(lint_rule), lint_rule_page(lint_rule, style)
