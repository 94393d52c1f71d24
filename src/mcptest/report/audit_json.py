"""An audit as JSON: the members that mcp-assert prints, and everything else that was found."""

from __future__ import annotations

from typing import Any

from mcptest.model.audit import AuditItem, AuditReport, Health, answering_share, working_share
from mcptest.report.audit_codes import CODE_OF
from mcptest.report.indented_json import indented_json

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
        "spec_version_reason": report.revision_reason,
        "tool_count": len(tools),
        "results": [_item(item) for item in tools],
        "prompts": [_item(item) for item in report.of("prompt")],
        "resources": [_item(item) for item in report.of("resource")],
        "templates": [_item(item) for item in report.of("template")],
        "score": report.score,
        "tool_score": working_share(tools),
        "answered": answering_share(report.items),
        "min_score": report.min_score,
        "failed": report.failed,
        "interrupted": report.interrupted,
        "summary": summary_of(report),
        "problems": report.problems,
        "unreached": report.unreached,
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
    worked = sum(item.worked for item in report.items)
    return {
        **counts,
        "answers": worked,
        "answers_with_errors": counts[Health.HEALTHY.value] - worked,
        "findings": sum(len(item.findings) for item in report.items),
    }


def _item(item: AuditItem) -> dict[str, Any]:
    shown: dict[str, Any] = {
        _NAMES[item.kind]: item.name,
        "description": item.description,
        "status": item.health.value,
        "error_code": CODE_OF.get(item.health, ""),
        "detail": item.detail,
        "is_error": item.is_error,
        "worked": item.worked,
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
