"""What the server options and the words for tools do, with real servers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcptest.core.limits import Deadline
from mcptest.probe.suites.attempt import Attempt
from mcptest.probe.suites.settings import Settings
from tests.e2e.demo_peer import http_demo
from tests.e2e.driving import mcptest

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))
TOKEN = "tok-7f31c0aa52"
SUITE = "assert: {tool: add, args: {a: 1, b: 2}, expect: {contains: ['3']}}\n"


def test_a_token_from_a_variable_opens_the_server_and_is_written_nowhere(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    (tmp_path / "miss.yaml").write_text(SUITE.replace("'3'", "'5'"))
    env = {**os.environ, "ORDINARY_WORD": TOKEN}
    with http_demo(tmp_path, "--token", TOKEN) as demo:
        url = f"http://127.0.0.1:{demo.port}/mcp"
        refused = mcptest("lint", url, cwd=tmp_path)
        assert refused.code == 3, refused.said
        for words in (["lint", url], ["run", "s.yaml", "--server", url]):
            done = mcptest(*words, "--token-env", "ORDINARY_WORD", cwd=tmp_path, env=env)
            assert done.code == 0, done.said
        options = ("--token-env", "ORDINARY_WORD", "--json-file", "r.json")
        failed = mcptest("run", "miss.yaml", "--server", url, *options, cwd=tmp_path, env=env)
    assert failed.code == 1
    assert "--token-env ORDINARY_WORD" in failed.out
    assert TOKEN not in failed.said + (tmp_path / "r.json").read_text()


def test_a_test_of_a_suite_may_name_its_server_by_configuration(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    entry = {"command": sys.executable, "args": ["-m", "mcptest", "serve", "demo"]}
    (tmp_path / "c.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    words = ("run", "s.yaml", "--server", "mine", "--mcp-config", "c.json")
    assert mcptest(*words, cwd=tmp_path).code == 0
    wrong = mcptest(*words, "--transport", "http", cwd=tmp_path)
    assert (wrong.code, "needs a URL" in wrong.err) == (2, True)


@pytest.mark.parametrize(("startup", "starting"), [(None, 5.0), (60.0, 60.0)])
def test_a_start_has_a_limit_of_its_own_where_one_is_given(
    startup: float | None, starting: float
) -> None:
    given: list[Deadline] = []
    client = SimpleNamespace(connection=SimpleNamespace(on_notification=None))

    def connect(deadline: Deadline) -> Any:
        given.append(deadline)
        return SimpleNamespace(client=client)

    item: Any = SimpleNamespace(test=SimpleNamespace(timeout=5.0))
    session: Any = SimpleNamespace(connect=connect)
    attempt = Attempt(item, session, Settings(startup=startup))
    before = attempt.deadline
    attempt._connect()
    assert [one.limit for one in given] == [starting]
    assert attempt.deadline.limit == 5.0
    assert (attempt.deadline is before) == (startup is None)


@pytest.mark.parametrize("command", ["audit", "fuzz"])
def test_a_tool_that_may_write_is_called_where_it_is_allowed_by_name(command: str) -> None:
    words = ("--json", "--tool", "wipe", *(("--runs", "2") if command == "fuzz" else ()))
    tail = ("--", *EXPLORED, "only=echo,wipe")
    assert mcptest(command, *words, *tail).code == 4
    done = mcptest(command, *words, "--allow-tool", "wipe", *tail)
    assert done.code in {0, 1}, done.said
    unknown = mcptest(command, *words, "--allow-tool", "wip", *tail)
    assert (unknown.code, "did you mean wipe?" in unknown.err) == (2, True)


def test_lint_looks_at_the_tools_that_are_named_alone() -> None:
    done = mcptest("lint", "demo", "--tool", "add", "--tool", "echo", "--json")
    report = json.loads(done.out)
    assert (report["tools"], report["prompts"], report["resources"]) == (2, 0, 0)
    unknown = mcptest("lint", "demo", "--tool", "ad")
    assert (unknown.code, "did you mean add?" in unknown.err) == (2, True)


def test_a_property_calls_the_tools_that_are_named_alone(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    words = ("property", "demo", "--property", "arguments", "--examples", "3", "--seed", "1")
    options = ("--tool", "add", "--save-capture", "wire", "--no-database")
    done = mcptest(*words, *options, cwd=tmp_path)
    assert done.code == 0, done.said
    unknown = mcptest(*words, "--tool", "ad", "--no-database", cwd=tmp_path)
    assert (unknown.code, "did you mean add?" in unknown.err) == (2, True), unknown.said
