"""`fuzz` of both tools on real servers: the same tools, and each difference is one we mean."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, NPM, mcptest
from tests.peers.warm_peers import warm_peer

mcp_assert = pytest.importorskip("mcp_assert", reason="mcp-assert is not installed")
BINARY = Path(mcp_assert.__file__).parent / "bin" / "mcp-assert"
pytestmark = pytest.mark.skipif(not NPM.is_dir(), reason="the npm servers are not installed")
EXPLAINED = {
    "null args": "a malformed request is refused with -32603, which is no crash",
    "NaN": "no message can hold it: mcp-assert fails to send it",
    "positive infinity": "the same",
    "negative infinity": "the same",
}


def theirs(server: str, *options: str) -> dict[str, Any]:
    words = ("--seed", "7", "--runs", "40", "--json", *options)
    command = [str(BINARY), "fuzz", "--server", server, *words]
    done = subprocess.run(command, capture_output=True, timeout=BOUND, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ours(server: str, *options: str) -> dict[str, Any]:
    words = ("--seed", "7", "--runs", "40", "--json", "--include-writes", *options)
    found: dict[str, Any] = json.loads(mcptest("fuzz", "--server", server, *words).out)
    return found


def tools_of(report: dict[str, Any]) -> set[str]:
    return {one["tool"] for one in report["tools"]}


@pytest.mark.parametrize("name", ["server-filesystem", "server-memory"])
def test_the_same_tools_and_every_failure_of_theirs_is_explained(name: str, tmp_path: Path) -> None:
    index = NPM / name / "dist" / "index.js"
    memory = tmp_path / "memory.jsonl"
    folder = f" {tmp_path}" if name == "server-filesystem" else ""
    server = f"env MEMORY_FILE_PATH={memory} node {index}{folder}"
    their_report, our_report = theirs(server), ours(server)
    assert tools_of(their_report) == tools_of(our_report)
    labels = {
        failure["label"].rpartition(": ")[2]
        for tool in their_report["tools"]
        for failure in tool["failures"]
    }
    assert "null args" in labels
    assert labels <= set(EXPLAINED)
    assert our_report["summary"]["total_failures"] == 0
    assert our_report["summary"]["total_runs"] == their_report["summary"]["total_runs"]


def classes(report: dict[str, Any]) -> dict[str, set[str]]:
    """What each tool was found to do, without what is explained."""
    return {
        tool["tool"]: {
            failure["status"]
            for failure in tool.get("failures", ())
            if failure["label"].rpartition(": ")[2] not in EXPLAINED
        }
        for tool in report["tools"]
    }


def test_the_everything_server_is_classed_the_same() -> None:
    """It has a tool that is slower than the time-out, and some that only we are shown."""
    server = f"node {NPM / 'server-everything' / 'dist' / 'index.js'}"
    options = ("--runs", "5", "--timeout", "300ms")
    before = classes(theirs(server, *options))
    now = classes(ours(server, *options, "--startup-timeout", "30s"))
    assert before["trigger-long-running-operation"] == {"timeout"}
    assert now["trigger-long-running-operation"] == {"hang"}
    # One waits for a host that can't be reached, which takes as long as the machine likes.
    slow = {"trigger-long-running-operation", "gzip-file-as-resource"}
    assert {one for one in before.keys() - slow if before[one]} == set()
    assert {one for one in now.keys() - slow if now[one]} == set()
    hidden = {"get-roots-list", "trigger-elicitation-request", "trigger-sampling-request"}
    assert now.keys() - before.keys() == hidden
    assert before.keys() - now.keys() == {"simulate-research-query"}


def test_mcp_server_time_is_classed_the_same() -> None:
    """With few inputs: it writes much to stderr, which mcp-assert does not read."""
    server = shlex.join(warm_peer(str(Path(sys.executable).with_name("mcp-server-time"))))
    before, now = theirs(server, "--runs", "4"), ours(server, "--runs", "4")
    assert tools_of(before) == tools_of(now) == {"get_current_time", "convert_time"}
    assert classes(before) == classes(now)
