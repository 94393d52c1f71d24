"""Coverage as JSON: the members that mcp-assert writes for tools, and the other kinds beside."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.coverage import KINDS, CoverageReport, CoveredItem, share
from mcptest.report.indented_json import indented_json


def coverage_as_json(report: CoverageReport) -> bytes:
    tools = report.of("tool")
    value: dict[str, Any] = {
        "schema": report.format,
        "tool": report.tool,
        "server": report.server,
        "total": len(tools),
        "covered": sum(item.covered for item in tools),
        "percentage": share(tools),
        "covered_tools": [
            {"name": item.name, "assertions": item.assertions} for item in tools if item.covered
        ],
        "uncovered_tools": [item.name for item in tools if not item.covered],
        "overall": report.percentage,
        "threshold": report.threshold,
        "failed": report.failed,
        "tests": report.tests,
        "kinds": {f"{kind}s": _kind(report.of(kind)) for kind in KINDS},
        "unknown": [msgspec.to_builtins(one) for one in report.unknown],
        "problems": list(report.problems),
    }
    return indented_json(value)


def _kind(items: tuple[CoveredItem, ...]) -> dict[str, Any]:
    return {
        "total": len(items),
        "covered": sum(item.covered for item in items),
        "percentage": share(items),
        "items": [
            {"name": item.name, "assertions": item.assertions, "skipped": item.skipped}
            for item in items
        ],
    }
