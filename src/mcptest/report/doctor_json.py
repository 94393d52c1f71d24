"""What a doctor found as JSON: the values as they are, with the counts that readers want."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.doctor import Diagnosis, DoctorReport, Verdict


def doctor_as_json(report: DoctorReport) -> bytes:
    rules = report.rules
    value: dict[str, Any] = {
        "schema": report.format,
        "tool": report.tool,
        "server": report.server,
        "server_info": {"name": report.server_name, "version": report.server_version},
        "transport": report.transport,
        "from": report.older.value,
        "to": report.newer.value,
        "examined_in": report.spoken.value,
        "revision_reason": report.revision_reason,
        "speaks_target": report.speaks_newer,
        "breaks": report.breaks,
        "summary": {one.value.replace(" ", "_"): report.count(one) for one in Verdict},
        "rules_on_the_way": None if rules is None else msgspec.to_builtins(rules),
        "items": [_item(one) for one in report.items],
        "notes": list(report.notes),
        "requests": report.requests,
        "duration_ms": report.duration_ms,
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _item(item: Diagnosis) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "since": item.since.value,
        "change": item.change,
        "verdict": item.verdict.value,
        "detail": item.detail,
        "advice": item.advice,
        "evidence": [{"sent": one.sent, "received": one.received} for one in item.evidence],
        "rules": [{"id": one.id, "bucket": one.bucket} for one in item.rules],
        "fix": item.fix,
        **({"unchecked": True} if item.unchecked else {}),
    }
