"""The badge of a run, in the form that a shields.io endpoint reads."""

from __future__ import annotations

import msgspec

from mcptest.model.results import RunReport


def render(report: RunReport, label: str = "mcptest") -> bytes:
    """Green only if every test passed and the run came to its end."""
    badge = {
        "schemaVersion": 1,
        "label": label,
        "message": f"{report.passed}/{len(report.results)}",
        "color": _colour(report),
    }
    return msgspec.json.format(msgspec.json.encode(badge), indent=2) + b"\n"


def _colour(report: RunReport) -> str:
    if report.failed:
        return "red"
    complete = report.passed == len(report.results) > 0 and not report.interrupted
    return "brightgreen" if complete else "yellow"
