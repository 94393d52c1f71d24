"""The JSON Schemas (2020-12) of our file formats, made from what reads and writes them."""

from __future__ import annotations

from typing import Any

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _PublicSession(msgspec.Struct):
    server_label: str
    exchanges: list[_PublicExchange]
    server_capabilities: dict[str, Any] | None = None


class _PublicExchange(msgspec.Struct):
    request: dict[str, Any] | list[Any]
    response: dict[str, Any] | list[Any] | None = None


def _report() -> dict[str, Any]:
    from mcptest.report.verdicts_json import Report

    return msgspec.json.schema(Report)


def _capture() -> dict[str, Any]:
    from mcptest.wire.capture_codec import Line

    return msgspec.json.schema(Line, schema_hook=_any_json)


def _any_json(kind: type) -> dict[str, Any]:
    if kind is msgspec.Raw:
        return {}
    raise NotImplementedError(kind)


def _exchanges() -> dict[str, Any]:
    return msgspec.json.schema(_PublicSession | list[_PublicSession])


def _run() -> dict[str, Any]:
    from mcptest.report.results_json import run_json_schema

    return run_json_schema()


def _compliance() -> dict[str, Any]:
    from mcptest.report.compliance_json import compliance_json_schema

    return compliance_json_schema()


def _suite() -> dict[str, Any]:
    from mcptest.suite.json_schema_of_suite import suite_json_schema

    return suite_json_schema()


_FORMATS = {
    "suite": ("a suite of tests", _suite),
    "run": ("a saved run, `mcptest run --json-file`", _run),
    "report": ("the JSON report of `mcptest compliance invariants --json`", _report),
    "compliance": ("a judged server, `mcptest compliance run --json`", _compliance),
    "capture": ("one line of a full capture", _capture),
    "exchanges": ("a capture of the public form", _exchanges),
}
NAMES = tuple(_FORMATS)


def schema_of(name: str) -> dict[str, Any]:
    title, build = _FORMATS[name]
    return {**build(), "$schema": DIALECT, "title": f"mcptest: {title}"}
