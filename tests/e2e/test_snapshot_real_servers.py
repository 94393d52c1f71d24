"""Golden files of servers that others wrote: they match in the next run, also where time passes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import NPM
from tests.e2e.snapshots_here import Desk, desk_in
from tests.peers.warm_peers import warm_peer

CLOCK = shutil.which("mcp-server-time", path=str(Path(sys.executable).parent))
EVERYTHING = NPM / "server-everything" / "dist" / "index.js"


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    yield from desk_in(tmp_path, capsys, monkeypatch)


def kept(desk: Desk, command: tuple[str, ...], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The golden files of these calls, which match when they are made again."""
    tests = [
        {"name": tool, "assert": {"tool": tool, "args": args, "expect": {"not_error": True}}}
        for tool, args in calls.items()
    ]
    suite = {"server": {"command": command[0], "args": list(command[1:])}, "tests": tests}
    desk.evals.mkdir()
    (desk.evals / "suite.yaml").write_text(json.dumps(suite))
    shared = ("--isolation", "shared")
    created = desk.snapshot("--update", *shared)
    assert created.code == 0, created.said
    again = desk.snapshot(*shared)
    assert again.code == 0, again.said
    return {Path(name).stem: text for name, text in desk.files().items()}


@pytest.mark.skipif(CLOCK is None, reason="mcp-server-time is not installed")
def test_a_clock_matches_later(desk: Desk) -> None:
    assert CLOCK is not None
    files = kept(desk, warm_peer(CLOCK), {"get_current_time": {"timezone": "Europe/Zurich"}})
    text = files["get_current_time"]
    assert '"datetime": "<timestamp>"' in text
    assert '"timezone": "Europe/Zurich"' in text


@pytest.mark.skipif(not EVERYTHING.exists(), reason="the npm servers are not installed")
def test_texts_images_and_structure_match(desk: Desk) -> None:
    calls: dict[str, dict[str, Any]] = {
        "echo": {"message": "hi"},
        "get-tiny-image": {},
        "get-structured-content": {"location": "Chicago"},
    }
    files = kept(desk, ("node", str(EVERYTHING), "stdio"), calls)
    assert files["echo"] == "Echo: hi\n"
    assert '"data": "sha256 ' in files["get-tiny-image"]
    assert "=== structuredContent\n" in files["get-structured-content"]
