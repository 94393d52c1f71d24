"""What mcp-assert kept with `snapshot --update` is verified by `mcptest snapshot` as it stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.differential.both_tools import BOUND, MCP_ASSERT
from tests.e2e.driving import Done, mcptest
from tests.e2e.suite_runs import server

pytestmark = pytest.mark.skipif(not MCP_ASSERT.exists(), reason="mcp-assert is not installed")

DEMO = {"command": sys.executable, "args": ["-m", "mcptest.servers.demo"]}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("echo", {"text": "hi"}),
    "lines": ("echo", {"text": "one\ntwo\n<b> & \u00e9 \u2028"}),
    "escape": ("echo", {"text": "\x1b[31m"}),
    "error": ("fail", {}),
    "refused": ("echo", {}),
    "structured": ("weather", {"city": "Bern"}),
    "image": ("image", {}),
    "link": ("link", {}),
}


def write(folder: Path, name: str, tool: str, args: dict[str, Any], peer: dict[str, Any]) -> None:
    block = {"tool": tool, "args": args, "expect": {"not_error": True}}
    document = {"name": f"{name} test", "server": peer, "assert": block}
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(json.dumps(document))


def theirs(folder: Path, *options: str) -> Done:
    done = subprocess.run(
        [str(MCP_ASSERT), "snapshot", "--suite", "evals", *options],
        capture_output=True,
        cwd=folder,
        timeout=BOUND,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def ours(folder: Path, *options: str) -> dict[str, str]:
    done = mcptest("snapshot", "evals", "--json", *options, cwd=folder)
    return {one["name"].removesuffix(" test"): one["outcome"] for one in json.loads(done.out)}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with the answers that mcp-assert kept."""
    folder = tmp_path_factory.mktemp("kept")
    for name, (tool, args) in CALLS.items():
        write(folder / "evals", name, tool, args, DEMO)
    done = theirs(folder, "--update")
    assert done.code == 0, done.said
    assert {path.name for path in (folder / "evals").glob(".*")} == {".snapshots.json"}
    return folder


def test_what_they_kept_matches_and_nothing_is_written(kept: Path) -> None:
    before = (kept / "evals/.snapshots.json").read_bytes()
    assert ours(kept) == dict.fromkeys(CALLS, "matched")
    assert (kept / "evals/.snapshots.json").read_bytes() == before
    assert not (kept / "evals/.snapshots").exists()


def test_both_see_the_same_changes(kept: Path, tmp_path: Path) -> None:
    saved = json.loads((kept / "evals/.snapshots.json").read_bytes())
    by_name = {one["name"]: one for one in saved["snapshots"]}
    by_name["plain test"] |= {"text": "ho", "checksum": "0" * 16}
    by_name["lines test"]["text"] = "ho"
    by_name["error test"]["is_error"] = False
    del by_name["link test"]
    write(tmp_path / "evals", "gone", "echo", {"text": "x"}, {"command": "false"})
    for name, (tool, args) in CALLS.items():
        write(tmp_path / "evals", name, tool, args, DEMO)
    text = json.dumps({"snapshots": list(by_name.values())})
    (tmp_path / "evals/.snapshots.json").write_text(text)
    them, us = theirs(tmp_path), ours(tmp_path)
    their_words = {
        line.split()[1]: line.split()[0]
        for line in them.out.splitlines()
        if line.startswith("  ") and line.split()[0].isupper()
    }
    same = {"MATCH": "matched", "DIFF": "changed", "MISS": "new", "ERROR": "failed"}
    # It looks at the checksum alone: a text that was edited in its file still matches.
    assert their_words.pop("lines") == "MATCH"
    assert us.pop("lines") == "changed"
    assert {name: same[word] for name, word in their_words.items()} == us
    assert {us["plain"], us["error"]} == {"changed"}
    assert us["link"] == "new"
    assert us["gone"] == "failed"


def test_our_files_come_first_once_they_are_written(kept: Path, tmp_path: Path) -> None:
    write(tmp_path / "evals", "plain", "echo", {"text": "hi"}, DEMO)
    (tmp_path / "evals/.snapshots.json").write_bytes((kept / "evals/.snapshots.json").read_bytes())
    assert ours(tmp_path, "--update") == {"plain": "created"}
    (tmp_path / "evals/.snapshots/plain.snap").write_text("ho\n")
    assert ours(tmp_path) == {"plain": "changed"}


def test_where_it_is_wrong_about_its_own_fixture_we_are_right(tmp_path: Path) -> None:
    """Its copy of the fixture lies elsewhere each time: it never matches itself."""
    write(tmp_path / "evals", "where", "argv", {}, server("{{fixture}}/a.txt"))
    (tmp_path / "data").mkdir()
    fixture = ("--fixture", "data")
    assert theirs(tmp_path, *fixture, "--update").code == 0
    assert theirs(tmp_path, *fixture).code == 1
    assert ours(tmp_path, *fixture) == {"where": "matched"}
