"""Writing what became of a scenario, in the folders and the words of the official suite."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path
from typing import Any

from mcptest.model.conformance import CheckResult, ScenarioResult, Status
from mcptest.model.errors import UsageError
from mcptest.model.verdict import Side
from mcptest.transport.files import replace_file

CAPTURE = "capture.jsonl"
_SERVER = "server-"
_MOST = 1_000


def write_results(folder: Path, result: ScenarioResult) -> Path:
    """Make `<scenario>-<time>/` with `checks.json` and, of a client, its output and capture."""
    now = datetime.datetime.now(datetime.UTC)
    place = _new_folder(folder, result, now)
    rows = [_row(check, now) for check in result.checks]
    replace_file(place / "checks.json", _json(rows))
    if result.side is Side.CLIENT:
        replace_file(place / "stdout.txt", result.stdout.encode("utf-8", "backslashreplace"))
        replace_file(place / "stderr.txt", result.stderr.encode("utf-8", "backslashreplace"))
    if result.capture:
        _copy(Path(result.capture), place / CAPTURE)
    return place


def _new_folder(folder: Path, result: ScenarioResult, now: datetime.datetime) -> Path:
    stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = result.scenario if result.side is Side.CLIENT else f"{_SERVER}{result.scenario}"
    base = f"{name}-{stamp.replace(':', '-').replace('.', '-')}"
    for number in range(1, _MOST + 1):
        place = folder / (base if number == 1 else f"{base}-{number}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"can't write results to {folder}: {error.strerror}") from None
        return place
    raise UsageError(f"can't write results to {folder}: there is no free name")


def _row(check: CheckResult, now: datetime.datetime) -> dict[str, Any]:
    status = Status.SKIPPED if check.status is Status.UNTESTABLE else check.status
    row: dict[str, Any] = {
        "id": check.id,
        "name": check.name,
        "description": check.description,
        "status": status.value,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "specReferences": [{"id": one.id, "url": one.url} for one in check.references],
    }
    details = dict(check.details)
    if check.record is not None:
        details["record"] = check.record
    if check.excerpt:
        details["excerpt"] = check.excerpt
    if details:
        row["details"] = details
    if check.message:
        row["errorMessage"] = check.message
    return row


def _json(rows: list[dict[str, Any]]) -> bytes:
    text = json.dumps(rows, indent=2, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _copy(capture: Path, place: Path) -> None:
    try:
        shutil.copyfile(capture, place)
        place.chmod(0o600)
    except OSError as error:
        raise UsageError(f"can't copy the capture to {place}: {error.strerror}") from None
