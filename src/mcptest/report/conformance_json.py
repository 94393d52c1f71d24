"""A run of scenarios as JSON: everything that the report holds, under one versioned name."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.conformance import CONFORMANCE_FORMAT, ConformanceReport


def conformance_as_json(report: ConformanceReport) -> bytes:
    plain: dict[str, Any] = msgspec.to_builtins(report)
    head = {
        "format": CONFORMANCE_FORMAT,
        "verdict": "interrupted"
        if report.interrupted
        else "fail"
        if report.failed
        else "pass"
        if report.observed
        else "nothing",
    }
    return msgspec.json.format(msgspec.json.encode(head | plain), indent=2) + b"\n"


def read_conformance(data: bytes) -> ConformanceReport:
    """What `conformance_as_json` wrote, for looking at it again."""
    return msgspec.json.decode(data, type=ConformanceReport)
