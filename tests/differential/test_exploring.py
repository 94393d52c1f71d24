"""audit, generate and coverage beside mcp-assert's, on the same servers: same tools, same classes.

Each difference that shows here is a row of docs/mcp-assert-differences.md.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcptest.suite.load import load_suites
from mcptest.suite.model import ToolBlock
from tests.differential.both_tools import BIN, BOUND, MCP_ASSERT
from tests.e2e.driving import NPM, PEERS, Done, mcptest
from tests.peers.warm_peers import warm_peer

EXPLORED = Path(__file__).parents[1] / "e2e" / "explored.py"
PAGE = Path(__file__).parents[2] / "docs" / "mcp-assert-differences.md"
pytestmark = [pytest.mark.peer]
HIDDEN = {"get-roots-list", "trigger-elicitation-request", "trigger-sampling-request"}
"""What server-everything shows only to clients that declare the capability."""


def theirs(*argv: str, folder: Path) -> Done:
    done = subprocess.run(
        [str(MCP_ASSERT), *argv],
        capture_output=True,
        timeout=BOUND,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=environment(folder),
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def ours(*argv: str, folder: Path) -> Done:
    return mcptest(*argv, cwd=folder, env=environment(folder))


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MEMORY_FILE_PATH": str(folder / "memory.json")}


def server(name: str, folder: Path) -> str:
    """A command line without spaces in its words, which mcp-assert could not take."""
    npm = {"memory": "server-memory", "filesystem": "server-filesystem"}
    npm["everything"] = "server-everything"
    if name in npm:
        if not NPM.is_dir():
            pytest.skip("the npm servers are not installed")
        more = [str(folder)] if name == "filesystem" else []
        return shlex.join(["node", str(NPM / npm[name] / "dist" / "index.js"), *more])
    if name == "time":
        return shlex.join(warm_peer(str(BIN / "mcp-server-time")))
    if name == "python-sdk":
        return shlex.join(warm_peer(str(PEERS / "python_sdk_server.py")))
    return f"{sys.executable} -I -S {EXPLORED} {name}"


@pytest.fixture(autouse=True)
def _mcp_assert_is_there() -> None:
    if not MCP_ASSERT.exists():
        pytest.skip("mcp-assert is not installed")


def classes(done: Done) -> dict[str, str]:
    report: dict[str, Any] = json.loads(done.out)
    return {one["tool"]: one["status"] for one in report["results"]}


@pytest.mark.parametrize("name", ["memory", "filesystem", "time", "python-sdk"])
def test_an_audit_finds_the_same_tools_in_the_same_health(name: str, tmp_path: Path) -> None:
    words = ("audit", "--server", server(name, tmp_path), "--json", "--include-writes")
    their_classes = classes(theirs(*words, folder=tmp_path))
    our_classes = classes(ours(*words, folder=tmp_path))
    assert list(our_classes) == list(their_classes)
    assert our_classes == their_classes


def test_an_audit_of_the_everything_server_differs_as_documented(tmp_path: Path) -> None:
    words = ("--json", "--include-writes", "--timeout", "1s")
    command = ("audit", "--server", server("everything", tmp_path), *words)
    before = classes(theirs(*command, folder=tmp_path))
    now = classes(ours(*command, "--no-verify", "--startup-timeout", "30s", folder=tmp_path))
    assert before["trigger-long-running-operation"] == "timeout"
    assert before.pop("simulate-research-query") == "healthy"
    assert now.pop("simulate-research-query") == "skipped"
    assert {name: now[name] for name in now if name not in HIDDEN} == before
    assert now.keys() - before.keys() == HIDDEN
    page = PAGE.read_text()
    assert "| `audit` and tools that run only as a task |" in page
    assert "| tools in `audit` and `coverage` |" in page


def test_without_a_word_about_writing_mcptest_calls_less(tmp_path: Path) -> None:
    """A tool without annotations may destroy, by the specification."""
    words = ("audit", "--server", server("only=echo,silent,wipe", tmp_path), "--json")
    assert classes(theirs(*words, folder=tmp_path)) == {
        "echo": "healthy",
        "silent": "healthy",
        "wipe": "skipped",
    }
    assert classes(ours(*words, folder=tmp_path))["silent"] == "skipped"
    assert "| `audit` and tools without annotations |" in PAGE.read_text()


def test_a_crash_costs_mcp_assert_every_verdict_after_it(tmp_path: Path) -> None:
    words = ("audit", "--server", server("only=leave,echo", tmp_path), "--json", "--timeout", "2s")
    before, now = theirs(*words, folder=tmp_path), ours(*words, folder=tmp_path)
    assert classes(before) == {"leave": "crash", "echo": "crash"}
    assert classes(now) == {"leave": "crash", "echo": "healthy"}
    assert (before.code, now.code) == (0, 1)
    assert "| `audit` after a crash |" in PAGE.read_text()


def test_a_refusal_is_no_crash(tmp_path: Path) -> None:
    words = ("audit", "--server", server("only=refuse,internal", tmp_path), "--json")
    assert classes(theirs(*words, folder=tmp_path)) == {"refuse": "crash", "internal": "crash"}
    assert classes(ours(*words, folder=tmp_path)) == {"refuse": "refused", "internal": "crash"}
    assert "| `audit` and errors other than -32603 |" in PAGE.read_text()


@pytest.mark.parametrize("name", ["memory", "filesystem", "everything", "time"])
def test_generate_writes_a_test_for_the_same_tools_under_the_same_names(
    name: str, tmp_path: Path
) -> None:
    command = server(name, tmp_path)
    for tool in (theirs, ours):
        words = ("--server", command, "--output", tool.__name__)
        assert tool("generate", *words, folder=tmp_path).code == 0
    before = {path.name for path in (tmp_path / "theirs").glob("*.yaml")}
    now = {path.name for path in (tmp_path / "ours").glob("*.yaml")}
    assert before == {one for one in now if not one.startswith(("prompt-", "resource-"))}
    skipped = _skipped(tmp_path / "theirs")
    assert skipped <= _skipped(tmp_path / "ours")


def _skipped(folder: Path) -> set[str]:
    tests = load_suites([str(folder)]).suite.tests
    return {t.block.tool for t in tests if t.skip and isinstance(t.block, ToolBlock)}


def test_what_generate_wrote_is_read_by_both(tmp_path: Path) -> None:
    command = server("memory", tmp_path)
    ours("generate", "--server", command, "--output", "suite", folder=tmp_path)
    done = theirs("run", "--suite", "suite", "--json", folder=tmp_path)
    names = {one["name"]: one["status"] for one in json.loads(done.out)}
    assert names["read_graph answers"] == "PASS"
    assert names["delete_entities answers"] == "SKIP"


@pytest.mark.parametrize("name", ["memory", "everything", "filesystem", "time"])
def test_coverage_counts_the_same_where_nothing_is_skipped(name: str, tmp_path: Path) -> None:
    command = server(name, tmp_path)
    words = ("--server", command, "--output", "suite", "--include-writes")
    theirs("generate", *words, folder=tmp_path)
    for path in sorted((tmp_path / "suite").glob("*.yaml"))[1:]:
        path.unlink()
    asked = ("coverage", "--timeout", "2m", "--suite", "suite", "--server", command)
    asked += ("--coverage-json",)
    assert theirs(*asked, "theirs.json", folder=tmp_path).code == 0
    assert ours(*asked, "ours.json", folder=tmp_path).code == 0
    before = json.loads((tmp_path / "theirs.json").read_text())
    now = json.loads((tmp_path / "ours.json").read_text())
    assert sorted(one["name"] for one in now["covered_tools"]) == sorted(
        one["name"] for one in before["covered_tools"]
    )
    assert set(now["uncovered_tools"]) - HIDDEN == set(before["uncovered_tools"])


def test_a_skipped_test_covers_nothing(tmp_path: Path) -> None:
    command = server("only=wipe", tmp_path)
    ours("generate", "--server", command, "--output", "suite", folder=tmp_path)
    asked = ("coverage", "--timeout", "2m", "--suite", "suite", "--server", command)
    asked += ("--coverage-json",)
    theirs(*asked, "theirs.json", folder=tmp_path)
    ours(*asked, "ours.json", folder=tmp_path)
    assert json.loads((tmp_path / "theirs.json").read_text())["percentage"] == 100
    assert json.loads((tmp_path / "ours.json").read_text())["percentage"] == 0
    assert "| `coverage` and skipped tests |" in PAGE.read_text()


def test_init_takes_its_folder_before_the_server_as_documented(tmp_path: Path) -> None:
    command = server("only=echo,wipe", tmp_path)
    ours("init", "ours", "--server", command, folder=tmp_path)
    theirs("init", "theirs", "--server", command, folder=tmp_path)
    assert (tmp_path / "ours" / "echo.yaml").exists()
    assert not (tmp_path / "theirs" / "echo.yaml").exists()
    assert "| `init DIR --server …` |" in PAGE.read_text()
