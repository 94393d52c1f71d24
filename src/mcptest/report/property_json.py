"""A run of property tests as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.property import Counterexample, PropertyReport, PropertyResult
from mcptest.report.indented_json import indented_json


def property_as_json(report: PropertyReport) -> bytes:
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
        "properties": [_property(one, report) for one in report.properties],
        "summary": {
            "properties": len(report.properties),
            "skipped": sum(bool(one.skipped) for one in report.properties),
            "examples": report.examples,
            "counterexamples": len(report.counterexamples),
            "failures": len(report.failures),
        },
        "failed": report.failed,
        "interrupted": report.interrupted,
        "notes": list(report.notes),
        "problems": list(report.problems),
        "restarts": report.restarts,
        "generated_at": report.started,
        "duration_ms": report.duration_ms,
    }
    return indented_json(value)


def _property(one: PropertyResult, report: PropertyReport) -> dict[str, Any]:
    shown = {
        "name": one.name,
        "about": one.about,
        "examples": one.examples,
        "replayed": one.replayed,
        "counterexamples": [_found(found, report) for found in one.counterexamples],
        "notes": list(one.notes),
        "duration_ms": one.duration_ms,
        "generating_ms": one.generating_ms,
    }
    more = {"skipped": one.skipped, "ended_early": one.ended_early}
    return {**shown, **{name: text for name, text in more.items() if text}}


def _found(found: Counterexample, report: PropertyReport) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(found)
    return {**shown, "counts": report.counts(found), "messages": found.messages}
