"""What the linter found, as JSON: the members that mcp-assert prints, and ours."""

from __future__ import annotations

from typing import Any

from mcptest.explore.lint.finding import LINT_FORMAT, Finding, LintReport
from mcptest.report.indented_json import indented_json


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
        "noted": report.noted,
        "profile": report.profile,
        "failed": report.failed,
        "strict": report.strict,
        "threshold": report.threshold,
        "interrupted": report.interrupted,
        "problems": report.problems,
        "notes": list(report.notes),
        "generated_at": report.started,
        "duration_ms": report.duration_ms,
    }
    return indented_json(value)


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
