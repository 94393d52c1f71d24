"""What mcptest knows by itself: its rules, and the codes of the linter and of an audit."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.revision import parse_revision
from mcptest.core.safe_text import show
from mcptest.report.audit import audit_codes, find_audit_code
from mcptest.report.codec import as_json
from mcptest.report.lint_explained import (
    audit_code_page,
    find_lint_rule,
    lint_rule_as_json,
    lint_rule_page,
)
from mcptest.report.rules import all_listed_rules, find_any_rule, rule_page, rules_as_json
from mcptest.report.terminal import Style
from mcptest.rules.composition import COMPOSITION_RULES, CompositionRule
from mcptest.rules.lint.linter import all_lint_rules

_CODE = re.compile(r"\s*[EWL]\d+\s*", re.IGNORECASE)
_LONGEST = 40


@functools.cache
def titles() -> dict[str, str]:
    """Everything that has a page, with its title: rules first."""
    rules = {rule.id: rule.title for rule in all_listed_rules()}
    rules |= {name: rule.title for name, rule in COMPOSITION_RULES.items()}
    codes = {one.code: one.title for one in all_lint_rules()}
    codes |= {one.code: one.title for one in audit_codes()}
    return {**dict(sorted(rules.items())), **dict(sorted(codes.items()))}


def explained(name: str, style: Style) -> tuple[bytes, Iterable[str]]:
    """A rule, or a code, as JSON and as a page. UsageError where there is none of that name."""
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
            f"unknown lint code {show(name.strip(), 40)}", hint="`mcptest lint --list` lists them"
        )
    return lint_rule_as_json(lint_rule), lint_rule_page(lint_rule, style)


def page_of(name: str) -> str | None:
    """The page alone; None where there is none of that name, and nobody wants to know more."""
    if len(name) > _LONGEST:  # what else may have been meant is looked for, which takes its time
        return None
    try:
        return "\n".join(explained(name, Style())[1])
    except UsageError:
        return None


def listed_rules(revision: str | None, side: str | None, words: str) -> list[dict[str, Any]]:
    """The rules that fit, each with its id, what it demands and how strictly."""
    wanted = None if revision is None else parse_revision(revision)
    found = [
        {
            "id": rule.id,
            "severity": (rule.severity_in(wanted) if wanted else rule.severity).value,
            "title": rule.title,
        }
        for rule in all_listed_rules(wanted, side)
    ]
    lower = words.lower()
    return [one for one in found if lower in f"{one['id']} {one['title']}".lower()]
