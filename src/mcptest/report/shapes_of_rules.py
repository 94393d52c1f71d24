"""The shape of what `doctor`, `compliance diff`, `compliance rules` and `explain` write as JSON.

See `shapes_of_explorations`: what comes out, declared for the JSON Schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from mcptest.explore.lint.finding import Scope
from mcptest.explore.lint.finding import Severity as LintSeverity
from mcptest.model.audit import Health
from mcptest.model.compliance import Commonness
from mcptest.model.doctor import MovedRule, RulesOnTheWay, Verdict
from mcptest.model.revision import Revision
from mcptest.model.verdict import Severity, Side
from mcptest.rules.corpus.version_diff import Bucket

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


# -- doctor --------------------------------------------------------------------------------------


class ServerInfo(msgspec.Struct, kw_only=True):
    name: str
    version: str


class DoctorSummary(msgspec.Struct, kw_only=True):
    breaks: Count
    ready: Count
    not_used: Count
    unknown: Count


class SentAndReceived(msgspec.Struct, kw_only=True):
    sent: str
    received: str


class DoctorItem(msgspec.Struct, kw_only=True):
    id: str
    title: str
    since: Revision
    change: str
    verdict: Verdict
    detail: str
    advice: str
    evidence: list[SentAndReceived]
    rules: list[MovedRule]
    fix: str


class Doctor(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.doctor/1"]
    tool: str
    server: str
    server_info: ServerInfo
    transport: str
    older: Revision = msgspec.field(name="from")
    newer: Revision = msgspec.field(name="to")
    examined_in: Revision
    revision_reason: str
    speaks_target: bool
    breaks: bool
    summary: DoctorSummary
    rules_on_the_way: RulesOnTheWay | None
    items: list[DoctorItem]
    notes: list[str]
    requests: Count
    duration_ms: Count


# -- compliance diff -----------------------------------------------------------------------------


class DiffSummary(msgspec.Struct, kw_only=True):
    changed: Count
    unchanged: Count
    added: Count
    removed: Count
    severity_changes: Count


class Expectation(msgspec.Struct, kw_only=True):
    target: str
    matcher: dict[str, Any]


class SeverityMove(msgspec.Struct, kw_only=True):
    older: Severity | None = msgspec.field(name="from")
    newer: Severity | None = msgspec.field(name="to")


class DiffedRule(msgspec.Struct, kw_only=True):
    rule_id: str
    bucket: Bucket
    title: str
    section: str
    kind: Literal["exchange", "session"]
    severity: SeverityMove
    was: list[Expectation] | None
    now: list[Expectation] | None
    requirement: str
    fix: str
    specification: str


class TouchedTest(msgspec.Struct, kw_only=True):
    test: str
    file: str
    line: Count
    rule_id: str
    bucket: Bucket
    why: str


class VersionDiff(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.version-diff/1"]
    older: str = msgspec.field(name="from")
    newer: str = msgspec.field(name="to")
    clean: bool
    about: str
    summary: DiffSummary
    entries: list[DiffedRule]
    touched_tests: list[TouchedTest] | UnsetType = UNSET


# -- compliance rules ----------------------------------------------------------------------------


class Revisions(msgspec.Struct, kw_only=True):
    """From `since` on, up to but without `until`."""

    since: Revision
    until: Revision | None


class SeverityIn(Revisions, kw_only=True):
    severity: Severity


class Asked(Revisions, kw_only=True):
    """How the rule is asked in some revisions, in words."""

    sent: list[str]
    expected: list[str]
    needs: list[str]
    when: list[str]


class ListedRule(msgspec.Struct, kw_only=True):
    id: str
    title: str
    category: str
    kind: Literal["exchange", "session"]
    severity: Severity
    side: Side
    revisions: Revisions
    transports: list[str]
    specification: str
    explanation: str
    common: Commonness | None
    judged_by: str | UnsetType | None = UNSET
    severities: list[SeverityIn] | UnsetType = UNSET
    statements: list[str] | UnsetType = UNSET
    fix: str | UnsetType = UNSET
    asked: list[Asked] | UnsetType = UNSET


class Hazard(msgspec.Struct, kw_only=True):
    id: str
    title: str
    explanation: str


class Rules(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.rules/1"]
    rules: list[ListedRule]
    composition: list[Hazard]


# -- explain -------------------------------------------------------------------------------------


class LintExample(msgspec.Struct, kw_only=True):
    options: str
    broken: Any
    says: list[str]
    mended: Any


class LintRule(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.lint-rule/1"]
    code: str
    title: str
    severity: LintSeverity
    scope: Scope
    why: str
    fix: str
    example: LintExample


class AuditCode(msgspec.Struct, kw_only=True):
    schema: Literal["mcptest.audit-code/1"]
    code: str
    title: str
    status: Health
    why: str
    fix: str
