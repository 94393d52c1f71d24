"""Schemas that multiply and lists that never end, through every command that reads them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driving import Done, mcptest
from tests.rogues.offers import INPUTS, LOOPS, OUTPUTS, Server, http_server

OFFERS = Path(__file__).parent.parent / "rogues" / "offers.py"
SUITE = """\
server:
  command: {command}
  args: {args}
tests:
  - name: calls it
    assert:
      tool: bomb
      args: {{}}
      expect: {{not_error: true}}
"""
UNCHECKED = "checked: checking a value against it takes"
SAYS_OF_A_SCHEMA = {
    "audit": (1, "its input schema can't be " + UNCHECKED),
    "lint": (1, "inputSchema can't be " + UNCHECKED),
    "fuzz": (0, "its input schema can't be used"),
    "property": (1, "bomb: its input schema can't be " + UNCHECKED),
    "generate": (0, "bomb: its input schema can't be " + UNCHECKED),
    "init": (0, "its input schema can't be " + UNCHECKED),
    "record": (0, "its inputSchema can't be " + UNCHECKED),
    "compliance": (0, "the inputSchema of 'bomb' can't be checked"),
    "doctor": (0, "schemas that can't be checked: bomb.inputSchema"),
    "fleet": (1, "its input schema can't be " + UNCHECKED),
    "conformance": (0, ""),
    "coverage": (0, ""),
    "snapshot": (0, ""),
    "run": (0, ""),
}
"""Exit code and phrase of each command; commands that need no input schema say nothing of it."""
SAYS_OF_A_LIST = {
    "audit": (1, "tools/list could not be read"),
    "lint": (1, "tools/list could not be read"),
    "fuzz": (1, "tools/list"),
    "property": (1, "tools/list"),
    "generate": (1, "tools/list could not be read"),
    "init": (1, "tools/list could not be read"),
    "record": (1, "tools/list"),
    "compliance": (None, "PAGE-003"),
    "doctor": (0, "tools/list"),
    "conformance": (1, "tools/list"),
    "coverage": (1, "tools/list"),
    "fleet": (1, "tools/list"),
}


def command_of(name: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(OFFERS), name]


def drive(command: str, folder: Path, name: str, url: str = "") -> Done:
    """Run one command on the server. That it comes to its end is what `mcptest` bounds."""
    server = ("--server", url) if url else ("--", *command_of(name))
    words = {
        "audit": ["audit"],
        "lint": ["lint"],
        "fuzz": ["fuzz", "--runs", "10"],
        "property": ["property", "--examples", "3", "--property", "arguments"],
        "generate": ["generate", "--output", str(folder / "generated")],
        "init": ["init", str(folder / "initial")],
        "record": ["record", "--out", str(folder / "capture.jsonl")],
        "compliance": ["compliance", "run", "--verbose"],
        "doctor": ["doctor", "--to", "2025-11-25", "--verbose"],
        "conformance": ["conformance", "server"],
        "coverage": ["coverage", "--suite", str(folder)],
        "snapshot": ["snapshot", "--suite", str(folder), "--update"],
    }
    if command in ("coverage", "snapshot", "run"):
        executable, *args = command_of(name)
        suite = SUITE.format(command=executable, args=json.dumps(args))
        (folder / "suite.yaml").write_text(suite)
    if command == "run":
        return mcptest("run", str(folder), cwd=folder)
    if command == "fleet":
        entry = {"url": url} if url else dict(zip(("command", "args"), _split(name), strict=True))
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
        return mcptest("fleet", str(folder / "mcp.json"), cwd=folder)
    if command == "snapshot":
        return mcptest(*words[command], cwd=folder)
    return mcptest(*words[command], *server, cwd=folder)


def _split(name: str) -> tuple[str, list[str]]:
    executable, *args = command_of(name)
    return executable, args


@pytest.fixture
def http(request: pytest.FixtureRequest) -> Iterator[str]:
    server = http_server(Server(request.param))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()
    thread.join()


def _said(done: Done) -> str:
    return " ".join(done.said.split())


@pytest.mark.parametrize("command", sorted(SAYS_OF_A_SCHEMA))
def test_a_schema_that_multiplies_is_named_by_every_command(command: str, tmp_path: Path) -> None:
    code, phrase = SAYS_OF_A_SCHEMA[command]
    done = drive(command, tmp_path, "all-of")
    assert done.code == code, done.said
    assert phrase in _said(done)


@pytest.mark.parametrize("name", sorted({*INPUTS, *OUTPUTS} - {"all-of"}))
def test_every_schema_comes_to_an_end_in_an_audit_and_in_a_compliance_run(
    name: str, tmp_path: Path
) -> None:
    for command in ("audit", "compliance", "fuzz", "record"):
        assert drive(command, tmp_path, name).code in (0, 1)


@pytest.mark.parametrize("http", ["all-of"], indirect=True)
@pytest.mark.parametrize("command", ["audit", "compliance", "doctor", "fuzz", "generate", "record"])
def test_a_schema_that_multiplies_is_named_over_http(
    command: str, http: str, tmp_path: Path
) -> None:
    code, phrase = SAYS_OF_A_SCHEMA[command]
    done = drive(command, tmp_path, "", url=http)
    if command not in ("compliance", "doctor"):  # this server is not sound by their HTTP rules
        assert done.code == code, done.said
    assert phrase in _said(done)


@pytest.mark.parametrize("name", ["output-choices", "output-unique", "output-backtracking"])
def test_a_result_that_costs_too_much_to_check_is_no_pass(name: str, tmp_path: Path) -> None:
    audited = drive("audit", tmp_path, name)
    assert audited.code == 1
    assert "its output schema can't be used" in _said(audited)
    judged = drive("compliance", tmp_path, name)
    assert "the structuredContent of 'bomb' can't be checked" in _said(judged)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("command", sorted(SAYS_OF_A_LIST))
def test_a_list_without_an_end_is_told_by_every_command(
    command: str, loop: str, tmp_path: Path
) -> None:
    code, phrase = SAYS_OF_A_LIST[command]
    done = drive(command, tmp_path, loop)
    assert code is None or done.code == code, done.said
    assert phrase in _said(done)


def test_the_score_of_an_audit_is_not_full_when_a_list_has_no_end(tmp_path: Path) -> None:
    done = drive("audit", tmp_path, "same-cursor")
    assert "score 42% (3 of 3 worked, 4 lists not read to the end)" in done.out


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_listed_again_and_again_is_one_item(loop: str, tmp_path: Path) -> None:
    done = drive("generate", tmp_path, loop)
    files = [one.name for one in (tmp_path / "generated").rglob("*.yaml")]
    assert len(files) == len(set(files)) <= 4, done.said


@pytest.mark.parametrize("http", ["two-cursors"], indirect=True)
@pytest.mark.parametrize("command", ["audit", "conformance", "generate", "record"])
def test_a_list_without_an_end_is_told_over_http(command: str, http: str, tmp_path: Path) -> None:
    code, phrase = SAYS_OF_A_LIST[command]
    done = drive(command, tmp_path, "", url=http)
    assert done.code == code, done.said
    assert phrase in _said(done)
