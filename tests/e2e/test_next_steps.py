"""An error ends with what to do next: where a token is wanted, and where a server does not stay."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import free_port, listening, mcptest

TOKEN_HINT = "pass a token with --token-env NAME, or another header with --header K=V"
SUITE = """\
name: adds
assert: {tool: add, args: {a: 2, b: 3}, expect: {json_path: {$.sum: 5}}}
"""


def test_a_server_that_wants_a_token_is_followed_by_how_to_pass_one(tmp_path: Path) -> None:
    port = free_port()
    at = ("--transport", "http", "--port", str(port), "--token", "let-me-in")
    url = f"http://127.0.0.1:{port}/mcp"
    (tmp_path / "a.yaml").write_text(SUITE)
    with listening((sys.executable, "-m", "mcptest", "serve", "demo", *at), "listening on"):
        for command in (("lint", url), ("record", url, "--out", str(tmp_path / "a.jsonl"))):
            done = mcptest(*command)
            assert done.code == 3
            assert done.err.splitlines() == [
                "mcptest: the server rejected initialize: A valid token is required (code -32600)",
                f"  {TOKEN_HINT}",
            ]
        judged = mcptest("compliance", "run", url)
        assert f"fix: {TOKEN_HINT}" in " ".join(judged.out.split())
        assert "0 rules failed" not in judged.out
        tested = mcptest("run", str(tmp_path / "a.yaml"), "--server", url)
        assert f"A valid token is required (code -32600) ({TOKEN_HINT})" in tested.out


@pytest.mark.parametrize("command", [("audit",), ("compliance", "run"), ("init",)])
def test_a_server_that_exits_at_once_is_to_be_run_by_hand(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    fails = shlex.join([sys.executable, "-c", "import sys; sys.exit('no module foo')"])
    done = mcptest(*command, "--server", fails, cwd=tmp_path)
    assert done.code == 3
    assert done.err.splitlines() == [
        "mcptest: the server exited with code 1",
        "  stderr: no module foo",
        "  run its command yourself to see why",
    ]


def test_nothing_is_said_of_an_empty_recording_beside_the_error(tmp_path: Path) -> None:
    done = mcptest("record", "--server", "no-such-program", "--out", str(tmp_path / "a.jsonl"))
    assert done.err.splitlines() == [
        "mcptest: command not found on the PATH: 'no-such-program'",
        "  check the spelling, or give the full path",
    ]


def test_a_path_that_does_not_exist_leads_to_a_first_suite(tmp_path: Path) -> None:
    done = mcptest("run", "nowhere", cwd=tmp_path)
    assert done.code == 2
    assert done.err.splitlines()[-1] == "  check the path, or write a first suite with mcptest init"
