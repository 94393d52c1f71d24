"""Two commands that keep their captures in one folder: none spoils what the other one kept.

Most give their captures names that another run gives as well, and are refused before they begin.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND, awkward, mcptest, wait_until

SUITE = "assert: {tool: echo, args: {text: hi}, expect: {not_error: true}}\n"
DEMO = ("--server", "demo")
KEEPING: dict[str, tuple[str, ...]] = {
    "run": ("run", "s.yaml", *DEMO),
    "ci": ("ci", "s.yaml", *DEMO),
    "matrix": ("matrix", "s.yaml", "--languages", "a:demo"),
    "snapshot": ("snapshot", "s.yaml", "--update", *DEMO),
    "watch": ("watch", "s.yaml", *DEMO),
    "audit": ("audit", *DEMO),
    "lint": ("lint", *DEMO),
    "fuzz": ("fuzz", "--runs", "1", *DEMO),
    "property": ("property", "--examples", "1", "--no-database", *DEMO),
    "generate": ("generate", "--output", "made", *DEMO),
    "init": ("init", "made", *DEMO),
    "coverage": ("coverage", "s.yaml", *DEMO),
    "fleet": ("fleet", "mcp.json"),
}
SHARING: dict[str, tuple[str, ...]] = {
    "compliance run": ("compliance", "run", *DEMO),
    "doctor": ("doctor", "--to", "2026-07-28", *DEMO),
}
"""Each run of these gives its captures names of its own."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a command that is at work."""
    folder = tmp_path_factory.mktemp("first")
    note = folder / "pid"
    words = ("audit", "--timeout", "10m", "--save-capture", str(folder / "wire"))
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", *words, "--", *awkward("stuck-call", str(note))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: note.is_file() and note.read_text(), "the call that hangs")
        yield folder / "wire"
    finally:
        process.terminate()
        process.wait(BOUND)


@pytest.mark.parametrize("command", KEEPING)
def test_a_folder_that_another_command_keeps_its_captures_in_is_refused(
    command: str, kept: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    server = {"command": sys.executable, "args": ["-m", "mcptest", "serve", "demo"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": server}}))
    before = sorted(kept.iterdir())
    done = mcptest(*KEEPING[command], "--save-capture", str(kept), cwd=tmp_path)
    assert done.code == 2, done.said
    assert f"another mcptest writes its captures to {kept}" in done.err
    assert "choose another folder with --save-capture, or wait until it has ended" in done.err
    assert sorted(kept.iterdir()) == before


@pytest.mark.parametrize("command", SHARING)
def test_captures_with_names_of_their_own_are_kept_beside_others(
    command: str, kept: Path, tmp_path: Path
) -> None:
    before = {path: path.stat().st_ino for path in kept.rglob("*.jsonl*")}
    for _ in range(2):
        done = mcptest(*SHARING[command], "--save-capture", str(kept), cwd=tmp_path)
        assert done.code in {0, 1}, done.said
        after = {path: path.stat().st_ino for path in kept.rglob("*.jsonl*")}
        assert before.items() < after.items()
        before = after
