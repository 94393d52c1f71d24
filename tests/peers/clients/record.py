"""`python -m tests.peers.clients.record [NAME…]`: put client libraries through the scenarios.

Each library that is installed runs its driver in `mcptest conformance client`, over HTTP and over
stdio, in the revision that is chosen for it. What is kept: the captures, in one archive for each
library, and what was found, in `verdicts.json`. The captures are judged again by the tests; after a
change of how we judge, `--judge` brings `verdicts.json` up to date without the libraries.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcptest.core.revision import Era, Revision
from mcptest.core.scenario_outcome import CheckStatus, ScenarioResult
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.judged_client import judged_capture
from mcptest.probe.conformance.scenario_catalogue import scenario_named, scenario_table
from tests.peers.clients.libraries import HERE, LIBRARIES, ROOT, Library

VERDICTS = HERE / "verdicts.json"
TRANSPORTS = ("http", "stdio")
OURS = ("era-fallback", "tools-paging", "slow-call", "server-error", "unknown-response")
"""Of what only mcptest has: where clients differ, and no capture is large."""
FIRST = "tools_call"
"""Shows which revision a library speaks."""
CLIENT_EXIT = "client-exit"
"""How a client ended is known only to whoever ran it."""
_LIMIT = "60s"


def scenarios(transport: str, spoken: Revision) -> list[str]:
    """The core of the suite, and a few of what clients should survive.

    A client of the stateless era falls back to the handshake, so it is put through all of them.
    """
    return [
        one.name
        for one in scenario_table(Side.CLIENT).values()
        if ("core" in one.suites or one.name in OURS)
        and transport in one.transports
        and (spoken.era is Era.STATELESS or spoken in one.revisions)
    ]


def main(words: list[str]) -> int:
    names = [one for one in words if one != "--judge"]
    chosen = [one for one in LIBRARIES if not names or one.name in names]
    if "--judge" in words:
        verdicts = stored_verdicts()
        for library in chosen:
            if library.name in verdicts:
                _judge_again(library, verdicts[library.name])
        _write(verdicts)
        return 0
    for library in chosen:
        if not library.home.exists():
            print(f"{library.name}: not installed (make client-peers)")
            continue
        found = recorded(library)
        _write(stored_verdicts() | {library.name: found})
    return 0


def stored_verdicts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    return found


def _write(verdicts: dict[str, Any]) -> None:
    ordered = {one.name: verdicts[one.name] for one in LIBRARIES if one.name in verdicts}
    VERDICTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def judged(library: Library, stored: dict[str, Any]) -> Iterator[ScenarioResult]:
    """Every scenario as it is judged by what was captured, without the client."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(library.captures) as archive:
        archive.extractall(folder)
        for transport in TRANSPORTS:
            for name in stored[transport]:
                capture = Path(folder, transport, f"{name}.jsonl")
                yield judged_capture(scenario_named(Side.CLIENT, name), [str(capture)])


def _judge_again(library: Library, stored: dict[str, Any]) -> None:
    for result in judged(library, stored):
        row = stored[result.transport][result.scenario]
        ended = row["failed"].get(CLIENT_EXIT)
        counts = (
            ended is not None and not scenario_named(Side.CLIENT, result.scenario).client_may_fail
        )
        row["failed"] = _with_status(result, CheckStatus.FAILURE)
        row["failed"] |= {CLIENT_EXIT: ended} if counts else {}
        row.pop("warned", None)
        if warned := _with_status(result, CheckStatus.WARNING):
            row["warned"] = warned


def _with_status(result: ScenarioResult, status: CheckStatus) -> dict[str, str]:
    return {one.id: one.message for one in result.checks if one.status is status}


def recorded(library: Library) -> dict[str, Any]:
    found: dict[str, Any] = {"recorded": datetime.now(UTC).date().isoformat()}
    library.captures.parent.mkdir(exist_ok=True)
    kept = library.captures.with_suffix(".part")
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for transport in TRANSPORTS:
            found[transport] = _put_through(library, transport, archive)
            bad = {name: [*row["failed"]] for name, row in found[transport].items()}
            print(library.name, transport, {name: one for name, one in bad.items() if one})
    kept.replace(library.captures)
    return found


def _put_through(
    library: Library, transport: str, archive: zipfile.ZipFile
) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        (first,) = _run(library, transport, [FIRST], Path(folder))
        if not any(row["status"] == "SUCCESS" for row in first["checks"]):
            sys.exit(f"{library.name} does not run over {transport}: {first.get('cause', '')}")
        others = scenarios(transport, Revision(first["revision"]))
        others.remove(FIRST)
        results = [first, *_run(library, transport, others, Path(folder))]
        for result in results:
            (capture,) = Path(folder).glob(f"{result['scenario']}-2*/capture.jsonl")
            _add(archive, f"{transport}/{result['scenario']}.jsonl", capture)
        return {result["scenario"]: _row(result) for result in results}


def _run(library: Library, transport: str, names: list[str], folder: Path) -> list[dict[str, Any]]:
    report = folder / "report.json"
    words = [sys.executable, "-m", "mcptest", "conformance", "client", "--quiet"]
    words += ["--command", shlex.join(library.command()), "--transport", transport]
    words += ["--timeout", _LIMIT, "--output", str(folder), "--json-file", str(report)]
    for name in names:
        words += ["--scenario", name]
    # Its output goes to the report, and its exit code says only that something failed.
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    results: list[dict[str, Any]] = json.loads(report.read_text())["results"]
    return results


def _add(archive: zipfile.ZipFile, name: str, capture: Path) -> None:
    about = zipfile.ZipInfo(name)  # without the time, so that the same bytes are the same archive
    about.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(about, capture.read_bytes())


def _row(result: dict[str, Any]) -> dict[str, Any]:
    rows = result["checks"]
    failed = {row["id"]: row.get("message", "") for row in rows if row["status"] == "FAILURE"}
    warned = {row["id"]: row.get("message", "") for row in rows if row["status"] == "WARNING"}
    passed = sum(row["status"] == "SUCCESS" for row in rows)
    known = {"revision": result["revision"], "passed": passed, "failed": failed}
    return known | ({"warned": warned} if warned else {}) | _why(result)


def _why(result: dict[str, Any]) -> dict[str, Any]:
    return {"cause": result["cause"]} if result.get("cause") else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
