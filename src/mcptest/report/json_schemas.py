"""The JSON Schemas (2020-12) of our file formats, made from what reads and writes them.

They are open: members are only added within a version of a format, so a reader goes past those that
it does not know.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeAlias

import msgspec

from mcptest.core.judgement import Scorecard
from mcptest.core.results import RunReport
from mcptest.report.audit import AuditCode, AuditReport
from mcptest.report.baseline import Baseline
from mcptest.report.codec import json_schema
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.conformance import ConformanceReport
from mcptest.report.coverage import CoverageReport
from mcptest.report.doctor import DoctorReport
from mcptest.report.fleet import FleetReport
from mcptest.report.fuzz import FuzzReport
from mcptest.report.lint import LintReport
from mcptest.report.lint_explained import ExplainedLintRule
from mcptest.report.property import PropertyReport
from mcptest.report.rules import RuleListing
from mcptest.report.run_results import ShortResult
from mcptest.report.scorecards import History
from mcptest.report.snapshot import SnapshotResult
from mcptest.report.upgrade_guide import VersionDiffReport
from mcptest.report.verdicts import SessionsReport
from mcptest.rules import expected_failures
from mcptest.rules.corpus import known_failures
from mcptest.suite.editor_schema import suite_json_schema
from mcptest.suite.mock_server import mock_json_schema
from mcptest.wire.capture_forms import Line

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema: TypeAlias = dict[str, Any]


class _PublicSession(msgspec.Struct):
    server_label: str
    exchanges: list[_PublicExchange]
    server_capabilities: dict[str, Any] | None = None


class _PublicExchange(msgspec.Struct):
    request: dict[str, Any] | list[Any]
    response: dict[str, Any] | list[Any] | None = None


class _Badge(msgspec.Struct):
    schemaVersion: int  # noqa: N815 - the member of the endpoint's form
    label: str
    message: str
    color: str


# -- what people write -----------------------------------------------------------------------------


def _known_failures() -> Schema:
    definitions: dict[str, Schema] = {}
    entry = known_failures.ENTRY.schema(definitions)
    rule = {"type": "string", "minLength": 1}
    listed = {"type": "array", "items": {"anyOf": [rule, {**entry, "required": ["rule_id"]}]}}
    about = {key: part for key, part in entry["properties"].items() if key != "rule_id"}
    by_rule = {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": ["string", "null"], "description": about["reason"]["description"]},
                {**entry, "properties": about},
            ]
        },
    }
    definitions |= {"listed": listed, "by-rule": by_rule}
    group = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/listed"}, {"$ref": "#/$defs/by-rule"}]}
    definitions["group"] = group
    names = (*known_failures.GROUPS, *(name.removeprefix("v") for name in known_failures.GROUPS))
    groups = {key: {"$ref": "#/$defs/group"} for key in names}
    return {"anyOf": [{"type": "null"}, listed, {**by_rule, "properties": groups}]} | {
        "$defs": definitions
    }


def _expected_failures() -> Schema:
    scenario = {"type": "string", "minLength": 1, "description": "scenario or scenario:check-id"}
    entry = expected_failures.ENTRY.schema({})
    listed = {"type": ["array", "null"], "items": {"anyOf": [scenario, entry]}}
    return {
        "type": ["object", "null"],
        "properties": {"server": listed, "client": listed},
        "additionalProperties": False,
    }


# -- what is stored --------------------------------------------------------------------------------


def _capture() -> Schema:
    def any_json(kind: type) -> Schema:
        if kind is msgspec.Raw:
            return {}
        raise NotImplementedError(kind)

    return msgspec.json.schema(Line, schema_hook=any_json)


def _exchanges() -> Schema:
    return msgspec.json.schema(_PublicSession | list[_PublicSession])


FORMATS: dict[str, tuple[str, Any]] = {
    "suite": ("a suite of tests", suite_json_schema),
    "mock": ("a server for `mcptest serve --mock`", mock_json_schema),
    "known-failures": ("a baseline of `compliance run --baseline`", _known_failures),
    "expected-failures": ("a list of `conformance … --expected-failures`", _expected_failures),
    "run": ("a saved run, `mcptest run --json-file`", RunReport),
    "results": ("the list of results of `mcptest run --json`", list[ShortResult]),
    "baseline": ("the statuses that `mcptest run --save-baseline` keeps", Baseline),
    "badge": ("a badge, `--badge`, for an endpoint of shields.io", _Badge),
    "snapshot": ("the results of `mcptest snapshot --json`", list[SnapshotResult]),
    "report": ("the JSON report of `mcptest compliance invariants --json`", SessionsReport),
    "compliance": ("a judged server, `mcptest compliance run --json`", ComplianceReport),
    "scorecard": ("the grade that `compliance run --save-scorecard` keeps", Scorecard),
    "flaky-history": ("the results of flaky rules, kept beside a baseline", History),
    "conformance": ("a run of scenarios, `mcptest conformance … --json`", ConformanceReport),
    "audit": ("an audit, `mcptest audit --json`", AuditReport),
    "lint": ("what the linter found, `mcptest lint --json`", LintReport),
    "fuzz": ("a fuzz run, `mcptest fuzz --json`", FuzzReport),
    "property": ("a run of property tests, `mcptest property --json`", PropertyReport),
    "coverage": ("what a suite covers, `mcptest coverage --json`", CoverageReport),
    "fleet": ("all servers of a configuration, `mcptest fleet --json`", FleetReport),
    "doctor": ("what breaks in an upgrade, `mcptest doctor --json`", DoctorReport),
    "version-diff": (
        "the differences between two revisions, `mcptest compliance diff --json`",
        VersionDiffReport,
    ),
    "rules": ("all rules, `mcptest compliance rules --json`", RuleListing),
    "lint-rule": ("one code of the linter, `mcptest explain --json`", ExplainedLintRule),
    "audit-code": ("one code of an audit, `mcptest explain --json`", AuditCode),
    "capture": ("one line of a full capture", _capture),
    "exchanges": ("a capture of the public form", _exchanges),
}
"""What each is, and its type, or a function that gives its schema."""
NAMES = tuple(FORMATS)


def schema_of(name: str) -> Schema:
    title, kind = FORMATS[name]
    return titled(title, kind() if isinstance(kind, FunctionType) else json_schema(kind))


def titled(title: str, schema: Schema) -> Schema:
    return {**schema, "$schema": DIALECT, "title": f"mcptest: {title}"}
