"""A proxy between a client and a stubborn server: it always ends, and the server ends with it.

EOF, then a signal, then SIGKILL is how clients close. Each is passed on.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.transport.proxy import pipes
from tests.e2e.driving import BOUND, is_alive, records_of, wait_until
from tests.e2e.stubborn_servers import Stubborn

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
TRAJECTORY = """
tests:
  - name: nothing is reset
    trajectory:
      - { type: absence, tools: [reset] }
"""
DEAF = ("deaf-to-eof", "deaf-to-signals")
COMMANDS = ("record", "intercept")
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KILLED = 128 + signal.SIGKILL


class Session:
    """A client of a stubborn server behind a proxy, after the handshake."""

    def __init__(self, command: str, folder: Path, *words: str, options: tuple[str, ...] = ()):
        self.out = folder / "seen.jsonl"
        self.server = Stubborn(folder, *words)
        self.process = subprocess.Popen(
            [*self._words(command, folder, options), "--", *self.server.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.stderr = self.process.stderr
        self.ask(1, "initialize", INITIALIZE)
        assert json.loads(self.stdout.readline())["id"] == 1
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _words(self, command: str, folder: Path, options: tuple[str, ...]) -> list[str]:
        mcptest = [sys.executable, "-m", "mcptest", command]
        if command == "record":
            return [*mcptest, "--proxy", "--out", str(self.out), *options]
        (folder / "calls.yaml").write_text(TRAJECTORY)
        wanted = ["--trajectory", str(folder / "calls.yaml"), "--save-capture", str(self.out)]
        return [*mcptest, *wanted, *options]

    def _send(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def ask(self, identifier: int, method: str, params: Any = None) -> None:
        request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params or {}}
        self._send(request)

    def call_and_wait_until_it_stands_still(self) -> None:
        self.ask(2, "tools/call", {"name": "look", "arguments": {}})
        self.wait_until_it_stands_still()

    def wait_until_it_stands_still(self) -> None:
        assert self.stderr.readline() == b"standing still\n"

    def hang_up(self) -> None:
        self.stdin.close()
        self.process.stdin = None

    def ends(self) -> int:
        """The exit code. Nothing that was started is left, and the capture is in its place."""
        self.said = self.process.communicate(timeout=BOUND)
        self.server.assert_gone()
        assert self.records[-1]["kind"] == "end"
        return self.process.returncode

    @property
    def records(self) -> list[dict[str, Any]]:
        return records_of(self.out)

    @property
    def exit(self) -> dict[str, Any]:
        return next(each for each in self.records if each["kind"] == "exit")


Start = Callable[..., Session]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Session] = []

    def begin(command: str, *words: str, **more: Any) -> Session:
        started.append(Session(command, tmp_path, *words, **more))
        return started[-1]

    yield begin
    for session in started:
        session.process.kill()
        session.process.communicate()


pytestmark = pytest.mark.parametrize("command", COMMANDS)


# -- what a client does --------------------------------------------------------------------


def test_eof_reaches_the_server_and_its_exit_is_ours(start: Start, command: str) -> None:
    session = start(command)
    session.hang_up()
    assert session.ends() == 0
    assert session.exit["after"] == "stdin-closed"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_reaches_the_server_and_its_exit_is_ours(
    start: Start, command: str, number: signal.Signals
) -> None:
    session = start(command, "leaves-with=9", "hangs")
    session.call_and_wait_until_it_stands_still()
    session.process.send_signal(number)
    assert session.ends() == 9
    assert session.exit["after"] == "terminate"


def test_what_a_server_says_after_the_signal_is_passed_on_and_not_judged(
    start: Start, command: str
) -> None:
    session = start(command, "hangs", "farewell")
    session.call_and_wait_until_it_stands_still()
    session.process.send_signal(signal.SIGTERM)
    assert session.ends() == 0, session.said
    assert b"good bye" in session.said[0]
    late = [each["kind"] for each in session.records if "good bye" in json.dumps(each)]
    assert late == ["leftover"]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", [("hangs",), ("half",), ("flood",), ("hangs", "grandchild")])
def test_a_deaf_server_is_killed_soon_after_the_signal_that_it_ignored(
    start: Start, command: str, words: tuple[str, ...], number: signal.Signals
) -> None:
    session = start(command, *DEAF, *words)
    session.call_and_wait_until_it_stands_still()
    session.process.send_signal(number)
    assert session.ends() == KILLED
    assert session.exit["after"] == "kill"


@pytest.mark.parametrize("number", SIGNALS)
def test_eof_then_a_signal_ends_a_server_that_ignores_both(
    start: Start, command: str, number: signal.Signals
) -> None:
    session = start(command, *DEAF, "grandchild")
    session.hang_up()
    session.wait_until_it_stands_still()
    session.process.send_signal(number)
    assert session.ends() == KILLED


def test_a_second_signal_does_not_wait_for_the_server(start: Start, command: str) -> None:
    session = start(command, *DEAF, "hangs")
    session.call_and_wait_until_it_stands_still()
    session.process.send_signal(signal.SIGTERM)
    session.process.send_signal(signal.SIGINT)
    assert session.ends() == KILLED


def test_a_client_that_kills_us_kills_the_server(start: Start, command: str) -> None:
    session = start(command, *DEAF, "hangs", "grandchild")
    session.call_and_wait_until_it_stands_still()
    partial = session.out.with_name(session.out.name + ".partial")
    wait_until(lambda: b'"tools/call"' in partial.read_bytes(), "the call in the capture")
    session.process.kill()
    session.process.communicate(timeout=BOUND)
    session.server.assert_gone()
    assert b'"tools/call"' in partial.read_bytes()


def test_a_server_that_ends_itself_in_a_call_is_not_said_to_be_ended(
    start: Start, command: str
) -> None:
    session = start(command, "half-and-exits")
    session.ask(2, "tools/call", {"name": "look", "arguments": {}})
    session.process.wait(BOUND)  # while our side is still open
    assert session.ends() == (7 if command == "record" else 1)
    assert "after" not in session.exit
    assert "truncated" in [each.get("error") for each in session.records]


def test_a_child_that_answers_in_the_place_of_its_server_is_heard_as_without_a_proxy(
    start: Start, command: str
) -> None:
    session = start(command, "moves-to-a-child")
    session.ask(2, "tools/call", {"name": "look", "arguments": {}})
    assert json.loads(session.stdout.readline())["id"] == 2
    wait_until(lambda: not is_alive(session.server.processes[0]), "the end of the server")
    session.ask(3, "tools/list")
    assert json.loads(session.stdout.readline())["id"] == 3
    session.hang_up()
    assert session.ends() == 0
    assert "after" not in session.exit


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of silence is enough for a proxy that is started in this test."""
    assert pipes.SILENCE <= 30
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import mcptest.transport.proxy.pipes as proxy\nproxy.SILENCE = 0.5\n"
    )


