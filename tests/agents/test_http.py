"""`mcptest mcp --http`: only who knows the secret in its URL finds anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.asking import ALLOWED
from tests.agents.listening import TOKEN, Listening, listening_server
from tests.e2e.demo_peer import HttpDemo, meta, stateless_headers
from tests.e2e.driving import mcptest_anew, wait_until

PATH = f"/{TOKEN}/mcp"
DISCOVER: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {"_meta": meta({})},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("listening")
    with listening_server(folder, "--root", str(folder), *ALLOWED) as listening:
        yield listening


def ask(server: Listening, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    peer = HttpDemo(server.port, None)  # type: ignore[arg-type]  # its process is not ours to end
    whole = {**stateless_headers(DISCOVER), **(headers or {})}
    reply = peer.ask("POST", DISCOVER, whole, path)
    return reply.status, reply.body


def test_who_knows_the_secret_is_served(server: Listening) -> None:
    status, body = ask(server, PATH)
    assert status == 200
    assert b'"supportedVersions"' in body


@pytest.mark.parametrize(
    "path", ["/mcp", "/", "/sse", "/messages", f"/{TOKEN[:-1]}/mcp", f"/{TOKEN}/sse", f"/{TOKEN}"]
)
def test_everybody_else_finds_nothing_and_learns_nothing(server: Listening, path: str) -> None:
    status, body = ask(server, path)
    assert status == 404
    assert TOKEN.encode() not in body
    assert b"supportedVersions" not in body


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_a_web_page_is_turned_away_even_with_the_secret(
    server: Listening, headers: dict[str, str]
) -> None:
    assert ask(server, PATH, headers)[0] == 403


def test_a_secret_that_was_given_is_not_repeated(server: Listening) -> None:
    said = wait_until(server.log.read_text, "where it listens")
    assert said == f"listening on http://127.0.0.1:{server.port}/***/mcp\n"


def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "MCPTEST_MCP_TOKEN": "short"}
    done = mcptest_anew("mcp", "--http", "0", cwd=tmp_path, env=env)
    assert done.code == 2
    assert "at least 16 characters" in done.err


def test_without_one_a_new_secret_is_made_and_told(tmp_path: Path) -> None:
    with listening_server(tmp_path, "--root", str(tmp_path), token="") as server:
        said = wait_until(server.log.read_text, "where it listens")
    secret = said.strip().split("/")[3]
    assert len(secret) >= 32
