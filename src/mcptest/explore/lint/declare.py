"""How a lint rule is declared: one decorator, one place, one registry."""

from __future__ import annotations

from collections.abc import Callable

from mcptest.explore.lint.finding import Check, LintRule, Scope, Severity

_RULES: dict[str, LintRule] = {}


def lint_rule(
    code: str, title: str, severity: Severity, scope: Scope, *, why: str, fix: str
) -> Callable[[Check], Check]:
    """Declare the function below as the check of `code`. A code is never used twice."""

    def declared(check: Check) -> Check:
        if code in _RULES:
            raise ValueError(f"the lint code {code} is taken")
        _RULES[code] = LintRule(code, title, severity, scope, why, fix, check)
        return check

    return declared


def declared_rules() -> dict[str, LintRule]:
    """What is declared so far; `catalogue` makes sure that this is everything."""
    return _RULES
