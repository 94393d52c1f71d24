"""A tool that says both that it only reads and that it destroys is called by no command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.driving import mcptest

STRANGER = Path(__file__).with_name("stranger_server.py")
COMMANDS = {
    "audit": ("audit",),
    "lint": ("lint",),
    "fuzz": ("fuzz", "--runs", "2"),
    "property": ("property", "--examples", "2", "--no-database"),
    "init": ("init", "evals"),
    "record": ("record", "--out", "session.jsonl"),
    "compliance run": ("compliance", "run"),
    "conformance server": ("conformance", "server"),
    "doctor": ("doctor", "--to", "2026-07-28"),
}


def judged(command: str, way: str, folder: Path) -> bool:
    """Whether a tool was called; the server notes it in a file."""
    called = folder / "called"
    server = f"{sys.executable} -S {STRANGER} {way} {called}"
    done = mcptest(*COMMANDS[command], "--server", server, cwd=folder)
    assert done.code in {0, 1, 4}, done.said
    return called.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_contradiction_is_not_safe(command: str, tmp_path: Path) -> None:
    assert not judged(command, "contradicts", tmp_path)


@pytest.mark.parametrize("command", ["audit", "record", "compliance run", "doctor"])
def test_a_tool_that_only_reads_is_called(command: str, tmp_path: Path) -> None:
    assert judged(command, "notes-calls", tmp_path)
