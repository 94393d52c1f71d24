"""What the linter found, as JSON: the members that mcp-assert prints, and ours."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.explore.lint.finding import LINT_FORMAT, Finding, LintReport


def lint_as_json(report: LintReport) -> bytes:
    value: dict[str, Any] = {
        "schema": LINT_FORMAT,
        "tool": report.tool,
        "server": report.server,
        "server_version": report.server_version,
        "peer": report.peer,
        "tools": report.counts.get("tools", 0),
        "prompts": report.counts.get("prompts", 0),
        "resources": report.counts.get("resources", 0),
        "templates": report.counts.get("templates", 0),
        "tokens": report.tokens,
        "findings": [_finding(one) for one in report.findings],
        "errors": report.errors,
        "warnings": report.warnings,
        "failed": report.failed,
        "strict": report.strict,
        "threshold": report.threshold,
        "interrupted": report.interrupted,
        "problems": report.problems,
        "notes": list(report.notes),
        "generated_at": report.started,
        "duration_ms": report.duration_ms,
    }
    return msgspec.json.format(_encoded(value), indent=2) + b"\n"


def _finding(finding: Finding) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "tool": finding.item,
        "kind": finding.kind,
        "code": finding.code,
        "severity": finding.severity.value,
        "title": finding.title,
        "message": finding.message,
        "field": finding.field,
        "fix": finding.fix,
    }
    if finding.suggestion is not None:
        one = finding.suggestion
        shown["suggestion"] = {"pointer": one.pointer, "value": one.value}
    return shown


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair in a name of the server
        import json

        return json.dumps(value).encode("ascii")
