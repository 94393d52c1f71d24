"""Reports of commands that know no `--format agent`, in that form: a verdict, then the failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.model.errors import McptestError
from mcptest.model.results import RunReport
from mcptest.model.show import show
from mcptest.report import agent
from mcptest.report.sessions_run import sessions_as_run
from mcptest.report.stored import read_stored
from mcptest.report.verdicts_json import Report

MAX_BYTES = 8 * 1024 * 1024
_DOCTOR = b'"schema": "mcptest.doctor/1"'
_SHOWN = 400


def retold(report: bytes, code: int, repeat: str) -> str:
    """The report for a program that reads text; nothing where it can't be told so."""
    if not 0 < len(report) <= MAX_BYTES:
        return ""
    if _DOCTOR in report[:200]:
        return "\n".join(_diagnoses(msgspec.json.decode(report), repeat))
    try:
        stored = read_stored(report, "report").report
    except McptestError:
        return ""  # of another kind: the text of the command stands
    if isinstance(stored, Report):
        run = sessions_as_run(stored, strict="--strict" in repeat)
    elif isinstance(stored, RunReport):
        run = _without_commands(stored)
    else:
        return ""
    return agent.render(run, code, repeat=repeat).decode().strip("\n")


def _without_commands(run: RunReport) -> RunReport:
    """Anybody may have written the file: no command in it is handed to whoever might run it."""
    results = tuple(
        msgspec.structs.replace(one, proof=msgspec.structs.replace(one.proof, repeat=""))
        if one.proof is not None
        else one
        for one in run.results
    )
    return msgspec.structs.replace(run, results=results)


def _diagnoses(found: dict[str, Any], repeat: str) -> Iterator[str]:
    counts = ", ".join(
        f"{number} {word.replace('_', ' ')}" for word, number in found["summary"].items() if number
    )
    verdict = "FAIL" if found["breaks"] else "PASS"
    yield f"{verdict}: from {found['from']} to {found['to']}: {counts}"
    for item in found["items"]:
        if item["verdict"] in {"breaks", "unknown"}:
            said = f"{item['title']}: {item['verdict']}: {item['detail']}"
            fix = f" / fix: {item['fix']}" if item["fix"] else ""
            yield f"{repeat}  # {show(item['id'], 60)}: {show(said + fix, _SHOWN)}"
