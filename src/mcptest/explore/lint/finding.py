"""The values of the linter: what is complained about, by which rule, and within which limits."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

LINT_FORMAT = "mcptest.lint/1"
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


class Severity(enum.Enum):
    ERROR = "error"
    """A model will go wrong."""
    WARNING = "warning"
    """A model may go wrong."""
    NOTE = "note"
    """It could be better, as in every second published tool. Counted; never a reason to fail."""


class Limits(msgspec.Struct, frozen=True):
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


class Suggestion(msgspec.Struct, frozen=True):
    """A concrete change: the value to set at a place of the item's definition."""

    pointer: str
    value: Any


class Remark(msgspec.Struct, frozen=True):
    """What a check has to say."""

    message: str
    field: str = ""
    suggestion: Suggestion | None = None
    item: str = ""
    """Which item is meant, for a check that looks at more than one."""
    kind: str = "tool"
    severity: Severity | None = None
    """Where this does more or less harm than the rule does elsewhere."""


Check: TypeAlias = Callable[[Any, Limits], Iterable[Remark]]


class LintRule(msgspec.Struct, frozen=True):
    """One code: its meaning, why it matters, what to do about it, and how it is found."""

    code: str
    title: str
    severity: Severity
    scope: Scope
    why: str
    fix: str
    check: Check
    settled: bool = False
    """The severity is the rule's, whatever the check says of the harm in this place."""


class Finding(msgspec.Struct, frozen=True):
    """One complaint about one item."""

    kind: str
    item: str
    code: str
    severity: Severity
    title: str
    message: str
    field: str = ""
    fix: str = ""
    suggestion: Suggestion | None = None


class LintReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found about one server, or one file."""

    server: str
    profile: str = OWN_PROFILE
    server_version: str = ""
    peer: str = ""
    counts: Mapping[str, int] = {}
    """How many tools, prompts, resources and templates were looked at."""
    findings: tuple[Finding, ...] = ()
    problems: Mapping[str, str] = {}
    """Lists that could not be read, by their method."""
    notes: tuple[str, ...] = ()
    strict: bool = False
    threshold: int | None = None
    tokens: int = 0
    interrupted: bool = False
    started: str = ""
    duration_ms: int = 0
    tool: str = ""

    def of(self, severity: Severity) -> Iterator[Finding]:
        return (one for one in self.findings if one.severity is severity)

    @property
    def serious(self) -> tuple[Finding, ...]:
        """Errors and warnings: what is worth acting on."""
        return tuple(one for one in self.findings if one.severity is not Severity.NOTE)

    @property
    def noted(self) -> int:
        return sum(1 for _ in self.of(Severity.NOTE))

    @property
    def errors(self) -> int:
        return sum(1 for _ in self.of(Severity.ERROR))

    @property
    def warnings(self) -> int:
        return sum(1 for _ in self.of(Severity.WARNING))

    @property
    def failed(self) -> bool:
        if self.problems or self.interrupted or self.errors:
            return True
        if self.strict and self.serious:
            return True
        return self.threshold is not None and len(self.serious) > self.threshold
