"""Many calls under way, on one server or several: every failure is still that of one input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.commands.fuzz import fuzzer as calls
from mcptest.commands.fuzz.fuzzer import SliceFuzzer
from mcptest.commands.fuzz.inputs import inputs_for
from mcptest.probe.live_server import Subject
from mcptest.report.fuzz import FuzzVerdict
from mcptest.transport.target import Target
from tests.e2e.driving import mcptest

SERVER = """
import fcntl, json, os, sys, threading, time

def said(text, error=False):
    return {"result": {"content": [{"type": "text", "text": text}], "isError": error}}

def call(tool, arguments):
    text = arguments.get("text") if isinstance(arguments, dict) else None
    if tool == "dozes" and text == "":
        time.sleep(1.5)
    if tool == "dies" and text in ("", " \\t  "):
        os._exit(9)
    if tool == "leaves" and text == "":
        threading.Timer(0.05, os._exit, (4,)).start()
    if tool == "fails" and text == "":
        return {"error": {"code": -32603, "message": "Internal error"}}
    return said("fine")

def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        found = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        found["serverInfo"] = {"name": "several", "version": "1"}
        reply = {"result": found}
    elif method == "server/discover":
        reply = {"error": {"code": -32601, "message": "Method not found"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        hints = {"readOnlyHint": True}
        tools = [{"name": n, "inputSchema": schema, "annotations": hints} for n in TOOLS]
        reply = {"result": {"tools": tools}}
    elif method == "tools/call":
        reply = call(params["name"], params.get("arguments"))
    else:
        reply = {"result": {}}
    data = json.dumps({"jsonrpc": "2.0", "id": message["id"]} | reply).encode() + b"\\n"
    with LOCK:
        os.write(1, data)

LOCK = threading.Lock()
TOOLS = sys.argv[2:]
if sys.argv[1] != "-":
    fcntl.flock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        if "dozes" in TOOLS and message["method"] == "tools/call":
            threading.Thread(target=answer, args=(message,)).start()
        else:
            answer(message)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "several.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def subject(script: Path, request: pytest.FixtureRequest) -> Iterator[Subject]:
    command = (sys.executable, "-I", "-S", str(script), "-", request.param)
    with Subject(Target(way="stdio", label="several", command=command)) as one:
        yield one


def fuzzed(subject: Subject, tool: str, timeout: float = 10.0) -> SliceFuzzer:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    inputs = inputs_for({"name": tool, "inputSchema": schema}, 100, 1)
    return SliceFuzzer(subject, tool, inputs, range(100), timeout).run()


def labels(subject: Subject, tool: str) -> dict[str, FuzzVerdict]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    cases = inputs_for({"name": tool, "inputSchema": schema}, 100, 1).some(0, 100)
    return {cases[n].label: one.verdict for n, one in fuzzed(subject, tool).found.items()}


@pytest.mark.parametrize("subject", ["dies"], indirect=True)
def test_each_of_two_inputs_that_kill_is_found_among_a_hundred(subject: Subject) -> None:
    found = labels(subject, "dies")
    expected = {"text: empty string", "text: whitespace only"}
    assert {label for label in found if not label.startswith("mutation")} == expected
    assert set(found.values()) == {FuzzVerdict.CRASH}


@pytest.mark.parametrize("subject", ["dozes"], indirect=True)
def test_a_tool_that_is_only_slow_is_not_blamed(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence breaks off what is under way; alone, the slow input has the whole time-out."""
    monkeypatch.setattr(calls, "_PATIENCE", 0.1)
    sliced = fuzzed(subject, "dozes")
    assert sliced.found == {}
    assert sliced.sent == 100
    assert subject.restarts >= 1


@pytest.mark.parametrize("subject", ["dozes"], indirect=True)
def test_answers_that_overtake_a_slow_one_are_a_sign_of_life(subject: Subject) -> None:
    sliced = fuzzed(subject, "dozes")
    assert (sliced.found, sliced.sent, subject.restarts) == ({}, 100, 0)


def report_of(script: Path, *options: str, lock: str = "-", tool: str = "fails") -> dict[str, Any]:
    server = (sys.executable, "-I", "-S", str(script), lock, tool)
    done = mcptest("fuzz", "--seed", "3", "--json", *options, "--", *server)
    report: dict[str, Any] = json.loads(done.out)
    return report


def outcomes(report: dict[str, Any]) -> str:
    """Everything but times and the ids of messages."""
    kept = ("label", "status", "detail", "input", "minimal", "also", "valid", "repeat", "count")
    return json.dumps(
        [
            [
                one["tool"],
                one["runs"],
                one["passed"],
                one["categories"],
                one["notes"],
                [
                    [failure[name] for name in kept if name in failure]
                    for failure in one["failures"]
                ],
            ]
            for one in report["tools"]
        ]
    )


def test_one_tool_on_several_servers_gives_the_same_outcomes_byte_for_byte(script: Path) -> None:
    alone = report_of(script, "--runs", "4500", "--jobs", "1")
    shared = report_of(script, "--runs", "4500", "--jobs", "3")
    assert outcomes(alone) == outcomes(shared)
    assert [one["status"] for one in alone["tools"][0]["failures"]] == ["crash"]


def test_a_server_that_can_only_be_there_once_is_fuzzed_by_one(
    script: Path, tmp_path: Path
) -> None:
    lock = str(tmp_path / "lock")
    report = report_of(
        script, "--runs", "2500", "--jobs", "2", "--tool", "sound", lock=lock, tool="sound"
    )
    assert report["summary"]["total_passed"] == 2500
    assert any("did not start" in note for note in report["notes"])
