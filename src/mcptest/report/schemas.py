"""The JSON Schemas (2020-12) of our file formats, made from what reads and writes them.

They are open: members are only added within a version of a format, so a reader goes past those that
it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

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


def _mock() -> Schema:
    from mcptest.suite.mock_server import mock_json_schema

    return mock_json_schema()


def _suite() -> Schema:
    from mcptest.suite.json_schema_of_suite import suite_json_schema

    return suite_json_schema()


def _known_failures() -> Schema:
    from mcptest.rules.corpus.baseline_file import ENTRY, GROUPS
    from mcptest.suite.json_schema_of_suite import object_json_schema

    definitions: dict[str, Schema] = {}
    entry = object_json_schema(ENTRY, definitions)
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
    names = (*GROUPS, *(name.removeprefix("v") for name in GROUPS))
    groups = {key: {"$ref": "#/$defs/group"} for key in names}
    return {"anyOf": [{"type": "null"}, listed, {**by_rule, "properties": groups}]} | {
        "$defs": definitions
    }


def _expected_failures() -> Schema:
    from mcptest.rules.expected_failures import ENTRY
    from mcptest.suite.json_schema_of_suite import object_json_schema

    scenario = {"type": "string", "minLength": 1, "description": "scenario or scenario:check-id"}
    entry = object_json_schema(ENTRY, {})
    listed = {"type": ["array", "null"], "items": {"anyOf": [scenario, entry]}}
    return {
        "type": ["object", "null"],
        "properties": {"server": listed, "client": listed},
        "additionalProperties": False,
    }


# -- what is stored --------------------------------------------------------------------------------


def _run() -> Schema:
    from mcptest.report.results_json import run_json_schema

    return run_json_schema()


def _results() -> Schema:
    from mcptest.report.shapes_of_explorations import ShortResult

    return msgspec.json.schema(list[ShortResult])


def _snapshot() -> Schema:
    from mcptest.report.shapes_of_explorations import SnapshotResult

    return msgspec.json.schema(list[SnapshotResult])


def _baseline() -> Schema:
    from mcptest.report.baseline import Entry

    entries = msgspec.json.schema(list[Entry] | None)
    definitions = entries.pop("$defs")
    return {
        "type": "object",
        "properties": {"entries": entries},
        "required": ["entries"],
        "$defs": definitions,
    }


def _report() -> Schema:
    from mcptest.report.verdicts_json import Report

    return msgspec.json.schema(Report)


def _compliance() -> Schema:
    from mcptest.report.compliance_json import compliance_json_schema

    return compliance_json_schema()


def _scorecard() -> Schema:
    from mcptest.model.scorecard import SCORECARD_FORMAT, Scorecard

    return _named_format(msgspec.json.schema(Scorecard), "Scorecard", SCORECARD_FORMAT)


def _flaky_history() -> Schema:
    from mcptest.model.scorecard import HISTORY_FORMAT
    from mcptest.report.flaky_history import History

    return _named_format(msgspec.json.schema(History), "History", HISTORY_FORMAT)


def _conformance() -> Schema:
    from mcptest.model.conformance import CONFORMANCE_FORMAT, ConformanceReport

    schema = msgspec.json.schema(ConformanceReport)
    whole = schema["$defs"]["ConformanceReport"]
    whole["properties"]["verdict"] = {"enum": ["pass", "fail", "nothing", "interrupted"]}
    whole["required"] = ["verdict", *whole["required"]]
    return _named_format(schema, "ConformanceReport", CONFORMANCE_FORMAT)


def _named_format(schema: Schema, of: str, value: str) -> Schema:
    """A format is always written, and only one is right."""
    whole = schema["$defs"][of]
    whole["properties"]["format"] = {"const": value}
    whole["required"] = list(dict.fromkeys(("format", *whole.get("required", ()))))
    return schema


def _explored(name: str) -> Callable[[], Schema]:
    def build() -> Schema:
        from mcptest.report import shapes_of_explorations

        return msgspec.json.schema(getattr(shapes_of_explorations, name))

    return build


def _about_rules(name: str) -> Callable[[], Schema]:
    def build() -> Schema:
        from mcptest.report import shapes_of_rules

        return msgspec.json.schema(getattr(shapes_of_rules, name))

    return build


def _fleet() -> Schema:
    from mcptest.report.fleet_schema import fleet_json_schema

    return fleet_json_schema()


def _capture() -> Schema:
    from mcptest.wire.capture_codec import Line

    return msgspec.json.schema(Line, schema_hook=_any_json)


def _any_json(kind: type) -> Schema:
    if kind is msgspec.Raw:
        return {}
    raise NotImplementedError(kind)


def _exchanges() -> Schema:
    return msgspec.json.schema(_PublicSession | list[_PublicSession])


def _badge() -> Schema:
    return msgspec.json.schema(_Badge)


FORMATS: dict[str, tuple[str, Callable[[], Schema]]] = {
    "suite": ("a suite of tests", _suite),
    "mock": ("a server for `mcptest serve --mock`", _mock),
    "known-failures": ("a baseline of `compliance run --baseline`", _known_failures),
    "expected-failures": (
        "a list of `conformance … --expected-failures`",
        _expected_failures,
    ),
    "run": ("a saved run, `mcptest run --json-file`", _run),
    "results": ("the list of results of `mcptest run --json`", _results),
    "baseline": ("the statuses that `mcptest run --save-baseline` keeps", _baseline),
    "badge": ("a badge, `--badge`, for an endpoint of shields.io", _badge),
    "snapshot": ("the results of `mcptest snapshot --json`", _snapshot),
    "report": ("the JSON report of `mcptest compliance invariants --json`", _report),
    "compliance": ("a judged server, `mcptest compliance run --json`", _compliance),
    "scorecard": ("the grade that `compliance run --save-scorecard` keeps", _scorecard),
    "flaky-history": ("how flaky rules fared, beside a baseline", _flaky_history),
    "conformance": ("a run of scenarios, `mcptest conformance … --json`", _conformance),
    "audit": ("an audit, `mcptest audit --json`", _explored("Audit")),
    "lint": ("what the linter found, `mcptest lint --json`", _explored("Lint")),
    "fuzz": ("a fuzz run, `mcptest fuzz --json`", _explored("Fuzz")),
    "property": ("a run of property tests, `mcptest property --json`", _explored("Property")),
    "coverage": ("what a suite covers, `mcptest coverage --json`", _explored("Coverage")),
    "fleet": ("all servers of a configuration, `mcptest fleet --json`", _fleet),
    "doctor": ("what breaks on the way, `mcptest doctor --json`", _about_rules("Doctor")),
    "version-diff": (
        "two revisions, `mcptest compliance diff --json`",
        _about_rules("VersionDiff"),
    ),
    "rules": ("all rules, `mcptest compliance rules --json`", _about_rules("Rules")),
    "lint-rule": ("one code of the linter, `mcptest explain --json`", _about_rules("LintRule")),
    "audit-code": ("one code of an audit, `mcptest explain --json`", _about_rules("AuditCode")),
    "capture": ("one line of a full capture", _capture),
    "exchanges": ("a capture of the public form", _exchanges),
}
NAMES = tuple(FORMATS)


def schema_of(name: str) -> Schema:
    title, build = FORMATS[name]
    return titled(title, build())


def titled(title: str, schema: Schema) -> Schema:
    return {**schema, "$schema": DIALECT, "title": f"mcptest: {title}"}
