"""Every command does a small job in an interpreter that starts for it: nothing is imported before.

Most tests of commands run them in a fork of a process that has all modules already.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.cli.app import COMMANDS
from tests.e2e.driving import Done, mcptest, mcptest_anew

DEMO = ("--server", "demo")
SUITE = {
    "server": {"command": "mcptest", "args": ["serve", "demo"]},
    "assert": {"tool": "add", "args": {"a": 1, "b": 2}, "expect": {"contains": ["3"]}},
}
CAPTURE = {
    "server_label": "one",
    "server_capabilities": {},
    "exchanges": [{"request": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}],
}
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
}
"""What each command is asked. Those that are not here are only asked for help."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(json.dumps(SUITE))
    (tmp_path / "c.json").write_text(json.dumps(CAPTURE))
    return tmp_path


def without_a_defect(done: Done) -> Done:
    assert "internal error" not in done.err
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_its_job_from_scratch(command: str, folder: Path) -> None:
    done = without_a_defect(mcptest_anew(command, *JOBS.get(command, ("--help",)), cwd=folder))
    assert done.code in {0, 1}, done.said
    assert done.said or command == "serve"


def test_a_fork_says_what_a_command_from_scratch_says(folder: Path) -> None:
    for argv in (("explain", "INV-003"), ("schema", "suite"), ("lint", *DEMO), ("nonsense",)):
        assert mcptest(*argv, cwd=folder) == mcptest_anew(*argv, cwd=folder)
