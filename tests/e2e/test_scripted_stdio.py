"""`mcptest serve --scenario`: the scripted server as a program, on stdio and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.capture import Frame
from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.client.judged_client import judged_capture
from mcptest.servers.demo.jsonrpc import MAX_MESSAGE_BYTES
from mcptest.session.client import Client
from mcptest.transport.target import Target, reach_of
from tests.e2e.driving import BOUND, mcptest, records_of, wait_until
from tests.support.playing import Adder, D, E, Http, good_session, on_its_own, playing

SERVE = (sys.executable, "-m", "mcptest", "serve", "--scenario", "tools_call")
CALL = {"name": "add_numbers", "arguments": {"a": 1, "b": 2}}


@contextmanager
def served(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*SERVE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
        process.communicate(timeout=BOUND)
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[bytes], line: bytes) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def asked(process: subprocess.Popen[bytes], method: str, params: Any = None) -> Any:
    return ask(process, json.dumps(on_its_own(method, params)).encode())


# -- stdio -------------------------------------------------------------------------------------


def test_a_capture_by_hand_can_be_judged(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    with served("--spec-version", "2026-07-28", "--save-capture", str(capture)) as process:
        assert asked(process, "tools/list")["result"]["tools"][0]["name"] == "add_numbers"
        assert asked(process, "tools/call", CALL)["result"]["resultType"] == "complete"
    assert process.returncode == 0
    from mcptest.probe.conformance.scenario_catalogue import scenario_named

    result = judged_capture(scenario_named(Side.CLIENT, "tools_call"), [str(capture)])
    assert (result.revision, result.transport) == (E, "stdio")
    assert {row.status.value for row in result.checks} == {"SUCCESS"}


def test_the_captures_of_a_server_that_was_restarted_are_judged_together(tmp_path: Path) -> None:
    captures = [tmp_path / "c.jsonl", tmp_path / "c-2.jsonl"]
    first = {"protocolVersion": "2025-11-25", "capabilities": {}}
    first["clientInfo"] = {"name": "host", "version": "1"}
    wrong = {"name": "add_numbers", "arguments": {"a": "1", "b": 2}}
    for last in (CALL, wrong):
        words = ("--spec-version", "2025-11-25", "--save-capture", str(captures[0]))
        with served(*words) as process:
            for number, method, params in ((1, "initialize", first), (2, "tools/call", last)):
                request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                assert ask(process, json.dumps(request).encode())["result"]
                told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                assert process.stdin is not None
                process.stdin.write(json.dumps(told).encode() + b"\n")
    options = [word for one in captures for word in ("--capture", str(one))]
    done = mcptest("conformance", "judge", "--scenario", "tools_call", *options, "--json")
    assert done.code == 1
    rows = json.loads(done.out)["results"][0]["checks"]
    (bad,) = (row for row in rows if row["status"] == "FAILURE")
    assert bad["id"] == "tool-add-numbers"
    assert bad["details"]["capture"] == str(captures[1])
    assert '"a": "1"' in json.dumps(records_of(captures[1])[bad["record"]]).replace("\\", "")


def test_what_a_rogue_client_writes_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    with served("--spec-version", "2026-07-28", "--save-capture", str(capture)) as process:
        for line, code in (
            (b"hello", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"[1]", -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
            (b"x" * (MAX_MESSAGE_BYTES + 1), -32600),
        ):
            assert ask(process, line)["error"]["code"] == code
        assert asked(process, "tools/call", CALL)["result"]["content"]
    records = records_of(capture)
    assert [record["error"] for record in records if record["kind"] == "trouble"] == [
        "line-too-long"
    ]
    assert [record["kind"] for record in records].count("message") == 13


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_capture_survives_the_end_of_the_server(tmp_path: Path, number: int) -> None:
    capture = tmp_path / "c.jsonl"
    with served("--spec-version", "2026-07-28", "--save-capture", str(capture)) as process:
        asked(process, "tools/list")
        os.kill(process.pid, number)
    file = capture if number == signal.SIGTERM else tmp_path / "c.jsonl.partial"
    assert any("tools/list" in json.dumps(record) for record in records_of(file))


def test_a_second_launch_keeps_the_capture_of_the_first(tmp_path: Path) -> None:
    words = ("--spec-version", "2026-07-28", "--save-capture", str(tmp_path / "c.jsonl"))
    with served(*words) as first:
        asked(first, "tools/list")
        with served(*words) as second:
            asked(second, "tools/list")
    assert {file.name for file in tmp_path.iterdir()} == {"c.jsonl", "c-2.jsonl"}
    assert all(len(records_of(file)) == 5 for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve",), "no server is named"),
        (("serve", "--scenario", "tools_cal"), "did you mean tools_call?"),
        (("serve", "--scenario", "initialize", "--spec-version", "2026-07-28"), "does not support"),
        (("serve", "--scenario", "tools_call", "--root", "."), "--root applies to the demo"),
        (("serve", "demo", "--scenario", "tools_call"), "more than one server is named"),
        (("serve", "demo", "--capture", "x"), "more than one server is named"),
        (("serve", "--scenario", "sse-retry"), "use --transport http"),
        (("serve", "demo", "--capabilities", "strict"), "--capabilities requires --scenario"),
    ],
)
def test_what_can_not_be_served_is_said(words: tuple[str, ...], said: str) -> None:
    done = mcptest(*words)
    assert (done.code, said in done.err) == (2, True), done.err


# -- over HTTP, by hand ------------------------------------------------------------------------


def test_a_scenario_is_served_over_http_until_a_signal_comes(tmp_path: Path) -> None:
    port, capture = tmp_path / "port", tmp_path / "c.jsonl"
    words = ("--transport", "http", "--port-file", str(port), "--save-capture", str(capture))
    with served(*words, "--spec-version", "2026-07-28") as process:
        number = int(wait_until(lambda: port.exists() and port.read_text(), "the port"))
        assert Http(number).ask_on_its_own("tools/list").status == 200
        so_far = tmp_path / "c.jsonl.partial"
        wait_until(lambda: b"tools/list" in so_far.read_bytes(), "what came so far, in the file")
        process.terminate()
    assert process.returncode == 0
    assert [record["kind"] for record in records_of(capture)][-1] == "end"


# -- other clients -----------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [D, E, None])
def test_our_own_client_is_served_on_stdio(revision: Revision | None) -> None:
    spoken = (revision or E).value
    command = (*SERVE, "--spec-version", spoken)
    target = Target(way="stdio", label="scripted", command=command)
    with Client(reach=reach_of(target), revision=revision) as client:
        assert client.revision.value == spoken
        assert client.call_tool("add_numbers", CALL["arguments"]).ok  # type: ignore[arg-type]  # an object


@pytest.mark.parametrize("stage", [D, E])
@pytest.mark.parametrize("finds_out", [True, False])
def test_our_own_client_is_served_over_http(stage: Revision, finds_out: bool) -> None:
    with playing(Adder(), stage) as play:
        target = Target(way="http", label="scripted", url=f"{play.site.url()}/mcp")
        wanted = None if finds_out else stage
        with Client(reach=reach_of(target), revision=wanted) as client:
            assert client.revision is stage
            reply = client.call_tool("add", {"a": 1, "b": 2})
            assert reply.result["content"] == [{"type": "text", "text": "3"}]
        assert play.of(Frame)


def test_several_clients_at_once_share_a_script() -> None:
    with playing(Adder(), D) as play:
        good_session(play.port)
        first, second = Http(play.port), Http(play.port)
        first.initialize()
        second.initialize()
        assert first.headers != second.headers
        first.send("DELETE")
        assert second.ask("ping").status == 200
