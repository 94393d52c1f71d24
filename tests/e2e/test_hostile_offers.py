"""Schemas that multiply and lists that never end, through every command that reads them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driving import BOUND, Done, mcptest, wait_until
from tests.rogues.offers import INPUTS, LOOPS, MANY, OUTPUTS, Server, http_server

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
UNCHECKED = "can't be checked: "
MOST_PAGES, MOST_CALLS = 20, 10
"""Of one process: an audit reads the list three times, and a fuzzer was told to call ten times."""
ANSWER = "structuredContent of bomb can't be checked against the schema: "
SAYS_OF_AN_INPUT = {
    "audit": (1, "its inputSchema " + UNCHECKED),
    "lint": (1, "inputSchema " + UNCHECKED),
    "fuzz": (1, "its inputSchema " + UNCHECKED),
    "property": (1, "bomb: its inputSchema " + UNCHECKED),
    "generate": (1, "bomb: its inputSchema " + UNCHECKED),
    "init": (1, "tool 'bomb' has a fault that its test does not check: its inputSchema "),
    "record": (1, "tools/call bomb not called: its inputSchema " + UNCHECKED),
    "compliance": (1, "the inputSchema of 'bomb' " + UNCHECKED),
    "doctor": (1, "schemas that can't be checked: bomb.inputSchema: "),
    "fleet": (1, "the inputSchema of 'bomb' " + UNCHECKED),
    "conformance": (0, ""),
    "coverage": (0, ""),
    "snapshot": (0, ""),
    "run": (0, ""),
}
"""Exit code and phrase of each command; commands that need no input schema say nothing of it."""
SAYS_OF_AN_OUTPUT = {
    "audit": (1, "its structuredContent can't be checked against its outputSchema: "),
    "lint": (1, "outputSchema " + UNCHECKED),
    "init": (0, "tool 'bomb' is broken: its test will fail"),
    "compliance": (1, "the outputSchema of 'bomb' " + UNCHECKED),
    "doctor": (1, "schemas that can't be checked: bomb.outputSchema: "),
    "fleet": (1, "the outputSchema of 'bomb' " + UNCHECKED),
    "snapshot": (0, "its own expectation fails: output_schema: " + ANSWER),
    "run": (1, "output_schema: " + ANSWER),
    "fuzz": (0, ""),
    "property": (0, ""),
    "generate": (0, ""),
    "record": (0, ""),
    "conformance": (0, ""),
    "coverage": (0, ""),
}
"""The same of an output schema. To keep an answer as golden is no check of it, and says what is."""
SAYS_OF_A_LIST = {
    "audit": (1, "tools/list could not be read"),
    "lint": (1, "tools/list could not be read"),
    "fuzz": (1, "tools/list could not be read"),
    "property": (1, "tools/list"),
    "generate": (1, "tools/list could not be read"),
    "init": (1, "tools/list could not be read"),
    "record": (1, "tools/list"),
    "compliance": (1, "PAGE-003"),
    "doctor": (1, "tools/list"),
    "conformance": (1, "tools/list"),
    "coverage": (1, "tools/list"),
    "fleet": (1, "tools/list"),
}
ALLOWED = {
    "one-of-just-allowed",
    "circle",
    "empty-repetition",
    "endless-array",
    "endless-object",
    "same-twice",
    "numbers",
}
"""Input schemas that cost little enough to be checked, and that inputs are hard to make for."""


def command_of(name: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(OFFERS), *name.split()]


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


def _assert_says(done: Done, says: tuple[int, str]) -> None:
    code, phrase = says
    assert done.code == code, done.said
    assert phrase in _said(done)


# -- schemas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", sorted(SAYS_OF_AN_INPUT))
@pytest.mark.parametrize("name", ["all-of", "reference-chain"])
def test_an_input_schema_beyond_the_limits_is_named_by_every_command(
    command: str, name: str, tmp_path: Path
) -> None:
    _assert_says(drive(command, tmp_path, name), SAYS_OF_AN_INPUT[command])


@pytest.mark.parametrize("command", sorted(SAYS_OF_AN_OUTPUT))
def test_an_output_schema_beyond_the_limits_is_named_by_every_command(
    command: str, tmp_path: Path
) -> None:
    _assert_says(drive(command, tmp_path, "output-all-of"), SAYS_OF_AN_OUTPUT[command])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("command", ["generate", "record", "fuzz"])
def test_every_input_schema_beyond_the_limits_is_named(
    command: str, first: int, tmp_path: Path
) -> None:
    """Half of them on one server: `record` calls no more than ten tools."""
    names = sorted(INPUTS.keys() - ALLOWED)[first::2]
    done = drive(command, tmp_path, ",".join(names))
    _assert_says(done, (1, SAYS_OF_AN_INPUT[command][1].replace("bomb", names[0])))
    *told, _ = _said(done).split(UNCHECKED)
    for before, name in zip(told, names, strict=True):
        assert name in before


@pytest.mark.parametrize("command", ["generate", "record", "fuzz"])
def test_an_input_schema_within_the_limits_is_held_against_nobody(
    command: str, tmp_path: Path
) -> None:
    done = drive(command, tmp_path, ",".join(sorted(ALLOWED)))
    assert done.code == 0, done.said
    assert UNCHECKED not in _said(done)


@pytest.mark.parametrize("name", sorted(OUTPUTS.keys() - {"output-tree"}))
def test_an_answer_that_costs_too_much_to_check_is_no_pass(name: str, tmp_path: Path) -> None:
    for command in ("run", "snapshot", "audit"):
        folder = tmp_path / command
        folder.mkdir()
        _assert_says(drive(command, folder, name), SAYS_OF_AN_OUTPUT[command])


def test_an_answer_that_does_not_fit_is_told_where_the_reason_costs_too_much(
    tmp_path: Path,
) -> None:
    done = drive("run", tmp_path, "output-tree")
    assert done.code == 1
    assert "does not match the schema" in _said(done)


@pytest.mark.parametrize(
    "expect", ["schema: {schema}", "checks: [{{target: result, matcher: {{schema: {schema}}}}}]"]
)
def test_a_schema_of_the_suite_itself_is_refused_with_the_reason(
    expect: str, tmp_path: Path
) -> None:
    schema = json.dumps(INPUTS["all-of"]())
    suite = SUITE.replace("{{not_error: true}}", "{{not_error: true, " + "EXPECT}}")
    executable, *args = command_of("all-of")
    suite = suite.format(command=executable, args=json.dumps(args))
    (tmp_path / "suite.yaml").write_text(suite.replace("EXPECT", expect.format(schema=schema)))
    done = mcptest("run", str(tmp_path), cwd=tmp_path)
    assert done.code == 2, done.said
    assert "schema can't be checked: checking a value against it takes" in _said(done)


@pytest.mark.parametrize("http", ["all-of"], indirect=True)
@pytest.mark.parametrize(
    "command", sorted(SAYS_OF_AN_INPUT.keys() - {"run", "snapshot", "coverage", "conformance"})
)
def test_an_input_schema_beyond_the_limits_is_named_over_http(
    command: str, http: str, tmp_path: Path
) -> None:
    _assert_says(drive(command, tmp_path, "", url=http), SAYS_OF_AN_INPUT[command])


@pytest.mark.parametrize(
    "command",
    sorted(SAYS_OF_AN_INPUT.keys() - {"run", "snapshot", "coverage", "conformance", "doctor"}),
)
def test_an_input_schema_beyond_the_limits_is_named_in_the_stateless_era(
    command: str, tmp_path: Path
) -> None:
    done = drive(command, tmp_path, "all-of stateless")
    _assert_says(done, SAYS_OF_AN_INPUT[command])


@pytest.mark.parametrize("command", ["audit", "compliance", "run"])
def test_an_output_schema_beyond_the_limits_is_named_in_the_stateless_era(
    command: str, tmp_path: Path
) -> None:
    done = drive(command, tmp_path, "output-all-of stateless")
    _assert_says(done, SAYS_OF_AN_OUTPUT[command])


def test_a_capture_with_a_schema_beyond_the_limits_is_not_judged_to_be_fine(tmp_path: Path) -> None:
    drive("record", tmp_path, "all-of")
    words = ("compliance", "invariants", "--capture", str(tmp_path / "capture.jsonl"))
    done = mcptest(*words, cwd=tmp_path)
    _assert_says(done, (1, "the inputSchema of 'bomb' " + UNCHECKED))


# -- many schemas, each within the limits --------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "fuzz", "property", "doctor"])
def test_many_costly_schemas_do_not_add_up_past_the_limit_of_the_command(
    command: str, tmp_path: Path
) -> None:
    words = {"doctor": ["--to", "2025-11-25"]}.get(command, [])
    # The bound is what fails here: it is far above the limit, and far below what all would take.
    done = mcptest(command, *words, "--max-time", "2s", "--", *command_of(MANY), cwd=tmp_path)
    # How far it comes is a matter of the machine: on a busy one the server may not be met by then.
    assert done.code in {1, 3, 4}, done.said
    assert "of --max-time" in done.said


@pytest.mark.parametrize("command", ["audit", "property", "generate", "compliance run"])
def test_an_interrupt_ends_the_work_on_many_costly_schemas(command: str, tmp_path: Path) -> None:
    seen = tmp_path / "listed"
    words = [*command.split(), *(["--output", "out"] if command == "generate" else [])]
    server = [*command_of(MANY), f"told={seen}"]
    started = subprocess.Popen(
        [sys.executable, "-m", "mcptest", *words, "--", *server],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(seen.exists, "the tools to be listed")
        started.send_signal(signal.SIGINT)
        assert started.wait(BOUND) == 130
    finally:
        started.kill()
        started.wait()


# -- lists -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["two-cursors", "endless-cursors"])
@pytest.mark.parametrize("command", sorted(SAYS_OF_A_LIST))
def test_a_list_without_an_end_is_told_by_every_command(
    command: str, loop: str, tmp_path: Path
) -> None:
    _assert_says(drive(command, tmp_path, loop), SAYS_OF_A_LIST[command])


@pytest.mark.parametrize("loop", ["same-cursor", "three-cursors"])
@pytest.mark.parametrize("command", ["generate", "lint", "record"])
def test_every_list_without_an_end_is_told(command: str, loop: str, tmp_path: Path) -> None:
    _assert_says(drive(command, tmp_path, loop), SAYS_OF_A_LIST[command])


@pytest.mark.parametrize("command", ["audit", "compliance", "record"])
def test_a_list_without_an_end_is_told_in_the_stateless_era(command: str, tmp_path: Path) -> None:
    _assert_says(drive(command, tmp_path, "endless-cursors stateless"), SAYS_OF_A_LIST[command])


@pytest.mark.parametrize("loop", ["same-cursor", "three-cursors"])
@pytest.mark.parametrize("command", sorted(SAYS_OF_A_LIST))
def test_a_cursor_that_comes_again_is_noticed_at_once(
    command: str, loop: str, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    _assert_says(drive(command, tmp_path, f"{loop} told={told}"), SAYS_OF_A_LIST[command])
    asked = Counter(told.read_text().splitlines())
    for what, count in asked.items():
        assert count <= (MOST_PAGES if what.endswith(" tools/list") else MOST_CALLS), asked


def test_a_tool_whose_schema_can_not_be_checked_does_not_count_as_working(tmp_path: Path) -> None:
    done = drive("audit", tmp_path, next(iter(INPUTS)))
    assert "score 66% (2 of 3 passed): 1 with findings" in done.out


def test_the_score_of_an_audit_is_not_full_when_a_list_has_no_end(tmp_path: Path) -> None:
    done = drive("audit", tmp_path, "same-cursor")
    assert "score 42% (3 of 3 passed, 4 lists not read to the end)" in done.out


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_listed_again_and_again_is_one_item(loop: str, tmp_path: Path) -> None:
    done = drive("generate", tmp_path, loop)
    files = [one.name for one in (tmp_path / "generated").rglob("*.yaml")]
    assert len(files) == len(set(files)) <= 4, done.said


@pytest.mark.parametrize("http", ["two-cursors"], indirect=True)
@pytest.mark.parametrize("command", ["audit", "conformance", "generate", "record"])
def test_a_list_without_an_end_is_told_over_http(command: str, http: str, tmp_path: Path) -> None:
    _assert_says(drive(command, tmp_path, "", url=http), SAYS_OF_A_LIST[command])
