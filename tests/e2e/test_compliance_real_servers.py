"""Servers of other people, judged: exactly these rules fail, so that a false finding shows at once.

The versions of the servers are pinned. Why each finding is one, and which bytes show it, is told in
docs/compliance/findings.md.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.driving import NPM, PEERS, PYTHON_SDK, free_port, listening, mcptest
from tests.peers.warm_peers import warm_peer

pytestmark = pytest.mark.peer

Failing = Mapping[str, str]
"""The rules that fail, by revision, with blanks between them."""
_BOUND = 300.0
"""Silence is waited out in each revision, and a busy machine starts Node slowly."""

NODE_EVERYTHING = ("node", str(NPM / "server-everything" / "dist" / "index.js"))
NODE_FILES = ("node", str(NPM / "server-filesystem" / "dist" / "index.js"))
NODE_MEMORY = ("node", str(NPM / "server-memory" / "dist" / "index.js"))
FASTMCP = (sys.executable, str(PEERS / "fastmcp_server.py"))
TIME = (str(Path(sys.executable).with_name("mcp-server-time")),)
ASKING = (sys.executable, str(PEERS / "python_sdk_input_server.py"))

NO_PAGES = "PAGE-101 PAGE-102 PAGE-103"
SILENT = "JSONRPC-002 JSONRPC-003"

EVERYTHING_OVER_HTTP: Failing = {
    "2024-11-05": f"CONTENT-001 HTTP-101 LOG-102 {NO_PAGES} RES-102 TOOLS-005",
    "2025-03-26": "COMPL-004 CONTENT-001 HTTP-101 HTTP-105 HTTP-106 LOG-102 "
    f"{NO_PAGES} RES-102 TOOLS-005",
    "2025-06-18": "COMPL-004 HTTP-101 HTTP-105 HTTP-106 JSONRPC-007 LOG-102 "
    f"{NO_PAGES} RES-102 TOOLS-005",
    "2025-11-25": "COMPL-004 HTTP-101 HTTP-105 HTTP-106 JSONRPC-007 LOG-102 MSG-010 "
    f"{NO_PAGES} RES-102 TASK-012 TOOLS-005",
}
EVERYTHING_OVER_SSE: Failing = {
    "2024-11-05": f"CONTENT-001 HTTP-101 LOG-102 {NO_PAGES} RES-102 TOOLS-005",
    "2025-03-26": "COMPL-004 CONTENT-001 HTTP-101 JSONRPC-006 LOG-102 "
    f"{NO_PAGES} RES-102 TOOLS-005",
    "2025-06-18": f"COMPL-004 HTTP-101 LOG-102 {NO_PAGES} RES-102 TOOLS-005",
    "2025-11-25": f"COMPL-004 HTTP-101 LOG-102 {NO_PAGES} RES-102 TASK-012 TOOLS-005",
}
SDK_OVER_HTTP: Failing = {
    "2024-11-05": f"{NO_PAGES} PROMPT-102 PROMPT-103 RES-102 TOOLS-005",
    "2025-03-26": f"JSONRPC-006 {NO_PAGES} PROMPT-102 PROMPT-103 RES-102 TOOLS-005",
    "2025-06-18": f"{NO_PAGES} PROMPT-102 PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
    "2025-11-25": f"HTTP-131 MSG-010 {NO_PAGES} PROMPT-102 PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
    "2026-07-28": f"HTTP-111 MSG-010 {NO_PAGES} PROMPT-102 PROMPT-103 TOOLS-003 TOOLS-005",
}
FASTMCP_OVER_HTTP: Failing = {
    "2024-11-05": f"HTTP-101 {NO_PAGES} PROMPT-103 RES-102 TOOLS-005",
    "2025-03-26": f"HTTP-101 JSONRPC-006 {NO_PAGES} PROMPT-103 RES-102 TOOLS-005",
    "2025-06-18": f"HTTP-101 {NO_PAGES} PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
    "2025-11-25": f"HTTP-101 HTTP-131 MSG-010 {NO_PAGES} PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
    "2026-07-28": f"HTTP-101 HTTP-111 MSG-010 {NO_PAGES} PROMPT-103 TOOLS-003 TOOLS-005",
}
FASTMCP_OVER_SSE: Failing = {
    "2024-11-05": f"HTTP-101 {NO_PAGES} PROMPT-103 RES-102 TOOLS-005",
    "2025-03-26": f"HTTP-101 JSONRPC-006 {NO_PAGES} PROMPT-103 RES-102 TOOLS-005",
    "2025-06-18": f"HTTP-101 {NO_PAGES} PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
    "2025-11-25": f"HTTP-101 {NO_PAGES} PROMPT-103 RES-102 TOOLS-003 TOOLS-005",
}
FILES: Failing = {
    "2024-11-05": f"{SILENT} PAGE-101 TOOLS-005",
    "2025-03-26": f"{SILENT} JSONRPC-006 PAGE-101 TOOLS-005",
    "2025-06-18": f"{SILENT} PAGE-101 TOOLS-003 TOOLS-005",
    "2025-11-25": f"{SILENT} PAGE-101 TASK-006 TOOLS-003 TOOLS-005",
}


def failing(folder: Path, server: str, *argv: str) -> dict[str, set[str]]:
    """Which rules fail, by revision. Nothing may be left undecided."""
    report = folder / "report.json"
    words = ("--server", server, "--json-file", str(report), *argv)
    done = mcptest("compliance", "run", *words, bound=_BOUND)
    assert report.exists(), done.said
    found: dict[str, set[str]] = {}
    for judgement in json.loads(report.read_bytes())["judgements"]:
        outcomes = {one["id"]: one["outcome"] for one in judgement["results"]}
        assert "inconclusive" not in outcomes.values(), done.said
        failed = {name for name, outcome in outcomes.items() if outcome == "fail"}
        found[judgement["revision"]] = failed
    return found


def expected(failing: Failing) -> dict[str, set[str]]:
    return {revision: set(rules.split()) for revision, rules in failing.items()}


# -- over HTTP: all revisions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "path", "ready", "failures"),
    [
        pytest.param(
            (*NODE_EVERYTHING, "streamableHttp"),
            "/mcp",
            "listening",
            EVERYTHING_OVER_HTTP,
            marks=pytest.mark.npm,
            id="everything-http",
        ),
        pytest.param(
            (*NODE_EVERYTHING, "sse"),
            "/sse",
            "running",
            EVERYTHING_OVER_SSE,
            marks=pytest.mark.npm,
            id="everything-sse",
        ),
        pytest.param(
            (*PYTHON_SDK, "streamable-http"), "/mcp", "running on", SDK_OVER_HTTP, id="sdk-http"
        ),
        pytest.param(
            (*FASTMCP, "http"), "/mcp", "running on", FASTMCP_OVER_HTTP, id="fastmcp-http"
        ),
        pytest.param((*FASTMCP, "sse"), "/sse", "running on", FASTMCP_OVER_SSE, id="fastmcp-sse"),
    ],
)
def test_over_http_exactly_the_known_deviations_are_found_in_every_revision(
    tmp_path: Path, command: tuple[str, ...], path: str, ready: str, failures: Failing
) -> None:
    port = free_port()
    line = command if command[0] == "node" else (*command, str(port))
    with listening(line, ready, {"PORT": str(port)}):
        url = f"http://127.0.0.1:{port}{path}"
        assert failing(tmp_path, url, "--spec-version", "all") == expected(failures)


# -- over stdio --------------------------------------------------------------------------------


@pytest.mark.npm
def test_over_stdio_exactly_the_known_deviations_are_found_in_every_revision(
    tmp_path: Path,
) -> None:
    (tmp_path / "note.txt").write_text("hello")
    server = shlex.join((*NODE_FILES, str(tmp_path)))
    assert failing(tmp_path, server, "--spec-version", "all") == expected(FILES)


@pytest.mark.parametrize(
    ("command", "failures"),
    [
        pytest.param(
            (*NODE_EVERYTHING, "stdio"),
            {"2025-11-25": f"COMPL-004 {SILENT} LOG-102 {NO_PAGES} RES-102 TASK-012 TOOLS-005"},
            marks=pytest.mark.npm,
            id="everything",
        ),
        pytest.param(
            NODE_MEMORY,
            {"2025-11-25": f"{SILENT} PAGE-101 PAGE-102 RES-102 TASK-006 TOOLS-005"},
            marks=pytest.mark.npm,
            id="memory",
        ),
        pytest.param(TIME, {"2026-07-28": f"{SILENT} {NO_PAGES} PROMPT-102"}, id="time"),
        pytest.param(
            (*PYTHON_SDK, "stdio"),
            {"2026-07-28": f"{SILENT} {NO_PAGES} PROMPT-102 PROMPT-103 TOOLS-003 TOOLS-005"},
            id="sdk",
        ),
        pytest.param(
            (*FASTMCP, "stdio"),
            {"2026-07-28": f"{SILENT} {NO_PAGES} PROMPT-103 TOOLS-003 TOOLS-005"},
            id="fastmcp",
        ),
    ],
)
def test_over_stdio_exactly_the_known_deviations_are_found_in_the_newest_revision(
    tmp_path: Path, command: tuple[str, ...], failures: Failing
) -> None:
    memory = f"MEMORY_FILE_PATH={tmp_path / 'memory.json'}"
    if command[0] != "node":
        command = warm_peer(*command)
    found = failing(tmp_path, shlex.join(command), "--env", memory)
    assert found == expected(failures)


# -- what takes a fixture, or an older revision ------------------------------------------------


def test_the_python_sdk_drops_batches_where_the_revision_has_them(tmp_path: Path) -> None:
    found = failing(
        tmp_path,
        shlex.join(warm_peer(*PYTHON_SDK, "stdio")),
        *("--spec-version", "2025-03-26"),
        *("--rule", "JSONRPC-006", "--rule", "RES-102", "--rule", "JSONRPC-005"),
    )
    assert found == {"2025-03-26": {"JSONRPC-006", "RES-102"}}


def test_the_python_sdk_asks_for_input_that_the_client_can_not_give(tmp_path: Path) -> None:
    found = failing(
        tmp_path,
        shlex.join(warm_peer(*ASKING)),
        *("--spec-version", "2026-07-28", "--map", "asking_tool=ask"),
        *("--rule", "PROTO-017", "--rule", "PROTO-018", "--rule", "PROTO-010"),
    )
    assert found == {"2026-07-28": {"PROTO-017", "PROTO-018"}}
