"""Servers that other people wrote, put through the suite: each verdict was looked at by hand."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckStatus, ScenarioResult
from mcptest.transport.target import Target
from tests.conformance.served import ROOT, STARTING, rows_of, run_all
from tests.peers.warm_peers import warm_peer

PEERS = ROOT / "tests" / "peers"
SERVERS = PEERS / "npm" / "node_modules" / "@modelcontextprotocol"
EVERYTHING = ("node", str(SERVERS / "server-everything" / "dist" / "index.js"))
SDK = (sys.executable, str(PEERS / "python_sdk_server.py"))
D, E = Revision.V2025_11_25, Revision.V2026_07_28


def bad(results: list[ScenarioResult]) -> set[str]:
    return {row.id for row in rows_of(results) if row.status.is_bad}


def is_there(results: list[ScenarioResult]) -> None:
    """Something was judged, and what was not says what would unlock it."""
    rows = rows_of(results)
    assert sum(row.status is CheckStatus.SUCCESS for row in rows) > 10
    assert all(row.message for row in rows if row.status is CheckStatus.UNTESTABLE)
    assert [result.cause for result in results if result.cause] == []


@pytest.mark.parametrize("revision", [D, E], ids=str)
def test_a_server_of_the_python_sdk_conforms_as_far_as_it_can_be_tested(revision: Revision) -> None:
    target = Target(way="stdio", label="sdk", command=warm_peer(*SDK))
    results = run_all(target, revision, timeout=20.0)
    is_there(results)
    assert bad(results) == set()


@pytest.mark.npm
def test_server_everything_conforms_over_stdio() -> None:
    target = Target(way="stdio", label="everything", command=(*EVERYTHING, "stdio"))
    results = run_all(target, D, timeout=20.0)
    is_there(results)
    assert bad(results) == set()


@pytest.mark.npm
def test_server_everything_forgets_a_status_and_lets_pages_in_over_http() -> None:
    """It answers an ended session with 400, and any Host and Origin."""
    with everything_over_http() as target:
        results = run_all(target, D, timeout=20.0)
        refused = run_all(target, E, timeout=20.0)
    is_there(results)
    assert bad(results) == {
        "server-session-terminated-returns-404",
        "localhost-host-rebinding-rejected",
    }
    assert all("only 2025-11-25" in result.cause for result in refused)


@contextmanager
def everything_over_http() -> Iterator[Target]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        [*EVERYTHING, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = ""
        while "listening" not in line:
            assert select.select([process.stderr], [], [], STARTING)[0], "it does not listen"
            line = process.stderr.readline()
            assert line, "it is gone"
        yield Target(way="http", label="everything", url=f"http://127.0.0.1:{port}/mcp")
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
