"""`mcptest record --proxy` for servers with a URL: real clients and real servers on both sides."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.transport.target import Target, reach_of
from tests.e2e.driving import (
    BOUND,
    NPM,
    PYTHON_SDK,
    free_port,
    listening,
    mcptest,
    messages_of,
    records_of,
)
from tests.e2e.test_demo_wire_sdk import MODES
from tests.e2e.test_demo_wire_sdk import run as use_the_demo

EVERYTHING = ("node", str(NPM / "server-everything" / "dist" / "index.js"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo over HTTP, without a path."""
    port_file = tmp_path_factory.mktemp("demo") / "port"
    command = [sys.executable, "-m", "mcptest.servers.demo", "--transport", "http"]
    with listening([*command, "--port-file", str(port_file)], "listening"):
        yield f"http://127.0.0.1:{port_file.read_text().strip()}"


class Proxied:
    """A proxy in front of a server. `stop` ends it; then the capture can be read."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, out: Path) -> None:
        self._process = process
        self.url = url
        self.out = out

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self._process.send_signal(number)
        _, stderr = self._process.communicate(timeout=BOUND)
        return self._process.returncode, stderr.decode()

    def judged(self) -> None:
        code, told = self.stop()
        assert (code, told) == (0, "")
        done = mcptest("compliance", "invariants", "--capture", str(self.out))
        assert done.code == 0, done.said


@contextlib.contextmanager
def proxied(url: str, folder: Path, *options: str) -> Iterator[Proxied]:
    out, port_file = folder / "seen.jsonl", folder / "proxy.port"
    command = [sys.executable, "-m", "mcptest", "record", "--proxy", "--out", str(out)]
    command += ["--server", url, "--port-file", str(port_file), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        told = process.stderr.readline().decode()
        assert told.startswith("listening on "), told
        port = port_file.read_text().strip()
        assert f":{port}/" in told
        yield Proxied(process, told.split()[-1], out)
    finally:
        process.kill()
        process.communicate()


def client_of(url: str, revision: Revision) -> Client:
    way: Any = "sse" if url.endswith("/sse") else "http"
    target = Target(way=way, label="proxied", url=url)
    return Client(reach=reach_of(target), revision=revision)


# -- our own client, through the front door ------------------------------------------------


@pytest.mark.parametrize(
    ("path", "revision"),
    [
        ("/mcp", Revision.V2025_03_26),
        ("/mcp", Revision.V2025_11_25),
        ("/mcp", Revision.V2026_07_28),
        ("/sse", Revision.V2024_11_05),
    ],
)
def test_a_session_goes_through_and_can_be_judged(
    demo: str, tmp_path: Path, path: str, revision: Revision
) -> None:
    with proxied(demo + path, tmp_path) as proxy:
        with client_of(proxy.url, revision) as client:
            assert len(client.list_all("tools/list")) > 1
            assert client.call_tool("add", {"a": 1, "b": 2}).ok
            assert client.call_tool("countdown", {"steps": 2}).ok
        proxy.judged()
    records = records_of(proxy.out)
    assert [each["kind"] for each in records].count("capture") == 1
    assert records[0]["transport"] == ("sse" if path == "/sse" else "http")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["proxy.port", "seen.jsonl"]


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_two_clients_at_once_are_two_sessions_of_one_capture(
    demo: str, tmp_path: Path, path: str
) -> None:
    revision = Revision.V2024_11_05 if path == "/sse" else Revision.V2025_11_25
    with proxied(demo + path, tmp_path) as proxy:
        with client_of(proxy.url, revision) as one, client_of(proxy.url, revision) as other:
            for number in range(3):
                assert one.call_tool("add", {"a": 1, "b": number}).ok
                assert other.call_tool("add", {"a": 2, "b": number}).ok
        proxy.judged()
    sessions: list[list[Any]] = []
    for record in records_of(proxy.out):
        if record["kind"] == "capture":
            sessions.append([])
        called = record.get("message", {}).get("params", {}).get("arguments")
        if called:
            sessions[-1].append(called["a"])
    assert sessions == [[1, 1, 1], [2, 2, 2]]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["proxy.port", "seen.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_loses_nothing_that_was_seen(
    demo: str, tmp_path: Path, number: signal.Signals
) -> None:
    with proxied(demo + "/sse", tmp_path) as proxy, client_of(proxy.url, Revision.V2024_11_05) as c:
        assert c.call_tool("add", {"a": 1, "b": 2}).ok
        assert proxy.stop(number) == (0, "")  # with its stream still open
    records = records_of(proxy.out)
    assert records[-1]["kind"] == "end"
    assert any("still open when the proxy was stopped" in each.get("text", "") for each in records)
    assert any(each.get("params", {}).get("name") == "add" for each in messages_of(proxy.out))


def test_a_secret_is_passed_on_and_not_written(tmp_path: Path) -> None:
    from tests.support.proxy_bench import ScriptedServer, plain

    server = ScriptedServer(lambda connection, request: connection.sendall(plain(request)))
    url = f"http://127.0.0.1:{server.port}/mcp"
    with proxied(url, tmp_path, "--header", "X-Key=very-secret-value") as proxy:
        import urllib.request

        request = urllib.request.Request(proxy.url, headers={"Authorization": "Bearer of-clients"})
        with urllib.request.urlopen(request, timeout=BOUND) as answer:
            echoed = answer.read()
        proxy.stop()
    server.close()
    assert b"X-Key: very-secret-value" in echoed
    assert b"Authorization: Bearer of-clients" in echoed
    seen = proxy.out.read_bytes()
    assert b"very-secret-value" not in seen
    assert b'["Authorization","Bearer ***"]' in seen


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_does_not_touch_the_session(demo: str, tmp_path: Path) -> None:
    with proxied(demo + "/mcp", tmp_path, "--out", "/dev/full") as proxy:
        with client_of(proxy.url, Revision.V2025_11_25) as client:
            assert client.call_tool("add", {"a": 1, "b": 2}).ok
        code, told = proxy.stop()
    assert code == 1
    assert "/dev/full is not complete: No space left on device" in told


# -- others' clients and servers -----------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_the_sdk_client_uses_the_demo_through_the_proxy(
    demo: str, tmp_path: Path, mode: str, version: str
) -> None:
    with proxied(demo + "/mcp", tmp_path) as proxy:
        use_the_demo(proxy.url, mode, version)
        code, told = proxy.stop()
    assert (code, told) == (0, "")
    asked = [each["method"] for each in messages_of(proxy.out, "client") if "method" in each]
    assert asked.count("tools/call") >= 10


@pytest.mark.peer
@pytest.mark.parametrize(
    ("command", "path", "ready"),
    [
        pytest.param((*PYTHON_SDK, "streamable-http"), "/mcp", "running on", id="sdk"),
        pytest.param(
            (*EVERYTHING, "sse"), "/sse", "running", marks=pytest.mark.npm, id="everything-sse"
        ),
    ],
)
def test_mcp_assert_and_our_tour_see_the_same_through_the_proxy(
    tmp_path: Path, command: tuple[str, ...], path: str, ready: str
) -> None:
    mcp_assert = Path(sys.executable).with_name("mcp-assert")
    port = free_port()
    line = command if command[0] == "node" else (*command, str(port))
    with (
        listening(line, ready, {"PORT": str(port)}),
        proxied(f"http://127.0.0.1:{port}{path}", tmp_path) as proxy,
    ):
        way = "sse" if path == "/sse" else "http"
        words = [str(mcp_assert), "lint", "--server", proxy.url, "--transport", way, "--json"]
        theirs = subprocess.run(words, capture_output=True, timeout=BOUND)
        done = mcptest("record", "--server", proxy.url, "--out", str(tmp_path / "tour.jsonl"))
        assert done.code in {0, 1}, done.said
        proxy.stop()
    assert json.loads(theirs.stdout)["tools"] >= 2
    sessions = [each for each in records_of(proxy.out) if each["kind"] == "capture"]
    assert len(sessions) >= 2
    toured = len(messages_of(tmp_path / "tour.jsonl"))
    assert len(messages_of(proxy.out)) > toured
