"""Every command does a small job in an interpreter that starts for it: nothing is imported before.

Most tests of commands run them in a fork of a process that has all modules already.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.commands.app import COMMANDS
from tests.e2e.driving import BOUND, Done, mcptest, mcptest_anew

DEMO = ("--server", "demo")
SUITE = {
    "server": {"command": sys.executable, "args": ["-m", "mcptest", "serve", "demo"]},
    "assert": {"tool": "add", "args": {"a": 1, "b": 2}, "expect": {"contains": ["3"]}},
}
CAPTURE = {
    "server_label": "one",
    "server_capabilities": {},
    "exchanges": [{"request": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}],
}
TRAJECTORY = {"tests": [{"name": "t", "trajectory": [{"type": "presence", "tools": ["add"]}]}]}
RUN = {"format": "mcptest.run/1", "results": [{"name": "one", "status": "PASS"}]}
JOBS: dict[str, tuple[str, ...]] = {
    "run": ("s.yaml", *DEMO),
    "ci": ("s.yaml", *DEMO),
    "matrix": ("s.yaml", "--languages", "one:demo"),
    "audit": DEMO,
    "lint": DEMO,
    "fuzz": (*DEMO, "--tool", "add", "--runs", "3", "--seed", "1"),
    "generate": (*DEMO, "--output", "generated"),
    "init": ("begun", *DEMO),
    "coverage": ("--suite", "s.yaml", *DEMO),
    "record": (*DEMO, "--out", "c.jsonl"),
    "compliance": ("invariants", "--capture", "c.json"),
    "explain": ("INV-003",),
    "doctor": (*DEMO, "--to", "2026-07-28"),
    "serve": ("demo",),
    "schema": ("suite",),
    "property": (*DEMO, "--examples", "2", "--seed", "1", "--property", "arguments"),
    "snapshot": ("s.yaml", *DEMO, "--update"),
    "watch": ("s.yaml", *DEMO),
    "intercept": ("--trajectory", "t.yaml", *DEMO),
    "fleet": ("mcp.json", "--spec-version", "2025-11-25"),
    "conformance": ("server", *DEMO, "--scenario", "tools-list"),
    "mcp": (),
    "report": ("run.json", "--html", "page.html"),
    "completion": ("bash",),
}
"""What each command is asked."""
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}
CONVERSATION = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
    )
)
"""For those who talk with a client on stdin."""
SAYS = {"mcp": "serverInfo", "serve": "serverInfo", "intercept": "serverInfo", "watch": "1 passed"}
ENDS = {"compliance": 1, "watch": 130, "intercept": 1}
"""The client above does not wait for answers, and the ping of the capture comes first of all."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(json.dumps(SUITE))
    (tmp_path / "c.json").write_text(json.dumps(CAPTURE))
    (tmp_path / "t.yaml").write_text(json.dumps(TRAJECTORY))
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"one": SUITE["server"]}}))
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return tmp_path


def done_by(command: str, folder: Path) -> Done:
    """As in `mcptest_anew`, with a client on stdin; one that would go on is interrupted."""
    with subprocess.Popen(
        [sys.executable, "-m", "mcptest", command, *JOBS[command]],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            return _until_its_end(process, command)
        finally:
            process.kill()


def _until_its_end(process: subprocess.Popen[str], command: str) -> Done:
    seen = ""
    if command == "watch":
        assert process.stdout is not None
        while SAYS[command] not in seen and (line := process.stdout.readline()):
            seen += line
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(CONVERSATION, timeout=BOUND)
    return Done(process.returncode, seen + out, err)


def without_a_defect(done: Done) -> Done:
    assert "internal error" not in done.err
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_its_job_from_scratch(command: str, folder: Path) -> None:
    done = without_a_defect(done_by(command, folder))
    assert done.code == ENDS.get(command, 0), done.said
    assert SAYS.get(command, "") in done.out
    assert done.out


def test_a_fork_says_what_a_command_from_scratch_says(folder: Path) -> None:
    for argv in (("explain", "INV-003"), ("schema", "suite"), ("lint", *DEMO), ("nonsense",)):
        assert mcptest(*argv, cwd=folder) == mcptest_anew(*argv, cwd=folder)


TRIPWIRE = """
import os, sys
_, number, where, *words = sys.argv
class Tripwire:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(number))
sys.meta_path.insert(0, Tripwire())
sys.argv = ["mcptest", *words]
from mcptest.__main__ import main
sys.exit(main())
"""
"""Gets a signal at the moment when a module is looked for."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "where", ["mcptest.commands.app", "msgspec", "mcptest.commands.audit.cli", "mcptest.probe"]
)
def test_a_signal_while_a_command_is_still_imported_is_an_interrupt(
    where: str, number: signal.Signals
) -> None:
    words = [sys.executable, "-c", TRIPWIRE, str(int(number)), where, "audit", *DEMO]
    done = subprocess.run(words, capture_output=True, text=True, timeout=BOUND)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "mcptest: interrupted\n")