@pytest.mark.usefixtures("impatient")
def test_silence_after_eof_has_an_end(start: Start, command: str) -> None:
    """A client that closed its side and waits for the server's last words gets no orphan."""
    session = start(command, *DEAF, "hangs")
    session.call_and_wait_until_it_stands_still()
    session.hang_up()
    assert session.ends() == KILLED
    assert session.exit["after"] == "kill"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("words", [("flood",), ("flood", "grandchild"), ("flood-of-errors",)])
def test_a_flood_ends_when_a_client_that_has_read_of_it_is_gone(
    start: Start, command: str, words: tuple[str, ...]
) -> None:
    session = start(command, *DEAF, *words)
    session.call_and_wait_until_it_stands_still()
    session.hang_up()
    flooded = session.stderr if "flood-of-errors" in words else session.stdout
    for _ in range(1000):
        assert flooded.readline()
    session.stdout.close()
    session.stderr.close()
    session.process.wait(BOUND)
    session.server.assert_gone()
    assert session.records[-1]["kind"] == "end"


LIMITED = [("hangs",), ("half",), ("flood",), ("flood-of-errors",), ("hangs", "grandchild")]


@pytest.mark.parametrize("words", LIMITED, ids=" ".join)
def test_the_time_for_a_session_ends_a_deaf_server(
    start: Start, command: str, words: tuple[str, ...]
) -> None:
    if command == "record":
        pytest.skip("record --proxy has no time for a session")
    session = start(command, *DEAF, *words, options=("--timeout", "3s"))
    session.ask(2, "tools/call", {"name": "look", "arguments": {}})
    assert session.ends() == 1
    assert session.exit["after"] == "kill"
    assert b"3s" in session.said[1]


def test_a_client_that_reads_no_more_does_not_keep_us_after_a_signal(
    start: Start, command: str
) -> None:
    session = start(command, *DEAF, "flood")
    session.call_and_wait_until_it_stands_still()
    session.process.send_signal(signal.SIGTERM)
    session.process.wait(BOUND)
    session.server.assert_gone()
    assert session.records[-1]["kind"] == "end"


def test_a_client_that_dies_takes_everyone_with_it(tmp_path: Path, command: str) -> None:
    """Its pipes close, and we have another parent."""
    server = Stubborn(tmp_path, *DEAF, "grandchild")
    out = tmp_path / "seen.jsonl"
    (tmp_path / "calls.yaml").write_text(TRAJECTORY)
    mine = {
        "record": ["record", "--proxy", "--out", str(out)],
        "intercept": ["intercept", "--trajectory", str(tmp_path / "calls.yaml")],
    }[command]
    proxied = [sys.executable, "-m", "mcptest", *mine, "--", *server.command]
    client = (
        "import os, subprocess, sys\n"
        f"proxy = subprocess.Popen({proxied!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"while not os.path.exists({str(tmp_path / 'pids')!r}): os.sched_yield()\n"
        "print(proxy.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", client], capture_output=True, timeout=BOUND)
    server.assert_gone()
    wait_until(lambda: not is_alive(int(done.stdout)), "the end of the proxy")
