"""fuzz, audit and lint over streamable HTTP and HTTP+SSE, in both eras, and in a container."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import Done, free_port, listening, mcptest

FUZZED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("fuzzed.py")))
WAYS = [("http", "2025-11-25"), ("http", "2026-07-28"), ("sse", "2025-03-26")]


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """The address of a demo that serves both eras and both ways."""
    port = free_port()
    command = (sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http")
    with listening((*command, "--port", str(port)), "http://"):
        yield f"http://127.0.0.1:{port}"


def reported(demo: str, way: str, revision: str, *words: str) -> dict[str, Any]:
    path = "sse" if way == "sse" else "mcp"
    server = ("--server", f"{demo}/{path}", "--spec-version", revision)
    done = mcptest(*words, *server, "--json")
    assert done.code == 0, done.said
    report: dict[str, Any] = json.loads(done.out)
    return report


@pytest.mark.parametrize(("way", "revision"), WAYS)
def test_the_demo_takes_every_input_well(demo: str, way: str, revision: str) -> None:
    tools = ("--tool", "echo", "--tool", "weather", "--runs", "120")
    report = reported(demo, way, revision, "fuzz", "--seed", "1", *tools)
    assert report["summary"]["total_passed"] == 240
    assert (report["transport"], report["spec_version"]) == (way, revision)


@pytest.mark.parametrize(("way", "revision"), WAYS)
def test_audit_and_lint_see_the_same_tools_as_over_a_pipe(
    demo: str, way: str, revision: str
) -> None:
    audited = reported(demo, way, revision, "audit", "--no-verify")
    linted = reported(demo, way, revision, "lint")
    over_pipe = mcptest("lint", "--server", "demo", "--spec-version", revision, "--json")
    assert linted["findings"] == json.loads(over_pipe.out)["findings"]
    assert audited["tool_count"] == linted["tools"]
    assert audited["answered"] == 100


def test_behind_a_url_there_is_one_server_whatever_jobs_says(demo: str, tmp_path: Path) -> None:
    """Of a crash that one session causes no other may be blamed."""
    tools = ("--tool", "echo", "--tool", "add", "--runs", "5", "--jobs", "2")
    reported(demo, "http", "2025-11-25", "fuzz", *tools, "--save-capture", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["session-001.jsonl"]


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO = {"name": "echo", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}


class _Faulty(http.server.BaseHTTPRequestHandler):
    """A tool that answers an empty text with status 500, and null arguments with status 400."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self._send(202, b"")
            return
        params = message.get("params") or {}
        status, reply = self._answer(message["method"], params)
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode()
        self._send(status, body if status == 200 else b"")

    def _answer(self, method: str, params: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "initialize":
            found = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
            return 200, {"result": found | {"serverInfo": {"name": "faulty", "version": "1"}}}
        if method == "tools/list":
            return 200, {"result": {"tools": [ECHO]}}
        if method == "tools/call":
            arguments = params.get("arguments", {})
            if arguments is None:
                return 400, {}
            if arguments.get("text") == "":
                return 500, {}
        return 200, {"result": {"content": [{"type": "text", "text": "fine"}]}}

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(200, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Nothing is said."""


@contextlib.contextmanager
def faulty() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Faulty)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_over_http_a_status_of_500_is_a_crash_and_one_of_400_a_refusal() -> None:
    with faulty() as url:
        options = ("--spec-version", "2025-11-25", "--seed", "1", "--runs", "30", "--json")
        done = mcptest("fuzz", "--server", url, *options)
    (tool,) = json.loads(done.out)["tools"]
    assert done.code == 1
    assert [failure["status"] for failure in tool["failures"]] == ["crash"]
    assert tool["failures"][0]["minimal"] == {"text": ""}
    assert tool["runs"] == 30


@pytest.fixture
def docker(tmp_path: Path) -> dict[str, str]:
    """A stand-in: it notes its words, drops them, and becomes the command behind the image."""
    script = tmp_path / "docker"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/words\n'
        'while [ "$1" != my/image ]; do shift; done; shift; exec "$@"\n'
    )
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def fuzz_in_docker(env: dict[str, str], *server: str) -> Done:
    options = ("--docker", "my/image", "--seed", "1", "--runs", "5", "--json")
    return mcptest("fuzz", *options, *server, env=env)


def test_in_docker_tools_that_write_are_fuzzed_too(docker: dict[str, str], tmp_path: Path) -> None:
    done = fuzz_in_docker(docker, "--", *FUZZED, "writes")
    report = json.loads(done.out)
    assert done.code == 0, done.said
    assert [(one["tool"], one["runs"]) for one in report["tools"]] == [("writes", 5)]
    assert (tmp_path / "words").read_text().startswith("run ")


def test_docker_around_a_url_is_refused(docker: dict[str, str]) -> None:
    done = fuzz_in_docker(docker, "--server", "http://127.0.0.1:1/mcp")
    assert done.code == 2
    assert "--docker" in done.err
