"""The JSON Schema of `mcptest.fleet/1`. What a row holds whole has that of its own command."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from mcptest.model.compliance import ComplianceReport
from mcptest.model.fleet import FleetHazard, ServerOutcome
from mcptest.report.compliance_json import compliance_json_schema
from mcptest.report.shapes_of_explorations import Audit

Count = Annotated[int, msgspec.Meta(ge=0)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class FleetSummary(msgspec.Struct):
    servers: Count
    passed: Count
    failed: Count
    unreachable: Count
    not_judged: Count
    interrupted: Count
    disabled: Count
    hazards: Count


class FleetRow(msgspec.Struct):
    """One server. What is not known of it is null."""

    name: str
    outcome: ServerOutcome
    reason: str
    hint: str
    revision: str | None
    transport: str | None
    grade: str | None
    broken_musts: Count | None
    audit_score: Percent | None
    tools: Count | None
    duration_ms: Count
    worker: str
    repeat: str
    compliance: ComplianceReport | None
    audit: Audit | None


class Fleet(msgspec.Struct):
    """Every server of one client configuration, in its order."""

    format: Literal["mcptest.fleet/1"]
    tool: str
    started: str
    duration_ms: Count
    config: str
    exit_code: int
    interrupted: bool
    strict: bool
    summary: FleetSummary
    fleet: list[FleetRow]
    hazards: list[FleetHazard]
    notes: list[str]


def fleet_json_schema() -> dict[str, Any]:
    schema = msgspec.json.schema(Fleet)
    return {**schema, "$defs": {**schema["$defs"], **compliance_json_schema()["$defs"]}}
