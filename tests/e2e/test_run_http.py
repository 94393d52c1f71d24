"""Suites over HTTP: a session for each test, on the connection of the one before it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import mcptest
from tests.rogues.http_script import Script, Wire, reply, serving

TESTS = 5


def server_of_sessions(seen: Counter[str], before_call: Callable[[Wire], bool]) -> Script:
    """Handshake era, no stream of its own. `before_call` may end the connection first."""

    def script(wire: Wire) -> None:
        while (request := wire.request()) is not None:
            message: Any = json.loads(request.body) if request.body else {}
            method = message.get("method", request.method)
            seen[method] += 1
            if method == "GET":
                wire.send(reply(b"", "405 Method Not Allowed"))
            elif "id" not in message:
                wire.send(reply(b"", "202 Accepted"))
            else:
                wire.send(reply(*answer(message, seen)))
                if before_call(wire):
                    return

    return script


def answer(message: dict[str, Any], seen: Counter[str]) -> tuple[Any, ...]:
    given, extra, params = {"jsonrpc": "2.0", "id": message["id"]}, "", message.get("params")
    if message["method"] == "initialize":
        info = {"name": "counted", "version": "1"}
        given["result"] = {"capabilities": {"tools": {}}, "serverInfo": info}
        given["result"]["protocolVersion"] = params["protocolVersion"]
        extra = f"Mcp-Session-Id: s{seen['initialize']}\r\n"
    elif message["method"] == "tools/call":
        given["result"] = {"content": [{"type": "text", "text": "hi"}]}
    else:
        given["error"] = {"code": -32601, "message": "not here"}
    return json.dumps(given).encode(), "200 OK", "application/json", extra


@pytest.fixture
def suites(tmp_path: Path) -> Callable[[str], Path]:
    def write(url: str) -> Path:
        folder = tmp_path / "suites"
        folder.mkdir()
        for number in range(TESTS):
            (folder / f"{number}.yaml").write_text(
                f"name: echo {number}\nserver: {{transport: http, url: '{url}'}}\n"
                "assert: {tool: echo, expect: {contains: [hi]}}\n"
            )
        return folder

    return write


def test_each_test_has_a_session_and_all_of_them_two_connections(
    suites: Callable[[str], Path], tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    captures = tmp_path / "captures"
    with serving(server_of_sessions(seen, lambda wire: False)) as server:
        done = mcptest("run", str(suites(server.url)), "--save-capture", str(captures))
        connections = server.connections
    assert done.code == 0, done.said
    each = {"initialize", "notifications/initialized", "tools/call", "DELETE"}
    # That a GET gets no stream, and which era is spoken, is asked once for all.
    assert seen == {"server/discover": 1, "GET": 1, **dict.fromkeys(each, TESTS)}
    assert connections <= 2, "one for the calls, and the one of the GET"
    files = sorted(captures.glob("*.jsonl"))
    assert len(files) == TESTS
    for number, file in enumerate(files, 1):
        text = file.read_text()
        assert text.count('"initialize') >= 1, "a capture holds its own handshake"
        assert f"s{number}" in text, "and its own session"


def test_a_server_that_closes_its_connections_fails_no_test(suites: Callable[[str], Path]) -> None:
    """After each answer to a call, while the client says that the session is over."""
    seen: Counter[str] = Counter()
    with serving(server_of_sessions(seen, lambda wire: seen["tools/call"] > 0)) as server:
        done = mcptest("run", str(suites(server.url)))
    assert done.code == 0, done.said
    assert seen["tools/call"] == TESTS


def test_tests_that_run_beside_others_on_a_url_share_nothing(tmp_path: Path) -> None:
    """Two servers by their headers, one by its URL: it may serve one connection after the other."""
    seen: Counter[str] = Counter()
    with serving(server_of_sessions(seen, lambda wire: False)) as server:
        for who in ("a", "b"):
            spec = f"server: {{transport: http, url: '{server.url}', headers: {{X-Who: {who}}}}}"
            call = "assert: {tool: echo, expect: {contains: [hi]}}"
            tests = "".join(f"  - {{name: {who}{number}, {call}}}\n" for number in range(3))
            (tmp_path / f"{who}.yaml").write_text(f"{spec}\ntests:\n{tests}")
        done = mcptest("run", str(tmp_path))
        connections = server.connections
    assert done.code == 0, done.said
    assert seen["initialize"] == 6
    assert connections >= 6
