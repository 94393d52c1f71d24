"""SIGKILL leaves us no time to tidy up; our servers end all the same, with all they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND, wait_until
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
