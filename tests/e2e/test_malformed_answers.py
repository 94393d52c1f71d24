"""An answer whose form no client should accept is never a pass without a word, in any command."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import Done, mcptest
from tests.rogues import malformed
from tests.rogues.malformed import malformed_http

SERVER = (sys.executable, "-I", "-S", str(Path(malformed.__file__)))
REFUSED = {
    "invalid-utf8": "byte 0xff",
    "nan": "NaN is not JSON",
    "infinity": "-Infinity is not JSON",
    "batch": "it stands in an array of messages",
    "bom": "starts with a byte order mark",
    "version-1": "jsonrpc is '1.0'",
    "no-version": 'jsonrpc: "2.0" is missing',
    "error-null": "error is null beside the result",
    "result-and-error": "both result and error are present",
    "neither": "none of method, result and error is present",
    "error-text": "error is a string",
}
READABLE = sorted(REFUSED.keys() - {"neither", "result-and-error", "error-text"})
WARNED = {
    "duplicate-key": "occurs twice",
    "lone-surrogate": "surrogate",
    "huge-number": "too large",
}
ACCEPTED = ["none", "float-id", "extra-member"]


@contextmanager
def served(fault: str, way: str, method: str = "tools/call") -> Iterator[str]:
    """What to give to --server."""
    if way == "stdio":
        yield shlex.join([*SERVER, fault, method])
    else:
        with malformed_http(fault, method) as url:
            yield url


def suite(folder: Path) -> str:
    test = {
        "name": "says hello",
        "assert": {"tool": "echo", "args": {}, "expect": {"contains": ["hello"]}},
    }
    (folder / "suite.yaml").write_text(json.dumps({"tests": [test]}))
    return "suite.yaml"


def run(folder: Path, server: str, *more: str) -> tuple[Done, dict[str, Any]]:
    path = suite(folder)
    options = ("--spec-version", "2025-11-25", "--timeout", "20s", "--json-file", "r.json")
    done = mcptest("run", path, "--server", server, *options, *more, cwd=folder)
    (result,) = json.loads((folder / "r.json").read_bytes())["results"]
    return done, result


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("fault", REFUSED)
def test_a_test_whose_answer_is_malformed_fails_and_says_why(
    fault: str, way: str, tmp_path: Path
) -> None:
    with served(fault, way) as server:
        done, result = run(tmp_path, server)
    assert done.code == 1
    assert (result["status"], result["kind"]) == ("FAIL", "protocol")
    assert REFUSED[fault] in result["detail"]
    assert "tool call echo failed: the answer is malformed" in result["detail"]
    assert result["proof"]["response"]


@pytest.mark.parametrize("fault", READABLE)
def test_lenient_makes_a_warning_of_it(fault: str, tmp_path: Path) -> None:
    with served(fault, "stdio") as server:
        done, result = run(tmp_path, server, "--lenient")
    assert (done.code, result["status"]) == (0, "PASS")
    assert REFUSED[fault] in result["note"]
    assert REFUSED[fault].split()[0] in done.out


@pytest.mark.parametrize("fault", ["neither", "result-and-error"])
def test_lenient_does_not_make_an_answer_of_none(fault: str, tmp_path: Path) -> None:
    with served(fault, "stdio") as server:
        done, result = run(tmp_path, server, "--lenient")
    assert (done.code, result["kind"]) == (1, "protocol")


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("fault", WARNED)
def test_what_json_allows_and_readers_differ_on_is_a_warning(
    fault: str, way: str, tmp_path: Path
) -> None:
    with served(fault, way) as server:
        done, result = run(tmp_path, server)
    assert (done.code, result["status"]) == (0, "PASS")
    assert WARNED[fault] in result["note"]


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("fault", ACCEPTED)
def test_what_is_allowed_is_accepted_without_a_word(fault: str, way: str, tmp_path: Path) -> None:
    with served(fault, way) as server:
        done, result = run(tmp_path, server)
    assert (done.code, result["status"]) == (0, "PASS")
    assert not result.get("note")
    assert "warning" not in done.out


@pytest.mark.parametrize("fault", ["nan", "bom", "batch", "no-version"])
def test_the_answer_that_begins_a_session_is_held_to_the_same(fault: str, tmp_path: Path) -> None:
    with served(fault, "stdio", "initialize") as server:
        done, result = run(tmp_path, server)
        assert (done.code, result["kind"]) == (1, "protocol")
        assert "MCP initialize failed: the answer is malformed: " in result["detail"]
        assert REFUSED[fault] in result["detail"]
        done, result = run(tmp_path, server, "--lenient")
    assert (done.code, result["status"]) == (0, "PASS")
    assert REFUSED[fault] in result["note"]


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_id_that_comes_back_as_a_string_fails_the_test_before_its_time(
    way: str, tmp_path: Path
) -> None:
    with served("string-id", way) as server:
        _, result = run(tmp_path, server)
    assert "the answer has the id '2', a string; the request had 2, a number" in result["detail"]


def test_a_second_answer_is_a_warning_of_the_run(tmp_path: Path) -> None:
    with served("twice", "stdio") as server:
        done, result = run(tmp_path, server)
    assert (done.code, result["status"]) == (0, "PASS")
    notes = json.loads((tmp_path / "r.json").read_bytes())["notes"]
    assert any("a request was answered twice" in note for note in notes), notes


# -- every other command that takes an answer --------------------------------------------------

COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": ("audit",),
    "fuzz": ("fuzz", "--runs", "5"),
    "property": ("property", "--property", "messages-valid", "--seed", "1", "--no-database"),
    "conformance": (
        *("conformance", "server", "--scenario", "tools-call-simple-text"),
        *("--fixture", "test_simple_text=echo", "--verbose"),
    ),
    "record": ("record", "--out", "recorded.jsonl"),
    "init": ("init", "made"),
    "doctor": ("doctor", "--to", "2026-07-28"),
}
OFFERING: dict[str, tuple[str, ...]] = {
    "audit": ("audit",),
    "fuzz": ("fuzz", "--runs", "5"),
    "generate": ("generate", "--output", "made"),
    "init": ("init", "made"),
    "coverage": ("coverage", "suite.yaml"),
    "lint": ("lint",),
    "record": ("record", "--out", "recorded.jsonl"),
    "doctor": ("doctor", "--to", "2026-07-28"),
}
FAMILY = ["invalid-utf8", "nan", "batch", "bom", "version-1", "error-null"]


def started(folder: Path, words: tuple[str, ...], server: str) -> Done:
    version = () if words[0] in {"coverage", "doctor"} else ("--spec-version", "2025-11-25")
    return mcptest(*words, *version, "--server", server, cwd=folder)


@pytest.mark.parametrize("fault", FAMILY)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_malformed_answer_to_a_call_is_said_by(command: str, fault: str, tmp_path: Path) -> None:
    with served(fault, "stdio") as server:
        done = started(tmp_path, COMMANDS[command], server)
    said = done.out + done.err
    words = REFUSED[fault].split(" is ", maxsplit=1)[0]
    said = said.replace("a batch of 1 messages", "it stands in an array of messages")
    assert words in said or "in an array" in said, said
    assert done.code == (0 if command == "init" else 1)
    if command == "init":
        assert "is broken: its test will fail" in said
        assert not list(tmp_path.rglob("*.snap*")), "no golden file of a malformed answer"


@pytest.mark.parametrize("method", ["tools/list", "initialize"])
@pytest.mark.parametrize("command", OFFERING)
def test_a_malformed_list_or_beginning_is_said_by(
    command: str, method: str, tmp_path: Path
) -> None:
    suite(tmp_path)
    with served("nan", "stdio", method) as server:
        done = started(tmp_path, OFFERING[command], server)
    assert "NaN is not JSON" in done.out + done.err
    assert done.code == (0 if (command, method) == ("fuzz", "initialize") else 1)


def test_a_golden_file_is_not_made_of_a_malformed_answer(tmp_path: Path) -> None:
    suite(tmp_path)
    with served("nan", "stdio") as server:
        options = ("--spec-version", "2025-11-25", "--server", server)
        done = mcptest("snapshot", "suite.yaml", "--update", *options, cwd=tmp_path)
        assert done.code == 1
        assert "NaN is not JSON" in done.out
        assert not [one for one in tmp_path.rglob("*") if "snap" in one.name]
        done = mcptest("snapshot", "suite.yaml", "--update", "--lenient", *options, cwd=tmp_path)
        assert done.code == 0
        assert [one for one in tmp_path.rglob("*") if "snap" in one.name]


@pytest.mark.parametrize("command", ["audit", "fuzz", "record"])
def test_a_healthy_answer_is_said_to_be_one_by(command: str, tmp_path: Path) -> None:
    with served("float-id", "stdio") as server:
        done = started(tmp_path, COMMANDS[command], server)
    assert done.code == 0
    assert "malformed:" not in done.out + done.err
