"""A fleet as JSON, `mcptest.fleet/1`: each server with its whole judgement and its whole audit.

Both are what `compliance run --json-file` and `audit --json-file` would have written.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.audit import AUDIT_FORMAT, AuditReport
from mcptest.model.compliance import ComplianceReport
from mcptest.model.errors import UsageError
from mcptest.model.fleet import (
    FLEET_FORMAT,
    FleetHazard,
    FleetReport,
    FleetServer,
    ServerOutcome,
)
from mcptest.model.show import show
from mcptest.report.audit_json import audit_as_json
from mcptest.report.compliance_facts import letter_of
from mcptest.report.compliance_json import compliance_as_json
from mcptest.report.results_json import as_json, decode


def fleet_as_json(report: FleetReport) -> bytes:
    return as_json(
        {
            "format": FLEET_FORMAT,
            "tool": report.tool,
            "started": report.started,
            "duration_ms": report.duration_ms,
            "config": report.config,
            "exit_code": report.exit_code,
            "interrupted": report.interrupted,
            "strict": report.strict,
            "summary": {
                "servers": len(report.servers),
                **{_key(outcome): report.count(outcome) for outcome in ServerOutcome},
                "hazards": len(report.hazards),
            },
            "fleet": [_server(one) for one in report.servers],
            "hazards": [msgspec.to_builtins(one) for one in report.hazards],
            "notes": list(report.notes),
        }
    )


def _key(outcome: ServerOutcome) -> str:
    return outcome.value.replace(" ", "_")


def _server(server: FleetServer) -> dict[str, Any]:
    judged, audit = server.judgement, server.audit
    return {
        "name": server.name,
        "outcome": server.outcome.value,
        "reason": server.reason,
        "hint": server.hint,
        "revision": judged.revision.value if judged is not None else None,
        "revision_reason": judged.revision_reason if judged is not None else "",
        "transport": judged.transport if judged is not None else None,
        "grade": (letter_of(judged.grade) or None) if judged is not None else None,
        "broken_musts": judged.broken_musts if judged is not None else None,
        "audit_score": audit.score if audit is not None else None,
        "tools": len(audit.of("tool")) if audit is not None else None,
        "duration_ms": server.duration_ms,
        "worker": server.worker,
        "repeat": server.repeat,
        "compliance": _document(server.compliance),
        "audit": _document(audit),
    }


def _document(report: ComplianceReport | AuditReport | None) -> Any:
    if report is None:
        return None
    whole = (
        compliance_as_json(report)
        if isinstance(report, ComplianceReport)
        else audit_as_json(report)
    )
    return msgspec.json.decode(whole)


# -- reading it back ---------------------------------------------------------------------------


class _StoredServer(msgspec.Struct):
    name: str
    outcome: ServerOutcome
    reason: str = ""
    hint: str = ""
    duration_ms: int = 0
    worker: str = ""
    repeat: str = ""
    compliance: ComplianceReport | None = None
    audit: msgspec.Raw = msgspec.Raw(b"null")


class _StoredFleet(msgspec.Struct):
    format: str
    fleet: tuple[_StoredServer, ...]
    config: str = ""
    tool: str = ""
    started: str = ""
    duration_ms: int = 0
    exit_code: int = 0
    interrupted: bool = False
    strict: bool = False
    hazards: tuple[FleetHazard, ...] = ()
    notes: tuple[str, ...] = ()


def read_fleet(data: bytes, source: str = "the saved fleet") -> FleetReport:
    """What `fleet_as_json` wrote. `source` is the name of the file, for the error."""
    stored: _StoredFleet = decode(data.removeprefix(b"\xef\xbb\xbf"), _StoredFleet, source)
    if stored.format != FLEET_FORMAT:
        raise UsageError(
            f"{source} can't be read: its format is {show(stored.format, 80)}, not {FLEET_FORMAT}",
            hint="save it with mcptest fleet --json-file, by a version that is not newer",
        )
    return FleetReport(
        config=stored.config,
        servers=tuple(_row(one, source) for one in stored.fleet),
        hazards=stored.hazards,
        tool=stored.tool,
        started=stored.started,
        duration_ms=stored.duration_ms,
        interrupted=stored.interrupted,
        strict=stored.strict,
        notes=stored.notes,
        exit_code=stored.exit_code,
    )


def _audit(stored: msgspec.Raw, source: str) -> AuditReport | None:
    data = bytes(stored)
    if data == b"null":
        return None
    from mcptest.report.stored_explored import READERS

    audit = READERS[AUDIT_FORMAT](data, source)
    assert isinstance(audit, AuditReport)  # by its reader
    return audit


def _row(one: _StoredServer, source: str) -> FleetServer:
    return FleetServer(
        name=one.name,
        outcome=one.outcome,
        reason=one.reason,
        hint=one.hint,
        compliance=one.compliance,
        audit=_audit(one.audit, f"{source}: {show(one.name, 80)}"),
        duration_ms=one.duration_ms,
        worker=one.worker,
        repeat=one.repeat,
    )
