"""The command line of `intercept` and `record --proxy`, and what counts as a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcptest.commands import app
from mcptest.commands.intercept import run
from mcptest.commands.intercept.run import Trace, calls_in
from mcptest.core.capture import AnyRecord, Frame
from mcptest.probe.proxied_session import Passed
from mcptest.suite.model import TraceEntry
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target

TRAJECTORY = "name: x\ntrajectory: [{ type: absence, tools: [reset] }]\n"


@pytest.mark.parametrize(
    ("words", "code", "phrase"),
    [
        (("--server", "demo"), 2, "--trajectory"),
        (("--trajectory", "no-such.yaml", "--server", "demo"), 2, "no-such.yaml"),
        (("--trajectory", "suite.yaml", "--server", "demo"), 2, "no trajectory"),
        (("--trajectory", "calls.yaml"), 2, "no server is named"),
        (("--trajectory", "calls.yaml", "--timeout", "x", "--server", "demo"), 2, "--timeout"),
        (("--trajectory", "calls.yaml", "--listen", "127.0.0.1:0", "--server", "demo"), 2, "URL"),
        (("--trajectory", "calls.yaml", "--", "no-such-command-anywhere"), 3, "command not found"),
    ],
)
def test_what_can_not_begin_says_why_on_stderr_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Sequence[str],
    code: int,
    phrase: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls.yaml").write_text(TRAJECTORY)
    (tmp_path / "suite.yaml").write_text(
        "server: { command: x }\nassert: { tool: add, expect: { not_error: true } }\n"
    )
    assert app.run(["intercept", *words]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert phrase in told.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["calls.yaml", "suite.yaml"]


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("--proxy", "--listen", "0.0.0.0:0", "--server", "http://127.0.0.1:1/"), "this machine"),
        (("--proxy", "--listen", "nonsense", "--server", "http://127.0.0.1:1/"), "HOST:PORT"),
        (("--proxy", "--listen", "127.0.0.1:0", "--server", "demo"), "URL"),
        (("--listen", "127.0.0.1:0", "--server", "demo"), "--proxy"),
        (("--proxy", "--call", "add", "--server", "demo"), "do not work with --proxy"),
    ],
)
def test_options_of_record_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], phrase: str
) -> None:
    assert app.run(["record", "--out", str(tmp_path / "x.jsonl"), *words]) == 2
    assert phrase in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# -- what counts as a call -----------------------------------------------------------------


def called(raw: bytes) -> list[TraceEntry]:
    return [call for call, _ in calls_in(raw)]


def call(name: object = "add", method: str = "tools/call") -> bytes:
    return json.dumps({"method": method, "params": {"name": name, "arguments": {"a": 1}}}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        call(),
        b"  " + call() + b"\r",
        b"[" + call() + b"]",
        b'[1,{},"x",' + call() + b"]",
        call().replace(b"tools/call", rb"tools\/call"),
        call().replace(b"tools/call", rb"tools\u002fcall"),
    ],
)
def test_a_call_is_seen_however_it_is_written(raw: bytes) -> None:
    assert called(raw) == [TraceEntry("add", {"a": 1})]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        call(method="tools/list"),
        call(name=3),
        b'{"method":"tools/call"}',
        b'{"method":"tools/call","params":[]}',
        b'{"method":["tools/call"],"params":{"name":"add"}}',
        call()[:-1],
        b"[" * 100_000,
        b'{"method":"tools/call","params":' + b"[" * 100_000,
    ],
)
def test_what_is_no_call_is_none(raw: bytes) -> None:
    assert called(raw) == []


def test_a_call_without_arguments_has_none() -> None:
    assert called(b'{"method":"tools/call","params":{"name":"x","arguments":7}}') == [
        TraceEntry("x", {})
    ]


def test_a_trace_is_bounded_and_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_CALLS", 3)
    trace, passed = Trace(), list[AnyRecord]()
    sink = trace.watch(passed.append)
    for _ in range(5):
        sink(Frame(sender="client", raw=call()))
        sink(Frame(sender="server", raw=call()))
    assert (len(trace.calls), trace.left_out, trace.messages) == (3, 2, 10)
    assert len(passed) == 10


def test_a_session_that_took_all_the_time_is_judged_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Frame(sender="server", raw=b'{"jsonrpc":"2.0","method":"notifications/message"}')

    def flooded(target: Target, recorder: Recorder, *_: object) -> Passed:
        recorder.begin(label="s", transport="stdio", peer="s")
        for _record in range(2_000):
            recorder(log)
        return Passed(0, "the server was killed", timed_out=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "pass_through", flooded)
    monkeypatch.setattr(run, "_JUDGING", 0.0)
    (tmp_path / "calls.yaml").write_text(TRAJECTORY)
    words = ("--trajectory", "calls.yaml", "--timeout", "1ns", "--server", "demo")
    assert app.run(["intercept", *words, "--json-file", "r.json"]) == 1
    results = {one["name"]: one for one in json.loads(Path("r.json").read_text())["results"]}
    assert results["session"]["kind"] == "timeout"
    assert results["invariants"]["kind"] == "timeout"
    assert "only the first 1,000 records of s were judged" in results["invariants"]["detail"]
