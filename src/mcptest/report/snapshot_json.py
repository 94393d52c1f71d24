"""Snapshots as JSON: the array that `run --json` prints, with the outcome and the golden file."""

from __future__ import annotations

from typing import Any

from mcptest.model.results import TestResult
from mcptest.report.results_json import as_json
from mcptest.suite.snapshots import Kept, SnapshotReport


def snapshot_json(report: SnapshotReport) -> bytes:
    pairs = zip(report.run.results, report.kept, strict=True)
    return as_json([_entry(result, kept) for result, kept in pairs])


def _entry(result: TestResult, kept: Kept) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": result.name,
        "status": result.status.value,
        "outcome": kept.outcome.value,
    }
    if kept.golden:
        entry["golden"] = kept.golden
    for name in ("detail", "note", "file", "line"):
        value = getattr(result, name)
        if value:
            entry[name] = value
    entry["duration_ms"] = result.duration_ms
    entry["trial"] = result.trial
    return entry
