"""An audit as JSON: the members that mcp-assert prints, and everything else that was found."""

from __future__ import annotations

from typing import Any

from mcptest.model.audit import AuditItem, AuditReport, Health, healthy_share
from mcptest.report.indented_json import indented_json

_CODES = {
    Health.HEALTHY: "E000",
    Health.CRASHED: "E201",
    Health.TIMED_OUT: "E202",
    Health.REFUSED: "E203",
    Health.PROTOCOL: "E204",
    Health.SKIPPED: "",
}
_NAMES = {"tool": "tool", "prompt": "prompt", "resource": "uri", "template": "uri_template"}


def audit_as_json(report: AuditReport) -> bytes:
    tools = report.of("tool")
    value: dict[str, Any] = {
        "schema": report.format,
        "tool": report.tool,
        "server": report.server_name or report.server,
        "server_version": report.server_version,
        "peer": report.server,
        "transport": report.transport,
        "spec_version": report.revision,
        "tool_count": len(tools),
        "results": [_item(item) for item in tools],
        "prompts": [_item(item) for item in report.of("prompt")],
        "resources": [_item(item) for item in report.of("resource")],
        "templates": [_item(item) for item in report.of("template")],
        "score": report.score,
        "tool_score": healthy_share(tools),
        "min_score": report.min_score,
        "failed": report.failed,
        "interrupted": report.interrupted,
        "summary": summary_of(report),
        "problems": report.problems,
        "notes": list(report.notes),
        "restarts": report.restarts,
        "generated_at": report.started,
        "duration_ms": report.duration_ms,
    }
    return indented_json(value)


def summary_of(report: AuditReport) -> dict[str, int]:
    counts = {health.value: 0 for health in Health}
    for item in report.items:
        counts[item.health.value] += 1
    return {**counts, "findings": sum(len(item.findings) for item in report.items)}


def _item(item: AuditItem) -> dict[str, Any]:
    shown: dict[str, Any] = {
        _NAMES[item.kind]: item.name,
        "description": item.description,
        "status": item.health.value,
        "error_code": _CODES[item.health],
        "detail": item.detail,
        "is_error": item.is_error,
        "has_content": item.has_content,
        "duration_ms": item.duration_ms,
        "input": item.input,
    }
    if item.claims:
        shown["claims"] = [
            {"hint": one.hint, "holds": one.holds, "detail": one.detail} for one in item.claims
        ]
    more = {
        "findings": list(item.findings),
        "notes": list(item.notes),
        "sent": item.sent,
        "received": item.received,
        "stderr": list(item.stderr),
        "repeat": item.repeat if item.is_bad else "",
    }
    return {**shown, **{name: one for name, one in more.items() if one}}
