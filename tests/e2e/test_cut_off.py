"""What we cut off ourselves is no evidence against a server; what it did before that still is."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, START, mcptest, records_of, wait_until
from tests.e2e.legacy_sse_server import event, served_over_sse
from tests.e2e.stubborn import answer_to
from tests.e2e.stubborn_servers import Stubborn

BLAMES = ("STDIO-001", "STDIO-003", "MSG-001", "MSG-002", "MSG-009", "banner", "by itself")
PACE = ("--timeout", "2s", *START)
"""A slow machine is no reason to give up before the call."""
TESTS = """
tests:
  - name: it looks
    assert: {tool: look, expect: {not_error: true}}
"""
SUITE = "server: {command: %r, args: [%s]}" + TESTS
FIXTURE = ("--map", "test_simple_text=look")


def recorded(folder: Path, *words: str) -> Path:
    """A session in which the answer to the last call is not waited for long enough."""
    out = folder / "seen.jsonl"
    server = Stubborn(folder, *words)
    asked = ("record", "--out", str(out), "--call", "look", *PACE)
    assert mcptest(*asked, "--", *server.command).code == 1
    return out


def failed_rules(capture: Path) -> set[str]:
    done = mcptest("compliance", "invariants", "--capture", str(capture), "--format", "json")
    sessions = json.loads(done.out)["sessions"]
    verdicts = [each for session in sessions for each in session["verdicts"]]
    return {each["rule"] for each in verdicts if each["outcome"] == "fail"}


ERAS = pytest.mark.parametrize("era", ["handshake", "stateless"])


@ERAS
@pytest.mark.parametrize("ends_by", ["the end of its input", "SIGTERM", "SIGKILL"])
def test_half_an_answer_that_we_cut_breaks_no_rule(tmp_path: Path, ends_by: str, era: str) -> None:
    deaf = {"SIGTERM": ("deaf-to-eof",), "SIGKILL": ("deaf-to-eof", "deaf-to-signals")}
    capture = recorded(tmp_path, "half", *deaf.get(ends_by, ()), era)
    assert failed_rules(capture) == set()
    cut_off = next(each for each in records_of(capture) if each["kind"] == "leftover")
    assert cut_off["text"].startswith('{"jsonrpc": "2.0", "id"')


@ERAS
@pytest.mark.parametrize("before", ["hangs", "half"])
def test_what_a_server_says_after_our_signal_breaks_no_rule(
    tmp_path: Path, before: str, era: str
) -> None:
    capture = recorded(tmp_path, before, "deaf-to-eof", "farewell", era)
    assert failed_rules(capture) == set()
    late = [each["kind"] for each in records_of(capture) if "good bye" in json.dumps(each)]
    assert late == ["leftover"]


@ERAS
@pytest.mark.parametrize(
    ("words", "rules"),
    [
        (("half-and-exits",), {"MSG-002", "STDIO-003", "MSG-009"}),
        (("noise-and-half",), {"STDIO-001"}),
        (("prompt",), {"STDIO-001"}),
        (("no-newline",), {"STDIO-003"}),
    ],
)
def test_what_a_server_did_before_we_gave_up_is_told(
    tmp_path: Path, words: tuple[str, ...], rules: set[str], era: str
) -> None:
    assert rules <= failed_rules(recorded(tmp_path, *words, era))


@ERAS
@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("fuzz", "--runs", "2"),
        ("compliance", "run"),
        ("doctor", "--to", "2025-11-25"),
        ("property", "--examples", "3", "--max-time", "15s"),
        (*("conformance", "server", "--scenario", "tools-call-simple-text"), *FIXTURE),
        ("snapshot", "suite.yaml", "--update"),
        ("init", "made"),
    ],
    ids=lambda words: words[0],
)
def test_no_command_blames_a_server_for_what_it_cut_off(
    tmp_path: Path, command: tuple[str, ...], era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(TESTS)
    server = Stubborn(tmp_path, "half", "deaf-to-eof", "farewell", era)
    pace = PACE[:2] if command[0] == "snapshot" else PACE
    done = mcptest(*command, *pace, "--no-color", "--", *server.command)
    assert server.processes, done.said
    failing = [line for line in done.said.splitlines() if "✗" in line or "FAIL" in line]
    assert not [line for line in failing if any(blame in line for blame in BLAMES)], done.said


def test_a_run_blames_a_slow_server_for_being_slow_only(tmp_path: Path) -> None:
    server = Stubborn(tmp_path, "half", "deaf-to-eof")
    program, *arguments = server.command
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE % (program, ", ".join(map(repr, arguments))))
    done = mcptest("run", str(suite), "--timeout", "5s", "--save-capture", str(tmp_path / "kept"))
    assert done.code == 1
    assert "the server did not answer tools/call within 5s" in done.said
    assert not any(blame in done.said for blame in BLAMES)
    captures = list((tmp_path / "kept").glob("**/*.jsonl"))
    assert captures
    assert set().union(*map(failed_rules, captures)) == set()


# -- over HTTP -----------------------------------------------------------------------------


class _Slow(http.server.BaseHTTPRequestHandler):
    """Answers a call with the first half of a body, then waits until it is let go."""

    protocol_version = "HTTP/1.1"
    let_go: threading.Event
    as_events: bool
    stateless: bool

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in request:
            self._reply(202, b"", "text/plain")
            return
        body = answer_to(request, stateless=self.stateless)
        self._reply(200, body, "application/json", half=request["method"] == "tools/call")

    def _reply(self, status: int, body: bytes, kind: str, *, half: bool = False) -> None:
        if half and self.as_events:
            kind, body = "text/event-stream", b"data: " + body + b"\n\n"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self.wfile.flush()
            self.let_go.wait()

    def do_GET(self) -> None:
        self._reply(405, b"", "text/plain")

    def do_DELETE(self) -> None:
        self._reply(405, b"", "text/plain")

    def log_message(self, *args: Any) -> None:
        pass


@contextlib.contextmanager
def slow_server(form: str, *, stateless: bool = False) -> Iterator[str]:
    class Handler(_Slow):
        let_go = threading.Event()
        as_events = form == "event"

    Handler.stateless = stateless
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        Handler.let_go.set()
        server.shutdown()
        thread.join()


@pytest.fixture(params=["body", "event"])
def slow_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with slow_server(request.param) as url:
        yield url


def half_an_event(path: str, headers: Any, body: bytes) -> bytes:
    """The answers of the slow server, over HTTP+SSE."""
    request = json.loads(body or b"{}")
    if "id" not in request:
        return b""
    whole = event(answer_to(request))
    return whole[: len(whole) // 2] if request["method"] == "tools/call" else whole


SLOW = {
    "a body": lambda: slow_server("body"),
    "an event": lambda: slow_server("event"),
    "a stateless body": lambda: slow_server("body", stateless=True),
    "a stateless event": lambda: slow_server("event", stateless=True),
    "HTTP+SSE": lambda: served_over_sse(half_an_event),
}


@pytest.mark.parametrize("form", SLOW)
def test_half_a_response_that_we_hung_up_on_breaks_no_rule(tmp_path: Path, form: str) -> None:
    out = tmp_path / "seen.jsonl"
    with SLOW[form]() as url:
        done = mcptest("record", "--out", str(out), "--call", "look", *PACE, "--server", url)
    assert done.code == 1
    assert "bytes of an unfinished response" in done.err
    assert failed_rules(out) == set()
    cut_off = [each for each in records_of(out) if each["kind"] == "leftover"]
    assert [each["stream"] for each in cut_off]


@pytest.mark.parametrize("form", SLOW)
def test_what_came_of_an_answer_is_told_by_audit(tmp_path: Path, form: str) -> None:
    with SLOW[form]() as url:
        done = mcptest("audit", *PACE, "--server", url)
    assert "the server did not answer tools/call within 2s; " in done.out
    assert "bytes of an unfinished response" in done.out
    assert "it sent nothing" not in done.said
    assert not any(blame in done.said for blame in BLAMES)


@ERAS
def test_half_a_line_is_told_by_audit(tmp_path: Path, era: str) -> None:
    server = Stubborn(tmp_path, "half", "deaf-to-eof", era)
    done = mcptest("audit", *PACE, "--", *server.command)
    assert "; stdout ends in the middle of a line, after " in done.out
    assert "it sent nothing" not in done.said


# -- a client that is slow -----------------------------------------------------------------

CLIENT = (sys.executable, "-S", str(Path(__file__).with_name("raw_client.py")), "half")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_half_a_message_of_a_client_that_we_ended_breaks_no_rule(
    tmp_path: Path, way: str, revision: str
) -> None:
    asked = ("--scenario", "tools_call", "--timeout", "8s", "--spec-version", revision)
    done = mcptest(
        *("conformance", "client", "--command", shlex.join(CLIENT), "--transport", way),
        *(*asked, "--output", str(tmp_path), "--json"),
    )
    (scenario,) = json.loads(done.out)["results"]
    failed = [one["id"] for one in scenario["checks"] if one["status"] == "FAILURE"]
    assert failed == ["client-exit"], done.said


TRAJECTORY = """
tests:
  - name: nothing is reset
    trajectory:
      - { type: absence, tools: [reset] }
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
HANDSHAKE: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)
CALL = {"id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {}}}


@pytest.fixture(params=["record", "intercept"])
def proxy(
    request: pytest.FixtureRequest, tmp_path: Path, slow_url: str
) -> Iterator[subprocess.Popen[bytes]]:
    """In front of the slow server; the port is in the file `port`, the capture `seen.jsonl`."""
    (tmp_path / "calls.yaml").write_text(TRAJECTORY)
    words = {
        "record": ["record", "--proxy", "--out", "seen.jsonl"],
        "intercept": ["intercept", "--trajectory", "calls.yaml", "--save-capture", "seen.jsonl"],
    }[request.param]
    command = [sys.executable, "-m", "mcptest", *words, "--server", slow_url, "--port-file", "port"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"listening on ")
    yield process
    process.kill()
    process.communicate()


@contextlib.contextmanager
def half_answered(folder: Path) -> Iterator[None]:
    """A client that has half of the answer to a call, up to the end of the block."""
    port = int((folder / "port").read_text())
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
    with contextlib.closing(client):
        for message in (*HANDSHAKE, CALL):
            client.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), HEADERS)
            response = client.getresponse()
            if message is not CALL:
                response.read()
        assert b"seen" in response.read1()
        yield


