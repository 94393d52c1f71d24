"""A fuzz run as JSON: the members that mcp-assert prints, and everything else that was found."""

from __future__ import annotations

from typing import Any

from mcptest.model.fuzz import FuzzedTool, FuzzFailure, FuzzReport, Verdict
from mcptest.model.message import ABSENT
from mcptest.report.indented_json import indented_json


def fuzz_as_json(report: FuzzReport) -> bytes:
    value: dict[str, Any] = {
        "schema": report.format,
        "tool": report.tool,
        "server": report.server_name or report.server,
        "server_version": report.server_version,
        "peer": report.server,
        "transport": report.transport,
        "spec_version": report.revision,
        "spec_version_reason": report.revision_reason,
        "seed": report.seed,
        "runs_per_tool": report.runs_per_tool,
        "tools": [_tool(tool) for tool in report.tested],
        "skipped": [{"tool": tool.name, "reason": tool.skipped} for tool in report.skipped],
        "summary": {
            "tools_tested": len(report.tested),
            "tools_skipped": len(report.skipped),
            "total_runs": report.runs,
            "total_passed": report.passed,
            "total_failures": sum(failure.count for failure in report.failures),
            "crashes": report.count(Verdict.CRASH),
            "timeouts": report.count(Verdict.HANG),
            "protocol_errors": report.count(Verdict.PROTOCOL),
            "leaks": report.count(Verdict.LEAK),
        },
        "failed": report.failed,
        "interrupted": report.interrupted,
        "unreached": report.unreached,
        "problem": report.problem,
        "notes": list(report.notes),
        "restarts": report.restarts,
        "calls": report.calls,
        "generated_at": report.started,
        "duration_ms": report.duration_ms,
    }
    return indented_json(value)


def _tool(tool: FuzzedTool) -> dict[str, Any]:
    return {
        "tool": tool.name,
        "runs": tool.runs,
        "passed": tool.passed,
        "failures": [_failure(failure) for failure in tool.failures],
        "categories": dict(tool.categories),
        "notes": list(tool.notes),
        **({"unchecked": tool.unchecked} if tool.unchecked else {}),
        "duration_ms": tool.duration_ms,
    }


def _failure(failure: FuzzFailure) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "label": failure.label,
        "status": failure.verdict.value,
        "detail": failure.detail,
        "duration_ms": failure.duration_ms,
        "category": failure.category,
        "valid": failure.valid,
        "misfit": failure.misfit,
        "also": list(failure.others),
        "count": failure.count,
        "reproduced": failure.again,
        "tries": failure.tries,
    }
    if failure.arguments is not ABSENT:
        shown |= {"arguments": failure.arguments, "minimal": failure.minimal}
    more = {
        "sent": failure.sent,
        "received": failure.received,
        "stderr": list(failure.stderr),
        "repeat": failure.repeat,
    }
    return {**shown, **{name: one for name, one in more.items() if one}}
