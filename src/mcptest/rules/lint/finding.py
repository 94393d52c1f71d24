"""The values of the linter: what is complained about, by which rule, and within which limits."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import msgspec

Scope: TypeAlias = Literal[
    "tool", "parameter", "surface", "prompt", "resource", "template", "called"
]
"""What a rule looks at: one item, one parameter, everything, or answers of a live tool."""
SERVER = "(server)"
ALL_TOOLS = "(all tools)"
OWN_PROFILE = "mcptest"
MCP_ASSERT_PROFILE = "mcp-assert"
PROFILES = (OWN_PROFILE, MCP_ASSERT_PROFILE)
"""Whose codes and severities hold."""


class LintSeverity(enum.Enum):
    ERROR = "error"
    """A model will go wrong."""
    WARNING = "warning"
    """A model may go wrong."""
    NOTE = "note"
    """It could be better, as in every second published tool. Counted; never a reason to fail."""


class LintLimits(msgspec.Struct, frozen=True):
    """The thresholds of the rules that have one."""

    max_tools: int = 20
    max_tokens: int = 8_000
    """Of all tools together; a token is four bytes of JSON."""
    max_tool_tokens: int = 1_000
    max_depth: int = 3
    max_parameters: int = 12
    min_description: int = 20
    max_description: int = 500
    similarity: float = 0.80
    max_response_kb: int = 100


class LintSuggestion(msgspec.Struct, frozen=True):
    """A concrete change: the value to set at a place of the item's definition."""

    pointer: str
    value: Any


class Remark(msgspec.Struct, frozen=True):
    message: str
    field: str = ""
    suggestion: LintSuggestion | None = None
    item: str = ""
    """Which item is meant, for a check that looks at more than one."""
    kind: str = "tool"
    severity: LintSeverity | None = None
    """Where this does more or less harm than the rule does elsewhere."""


Check: TypeAlias = Callable[[Any, LintLimits], Iterable[Remark]]


class LintRule(msgspec.Struct, frozen=True):
    """One code: its meaning, why it matters, what to do about it, and how it is found."""

    code: str
    title: str
    severity: LintSeverity
    scope: Scope
    why: str
    fix: str
    check: Check
    settled: bool = False
    """The severity is the rule's, whatever the check says of the harm in this place."""


class LintFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One complaint about one item. This is also its JSON, which always has `field` and `fix`."""

    kind: str
    item: str = msgspec.field(name="tool")
    code: str
    severity: LintSeverity
    title: str
    message: str
    field: str = msgspec.field(default_factory=str)
    fix: str = msgspec.field(default_factory=str)
    suggestion: LintSuggestion | None = None


LINT_RULES: dict[str, LintRule] = {}
"""What is declared so far; `linter` makes sure that this is everything."""


def lint_rule(
    code: str, title: str, severity: LintSeverity, scope: Scope
) -> Callable[[Check], Check]:
    """Declare the function below as the check of `code`. A code is never used twice.

    The docstring says why it matters and then, in a paragraph of its own, what to do about it.
    """

    def declared(check: Check) -> Check:
        if code in LINT_RULES:
            raise ValueError(f"the lint code {code} is taken")
        page = (check.__doc__ or "").split("\n\n")
        why, fix = (" ".join(text.split()) for text in page)
        LINT_RULES[code] = LintRule(code, title, severity, scope, why, fix, check)
        return check

    return declared