@pytest.mark.parametrize("number", SIGNALS)
def test_a_proxy_that_is_told_to_end_in_a_call_blames_nobody(
    tmp_path: Path, proxy: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    with half_answered(tmp_path):
        proxy.send_signal(number)
        _, told = proxy.communicate(timeout=BOUND)
    assert proxy.returncode == 0, told
    assert records_of(tmp_path / "seen.jsonl")[-1]["kind"] == "end"
    assert failed_rules(tmp_path / "seen.jsonl") == set()


def test_a_proxy_that_is_killed_in_a_call_leaves_what_came_and_nothing_in_the_way(
    tmp_path: Path, proxy: subprocess.Popen[bytes]
) -> None:
    with half_answered(tmp_path):
        proxy.kill()
        proxy.wait(BOUND)
    assert b'"tools/call"' in (tmp_path / "seen.jsonl.partial").read_bytes()
    command = [str(word) for word in proxy.args]  # type: ignore[union-attr]  # a list, see above
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as again:
        assert again.stderr is not None
        assert again.stderr.readline().startswith(b"listening on ")
        again.send_signal(signal.SIGTERM)
        again.communicate(timeout=BOUND)
    nobody_called = 4
    assert again.returncode == (nobody_called if "intercept" in command else 0)


def test_a_client_that_leaves_in_a_call_blames_nobody(
    tmp_path: Path, proxy: subprocess.Popen[bytes]
) -> None:
    with half_answered(tmp_path):
        pass
    partial = tmp_path / "seen.jsonl.partial"
    wait_until(lambda: b'"leftover"' in partial.read_bytes(), "the end of the exchange")
    proxy.send_signal(signal.SIGTERM)
    _, told = proxy.communicate(timeout=BOUND)
    assert proxy.returncode == 0, told
    assert failed_rules(tmp_path / "seen.jsonl") == set()
