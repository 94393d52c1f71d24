"""What mcptest knows by itself: its rules and its file formats. Nothing is started for it."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.revision import parse_revision
from mcptest.core.safe_text import show
from mcptest.report.json_schemas import schema_of
from mcptest.report.lint_explained import find_lint_rule, lint_rule_page
from mcptest.report.rules import all_listed_rules, find_any_rule, rule_page
from mcptest.report.terminal import Style
from mcptest.rules.composition import COMPOSITION_RULES
from mcptest.rules.lint.linter import all_lint_rules
from mcptest.servers.demo.exchange import ToolFailure

MAX_LISTED = 100
_RULE_ID = re.compile(r"\s*[A-Za-z]{1,20}-\d{1,5}\s*")


def page_of(name: str) -> str | None:
    """One rule, or one code of the linter, in full; None where there is none of that name."""
    plain = Style()
    lint_rule = find_lint_rule(name)
    if lint_rule is not None:
        return "\n".join(lint_rule_page(lint_rule, plain))
    if not _RULE_ID.fullmatch(name):
        return None
    try:
        rule = find_any_rule(name)
    except UsageError:  # there is none; whoever asked by a URI wants to know no more
        return None
    return "\n".join(rule_page(rule, plain))


def explained(name: str) -> str:
    page = page_of(name)
    if page is None:
        raise ToolFailure(f"there is no rule {show(name, 40)!r}; list_rules has the ids of all")
    return page


@functools.cache
def rule_ids() -> tuple[str, ...]:
    """Every id that has a page, rules first."""
    rules = [rule.id for rule in all_listed_rules()]
    together = list(COMPOSITION_RULES)
    return (*sorted([*rules, *together]), *sorted(rule.code for rule in all_lint_rules()))


def listed_rules(revision: str | None, side: str | None, words: str) -> list[dict[str, Any]]:
    """The rules that fit, each with its id, what it demands and how strictly."""
    wanted = None if revision is None else parse_revision(revision)
    rules = all_listed_rules(wanted, side)
    found = [
        {
            "id": rule.id,
            "severity": (rule.severity_in(wanted) if wanted else rule.severity).value,
            "title": rule.title,
        }
        for rule in rules
    ]
    lower = words.lower()
    return [one for one in found if lower in f"{one['id']} {one['title']}".lower()]


def schema_text(name: str) -> str:
    return json.dumps(schema_of(name), indent=2) + "\n"


@functools.cache
def suite_guide() -> str:
    """How a suite is written, short enough for the context of a model, with an example."""
    return (Path(__file__).parent / "suite_guide.md").read_text(encoding="utf-8")
