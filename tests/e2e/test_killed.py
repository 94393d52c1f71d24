"""SIGKILL leaves us no time to tidy up; our servers end all the same, with all they started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.transport.descendants import tree_of
from tests.agents.asking import Agent
from tests.e2e.driving import BOUND, is_alive, wait_until
from tests.e2e.stubborn_servers import Stubborn

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere only the process group is found"
)
DEAF = ("hangs", "deaf-to-eof", "deaf-to-signals", "grandchild")
SUITE = """
server: {command: %r, args: [%s]}
tests:
  - name: it looks
    assert: {tool: look, expect: {not_error: true}}
"""


def start(folder: Path, *argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcptest", *argv],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def words_of(command: str, server: Stubborn, folder: Path) -> list[str]:
    behind = ["--", *server.command]
    if command == "run":
        suite = folder / "suite.yaml"
        program, *arguments = server.command
        suite.write_text(SUITE % (program, ", ".join(map(repr, arguments))))
        return ["run", str(suite)]
    if command == "record":
        return ["record", "--out", str(folder / "seen.jsonl"), "--call", "look", *behind]
    if command == "compliance":
        return ["compliance", "run", *behind]
    if command == "conformance client":
        return ["conformance", "client", "--command", " ".join(server.command)]
    return [command, *behind]


@pytest.mark.parametrize(
    "command", ["run", "audit", "record", "fuzz", "compliance", "conformance client", "property"]
)
def test_a_deaf_server_and_its_hidden_grandchild_end_when_we_are_killed(
    command: str, tmp_path: Path
) -> None:
    server = Stubborn(tmp_path, *DEAF)
    process = start(tmp_path, *words_of(command, server, tmp_path))
    try:
        wait_until(lambda: server.processes, "the server")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=BOUND)
        server.assert_gone()
    finally:
        process.kill()
        process.communicate()


def test_the_servers_of_an_agent_end_when_we_are_killed(tmp_path: Path) -> None:
    """`mcptest mcp` runs each command in a process of its own, which has servers of its own."""
    server = Stubborn(tmp_path, *DEAF)
    program, *arguments = server.command
    configuration = {"mcpServers": {"deaf": {"command": program, "args": arguments}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(configuration))
    with Agent(tmp_path, "--allow-run", "--allow-server", "deaf") as agent:
        call = {"name": "audit_server", "arguments": {"server_name": "deaf"}}
        agent.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call})
        wait_until(lambda: server.processes, "the server")
        below = list(tree_of(agent.process.pid))
        agent.process.kill()
        server.assert_gone()
        wait_until(lambda: not any(map(is_alive, below)), "the end of what runs commands")


def test_workers_end_when_the_process_that_forked_them_is_killed(tmp_path: Path) -> None:
    server = Stubborn(tmp_path, *DEAF)
    patience = ("--timeout", "10m", "--startup-timeout", "10m", "--max-time", "10m")
    process = start(tmp_path, "property", "--jobs", "2", *patience, "--", *server.command)
    try:
        wait_until(lambda: len(forks_of(process.pid)) > 1, "workers")
        workers = forks_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        server.assert_gone()
        wait_until(lambda: not any(map(is_alive, workers)), "the end of the workers")
    finally:
        process.kill()
        process.communicate()


def forks_of(pid: int) -> list[int]:
    """Who has the command line of this process, below it."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    found = []
    for child in tree_of(pid):
        with contextlib.suppress(OSError):
            if child != pid and Path(f"/proc/{child}/cmdline").read_bytes() == command:
                found.append(child)
    return found


def test_an_orderly_end_leaves_nobody_behind_who_waited_for_ours(tmp_path: Path) -> None:
    """The lifeline itself is a process too."""
    server = Stubborn(tmp_path)
    process = start(tmp_path, *words_of("record", server, tmp_path))
    wait_until(lambda: server.processes, "the server")
    process.communicate(timeout=BOUND)
    assert process.returncode == 0
    mark = str(tmp_path).encode()

    def lifelines() -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                folder = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"mcptest-lifeline" in command and mark in folder:
                found.append(int(entry.name))
        return found

    wait_until(lambda: not lifelines(), "the end of the lifeline")
