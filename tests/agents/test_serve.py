"""`mcptest serve --mock` and `--capture`: servers for whoever writes a client."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcptest.report.json_schemas import schema_of
from mcptest.servers.replay import on_one_line
from mcptest.suite.mock_server import load_mock
from mcptest.suite.reading import SuiteError
from tests.docs.fences import fences_of
from tests.e2e.demo_peer import D, StdioDemo
from tests.e2e.driving import mcptest, messages_of

SERVE = (sys.executable, "-m", "mcptest", "serve")
PAGE = Path(__file__).parents[2] / "docs" / "commands" / "serve.md"
MOCK = next(
    "\n".join(fence.lines[1:]) + "\n"
    for fence in fences_of(PAGE.read_text())
    if fence.file == "weather.yaml"
)
"""The mock that the page shows."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "weather.yaml").write_text(MOCK)
    done = mcptest("record", "--server", "demo", "--out", "session.jsonl", cwd=folder)
    assert done.code == 0, done.said
    return folder


@pytest.fixture(scope="module")
def mock(folder: Path) -> Iterator[StdioDemo]:
    with StdioDemo("--mock", str(folder / "weather.yaml"), command=SERVE) as server:
        server.initialize(D, {})
        yield server


def call(server: StdioDemo, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = server.request("tools/call", {"name": tool, "arguments": arguments})
    return answer


def test_a_mock_answers_by_what_it_is_asked(mock: StdioDemo) -> None:
    result = call(mock, "forecast", city="Paris")["result"]
    assert result["structuredContent"] == {"celsius": 21}
    refused = call(mock, "forecast", city="Atlantis")["result"]
    assert refused["isError"] is True
    assert refused["content"][0]["text"] == "There is no city called Atlantis."
    assert call(mock, "forecast", city="Slowtown")["result"]["structuredContent"] == {"celsius": 3}
    assert call(mock, "forecast", city="Crash")["error"]["code"] == -32603


def test_a_mock_holds_its_callers_to_its_schemas(mock: StdioDemo) -> None:
    result = call(mock, "forecast", city=3)["result"]
    assert result["isError"] is True
    assert "city" in result["content"][0]["text"]
    assert call(mock, "unknown")["error"]["code"] == -32602


def test_a_mock_has_resources_prompts_and_completion(mock: StdioDemo) -> None:
    read = mock.request("resources/read", {"uri": "weather://stations"})["result"]["contents"][0]
    assert read["mimeType"] == "text/csv"
    prompt = mock.request("prompts/get", {"name": "pack", "arguments": {"city": "Oslo"}})
    assert prompt["result"]["messages"][0]["content"]["text"] == "What shall I pack for Oslo?"
    asked = {
        "ref": {"type": "ref/prompt", "name": "pack"},
        "argument": {"name": "city", "value": "p"},
    }
    found = mock.request("completion/complete", asked)["result"]["completion"]["values"]
    assert found == ["Paris"]


def test_a_mock_conforms(folder: Path) -> None:
    server = shlex.join([*SERVE, "--mock", "weather.yaml"])
    words = ("--spec-version", "2025-11-25", "--strict", "--format", "agent")
    done = mcptest("compliance", "run", "--server", server, *words, cwd=folder)
    assert done.code == 0, done.said
    assert "grade A+" in done.out


def test_the_schema_of_mocks_takes_the_example_and_no_nonsense(tmp_path: Path) -> None:
    import yaml

    validator = jsonschema_rs.validator_for(schema_of("mock"))
    assert validator.is_valid(yaml.safe_load(MOCK))
    assert not validator.is_valid({"name": "x", "tool": []})


BAD = {
    "name: x\ntools: [{name: a, answer: []}]": ("2", "answer"),
    "name: x\n": ("1:1", "has no tools, resources or prompts"),
    "[]": ("1:1", "a mock is a mapping"),
    "": ("", "empty"),
    "name: x\ntools: [{name: a, answers: [{text: a, error: b}]}]": (
        "2:29",
        "exactly one kind of response",
    ),
    "name: x\ntools: [{name: a, answers: [{when: {a: 1}}]}]": (
        "2:29",
        "exactly one kind of response",
    ),
    "name: x\nresources: [{uri: 'a:b', name: a}]": ("2:13", "either text or blob"),
    "name: x\ntools:\n- &t {name: a, answers: [{text: a}]}\n- *t\n": ("3", "earlier one"),
    "name: x\ntools: [{name: a, input: {type: 3}, answers: [{text: a}]}]": ("2:19", "type: object"),
    "name: x\ntools: [{name: a, answers: [{text: a}], output: {type: object, required: 3}}]": (
        "2:41",
        "is not a JSON Schema",
    ),
}


@pytest.mark.parametrize("text", list(BAD))
def test_what_is_wrong_with_a_mock_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mock.yaml"
    path.write_text(text)
    with pytest.raises(SuiteError) as tool_result:
        load_mock(str(path))
    place, words = BAD[text]
    assert f"mock.yaml:{place}" in str(tool_result.value)
    assert words in str(tool_result.value)


def test_a_recording_gives_the_same_answers_to_the_same_questions(folder: Path) -> None:
    server = shlex.join([*SERVE, "--capture", "session.jsonl"])
    done = mcptest("record", "--server", server, "--out", "again.jsonl", cwd=folder)
    assert done.code == 0, done.said

    def results(name: str) -> list[str]:
        said = messages_of(folder / name, "server")
        return [json.dumps(one["result"], sort_keys=True) for one in said if "result" in one]

    assert results("again.jsonl") == results("session.jsonl") != []


def test_a_recording_repeats_itself_and_refuses_what_it_never_heard(folder: Path) -> None:
    with StdioDemo("--capture", str(folder / "session.jsonl"), command=SERVE) as server:
        first = server.call("server/discover", capabilities={})
        assert first["result"]["supportedVersions"]
        again = server.call("server/discover", capabilities={})
        assert again["result"] == first["result"]
        never = server.call("tools/call", {"name": "never", "arguments": {}})
        assert "the capture has no response to tools/call" in never["error"]["message"]
        server.write(b"no json\n\n")
        assert server.call("server/discover", capabilities={})["result"]
        assert server.close() == 0


def test_a_message_of_several_lines_becomes_one() -> None:
    assert on_one_line(b'{"a": 1}') == b'{"a": 1}'
    assert on_one_line(b'{\n "a": 1\r\n}') == b'{"a": 1}'
    assert on_one_line(b"no\njson") == b"no json"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "no server is named"),
        (("demo", "--mock", "x.yaml"), "more than one server"),
        (("--mock", "x.yaml", "--offer", "tasks"), "--offer applies to the demo"),
        (("--mock", "x.yaml"), "No such file"),
        (("--capture", "session.jsonl", "--transport", "http"), "over stdio"),
        (("--capture", "weather.yaml"), "not a capture"),
        (("--scenario", "tools_call", "--mock", "x.yaml"), "more than one server"),
    ],
)
def test_what_can_not_be_served_is_refused(
    folder: Path, words: tuple[str, ...], reason: str
) -> None:
    done = mcptest("serve", *words, cwd=folder)
    assert done.code == 2
    assert reason in done.err
