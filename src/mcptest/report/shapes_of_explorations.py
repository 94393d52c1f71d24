"""The shape of what `audit`, `lint`, `fuzz`, `property`, `coverage` and `snapshot` write as JSON.

Their writers put values and numbers together for scripts. These declarations say what comes out,
for the JSON Schemas and for whoever reads such a file again; tests hold the writers against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from mcptest.explore.lint.finding import Severity as LintSeverity
from mcptest.model.audit import Claim, Health
from mcptest.model.coverage import Unknown
from mcptest.model.fuzz import Verdict as FuzzVerdict
from mcptest.model.property import Counterexample
from mcptest.model.results import Status
from mcptest.suite.snapshots import SnapshotOutcome

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Percent: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


class ShortResult(msgspec.Struct, kw_only=True):
    """One test, as mcp-assert prints it."""

    name: str
    status: Status
    detail: str | UnsetType = UNSET
    duration_ms: int
    language: str | UnsetType = UNSET
    trial: Count


class SnapshotResult(msgspec.Struct, kw_only=True):
    """One test with its golden file."""

    name: str
    status: Status
    outcome: SnapshotOutcome
    golden: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    duration_ms: int
    trial: Count


class _Head(msgspec.Struct, kw_only=True):
    tool: str
    """The version of mcptest that wrote it."""
    server: str
    server_version: str
    peer: str
    """How the server was reached, with secrets masked."""
    failed: bool
    interrupted: bool
    notes: list[str]
    generated_at: str
    duration_ms: Count


# -- audit ---------------------------------------------------------------------------------------


class AuditedItem(msgspec.Struct, kw_only=True):
    """A tool, prompt, resource or template; just one of the four names is there."""

    tool: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    uri_template: str | UnsetType = UNSET
    description: str
    status: Health
    error_code: str
    detail: str
    is_error: bool
    worked: bool
    has_content: bool
    duration_ms: Count
    input: dict[str, Any]
    claims: list[Claim] | UnsetType = UNSET
    findings: list[str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    sent: str | UnsetType = UNSET
    received: str | UnsetType = UNSET
    stderr: list[str] | UnsetType = UNSET
    repeat: str | UnsetType = UNSET


class AuditSummary(msgspec.Struct, kw_only=True):
    healthy: Count
    answers: Count
    answers_with_errors: Count
    crash: Count
    timeout: Count
    refused: Count
    protocol: Count
    skipped: Count
    findings: Count


class Audit(_Head, kw_only=True):
    schema: Literal["mcptest.audit/1"]
    transport: str
    spec_version: str
    spec_version_reason: str
    tool_count: Count
    results: list[AuditedItem]
    prompts: list[AuditedItem]
    resources: list[AuditedItem]
    templates: list[AuditedItem]
    score: Percent | None
    tool_score: Percent | None
    answered: Percent | None
    min_score: int | None
    summary: AuditSummary
    problems: dict[str, str]
    unreached: Count
    restarts: Count


# -- lint ----------------------------------------------------------------------------------------


class LintSuggestion(msgspec.Struct, kw_only=True):
    pointer: str
    value: Any


class LintFinding(msgspec.Struct, kw_only=True):
    tool: str
    kind: str
    code: str
    severity: LintSeverity
    title: str
    message: str
    field: str
    fix: str
    suggestion: LintSuggestion | UnsetType = UNSET


class Lint(_Head, kw_only=True):
    schema: Literal["mcptest.lint/1"]
    tools: Count
    prompts: Count
    resources: Count
    templates: Count
    tokens: Count
    findings: list[LintFinding]
    errors: Count
    warnings: Count
    noted: Count
    profile: str
    strict: bool
    threshold: int | None
    problems: dict[str, str]


# -- fuzz ----------------------------------------------------------------------------------------


class FuzzFinding(msgspec.Struct, kw_only=True):
    label: str
    status: FuzzVerdict
    detail: str
    duration_ms: Count
    category: str
    valid: bool | None
    misfit: str
    also: list[str]
    count: Annotated[int, msgspec.Meta(ge=1)]
    reproduced: bool
    tries: Count
    arguments: Any = UNSET
    minimal: Any = UNSET
    sent: str | UnsetType = UNSET
    received: str | UnsetType = UNSET
    stderr: list[str] | UnsetType = UNSET
    repeat: str | UnsetType = UNSET


class FuzzTool(msgspec.Struct, kw_only=True):
    tool: str
    runs: Count
    passed: Count
    failures: list[FuzzFinding]
    categories: dict[str, Count]
    notes: list[str]
    unchecked: str | UnsetType = UNSET
    """Why its input schema could not be checked; then the run failed."""
    duration_ms: Count


class FuzzSkipped(msgspec.Struct, kw_only=True):
    tool: str
    reason: str


class FuzzSummary(msgspec.Struct, kw_only=True):
    tools_tested: Count
    tools_skipped: Count
    total_runs: Count
    total_passed: Count
    total_failures: Count
    crashes: Count
    timeouts: Count
    protocol_errors: Count
    leaks: Count


class Fuzz(_Head, kw_only=True):
    schema: Literal["mcptest.fuzz/1"]
    transport: str
    spec_version: str
    spec_version_reason: str
    seed: int
    runs_per_tool: Count
    tools: list[FuzzTool]
    skipped: list[FuzzSkipped]
    summary: FuzzSummary
    problem: str
    restarts: Count
    calls: Count
    unreached: Count


# -- property ------------------------------------------------------------------------------------


class FoundExample(Counterexample, frozen=True, kw_only=True):
    """A counterexample, whether it counts, and how many messages it takes."""

    counts: bool
    messages: Count


class TriedProperty(msgspec.Struct, kw_only=True):
    name: str
    about: str
    examples: Count
    replayed: Count
    counterexamples: list[FoundExample]
    notes: list[str]
    duration_ms: Count
    generating_ms: float
    skipped: str | UnsetType = UNSET
    ended_early: str | UnsetType = UNSET


class PropertySummary(msgspec.Struct, kw_only=True):
    properties: Count
    skipped: Count
    examples: Count
    counterexamples: Count
    failures: Count


class Property(_Head, kw_only=True):
    schema: Literal["mcptest.property/1"]
    transport: str
    spec_version: str
    spec_version_reason: str
    seed: int
    properties: list[TriedProperty]
    summary: PropertySummary
    restarts: Count
    problems: list[str]


# -- coverage ------------------------------------------------------------------------------------


class CoveredTool(msgspec.Struct, kw_only=True):
    name: str
    assertions: Annotated[int, msgspec.Meta(ge=1)]


class CoverageItem(msgspec.Struct, kw_only=True):
    name: str
    assertions: Count
    skipped: Count


class CoverageKind(msgspec.Struct, kw_only=True):
    total: Count
    covered: Count
    percentage: Share
    items: list[CoverageItem]


class CoverageKinds(msgspec.Struct, kw_only=True):
    tools: CoverageKind
    prompts: CoverageKind
    resources: CoverageKind
    templates: CoverageKind


class Coverage(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.coverage/1"]
    tool: str
    server: str
    total: Count
    covered: Count
    percentage: Share
    covered_tools: list[CoveredTool]
    uncovered_tools: list[str]
    overall: Share
    threshold: float | None
    failed: bool
    tests: Count
    kinds: CoverageKinds
    unknown: list[Unknown]
    problems: list[str]
