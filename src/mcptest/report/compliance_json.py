"""A judged server as JSON, `mcptest.compliance/1`: everything that was found, for any report later.

Beside what was found stand the numbers that a script would otherwise count itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcptest.model.compliance import COMPLIANCE_FORMAT, ComplianceReport, Judgement
from mcptest.model.errors import UsageError
from mcptest.model.show import show
from mcptest.model.verdict import Outcome
from mcptest.report.results_json import as_json, decode

_COUNTS = ("rules", "broken_musts", *(outcome.value for outcome in Outcome))
_ALWAYS = ("tool", "started", "server", "duration_ms", "exit_code", "gates")


class _Head(msgspec.Struct):
    format: str = ""


def compliance_as_json(report: ComplianceReport) -> bytes:
    """The whole report, from which every other can be made again."""
    written = msgspec.to_builtins(report)
    always = {name: written.get(name, getattr(report, name)) for name in _ALWAYS}
    judgements = [_judgement(one) for one in report.judgements]
    known = {"format": COMPLIANCE_FORMAT, **always}
    return as_json({**known, **written, **known, "judgements": judgements})


def _judgement(judgement: Judgement) -> dict[str, Any]:
    written: dict[str, Any] = msgspec.to_builtins(judgement)
    profile = {**written.pop("profile"), "id": judgement.profile.id}
    results = written.pop("results")
    return {
        **written,
        "profile": profile,
        "whole_corpus": judgement.whole_corpus,
        "summary": _summary(judgement),
        "results": results,
    }


def _summary(judgement: Judgement) -> dict[str, Any]:
    return {
        "rules": len(judgement.results),
        "broken_musts": judgement.broken_musts,
        **{outcome.value: judgement.count(outcome) for outcome in Outcome},
        "coverage": round(judgement.coverage, 4),
    }


def compliance_json_schema() -> dict[str, Any]:
    """The JSON Schema of what `compliance_as_json` writes."""
    schema = msgspec.json.schema(ComplianceReport)
    definitions = schema["$defs"]
    whole = definitions["ComplianceReport"]
    whole["properties"]["format"] = {"const": COMPLIANCE_FORMAT}
    whole["required"] = ["format", *_ALWAYS, "judgements"]
    count = {"type": "integer", "minimum": 0}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    judged = definitions["Judgement"]
    judged["properties"]["summary"] = {
        "type": "object",
        "properties": {**dict.fromkeys(_COUNTS, count), "coverage": share},
        "required": [*_COUNTS, "coverage"],
    }
    judged["required"] += ["whole_corpus", "summary"]
    definitions["Profile"]["properties"]["id"] = {"type": "string"}
    definitions["Profile"]["required"] += ["id"]
    return schema


def read_compliance(data: bytes, source: str = "the saved report") -> ComplianceReport:
    """What `compliance_as_json` wrote. `source` is the name of the file, for the error."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    found = decode(data, _Head, source).format
    if found != COMPLIANCE_FORMAT:
        said = f"its format is {show(found)}" if found else "it does not name its format"
        raise UsageError(
            f"{source} can't be read: {said}, not {COMPLIANCE_FORMAT}",
            hint="save it with mcptest compliance run --json-file, by a version that is not newer",
        )
    report: ComplianceReport = decode(data, ComplianceReport, source)
    return report
