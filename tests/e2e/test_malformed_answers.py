"""Every answer whose form is wrong, through every command: the colour, and the cause in words.

The table is `tests/rogues/verdicts.py`: a row for each fault, with what becomes of it. A server
that offers one tool for each fault goes through a command in one run.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.asking import Agent, outcome
from tests.e2e.driving import BOUND, Done, mcptest
from tests.e2e.legacy_sse_server import served_over_sse
from tests.rogues import malformed, verdicts
from tests.rogues.malformed import malformed_http
from tests.rogues.verdicts import FINE, NONE, REFUSED, TWICE, WARNED, Expected

SERVER = (sys.executable, "-I", "-S", str(Path(malformed.__file__)))
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
ERAS = [HANDSHAKE, STATELESS]
TABLES = {"stdio": verdicts.ON_STDIO, "http": verdicts.OVER_HTTP}
WAITED_FOR = {
    name
    for name, row in verdicts.ON_STDIO.items()
    if row.verdict == NONE and name not in verdicts.SAID_AT_ONCE
}
"""On stdio these are told when the time is over: something better might still have come."""
FAMILIES = ["two-lines", "utf-16-le", "no-id", "truncated", "content-length"]
"""Of those, the ones that go through the commands which call one tool after the other. The last
leaves a line without an end.
"""
ANSWERS = [name for name in verdicts.ON_STDIO if name not in WAITED_FOR]
PATIENT, BRIEF = "20s", "2s"


def test_every_fault_has_its_row() -> None:
    assert list(verdicts.ON_STDIO) == malformed.ON_STDIO
    assert set(verdicts.OVER_HTTP) == set(malformed.OVER_HTTP)


@contextmanager
def served(way: str, fault: str = "each", method: str = "tools/call") -> Iterator[str]:
    """What to give to --server."""
    if way == "stdio":
        yield shlex.join([*SERVER, fault, method])
    elif way == "sse":
        with served_over_sse(malformed.react(fault, method)) as url:
            yield url
    else:
        with malformed_http(fault, method) as url:
            yield url


def suite(folder: Path, tools: Iterable[str] = ("echo",)) -> str:
    tests = [
        {"name": tool, "assert": {"tool": tool, "args": {}, "expect": {"contains": ["hello"]}}}
        for tool in tools
    ]
    (folder / "suite.yaml").write_text(json.dumps({"tests": tests}))
    return "suite.yaml"


def wrongly_judged(
    table: dict[str, Expected], seen: dict[str, tuple[bool, str]], names: Collection[str]
) -> dict[str, tuple[bool, str]]:
    """The cells that are not as stated. `seen`: whether it was taken, and what was said of it."""
    wrong = {}
    for name in names:
        row, (taken, said) = table[name], seen[name]
        right = taken == (row.verdict in {WARNED, TWICE, FINE})
        if row.verdict in {REFUSED, NONE, WARNED}:
            right = right and row.words in said
        if row.verdict == FINE:
            right = right and not said
        if not right:
            wrong[name] = (taken, said)
    return wrong


# -- run, snapshot -----------------------------------------------------------------------------


def run(folder: Path, server: str, tools: Iterable[str], *more: str) -> dict[str, Any]:
    options = ("--server", server, "--json-file", "r.json", "--jobs", "8", *more)
    done = mcptest("run", suite(folder, tools), *options, cwd=folder)
    report: dict[str, Any] = json.loads((folder / "r.json").read_bytes())
    report["exit"] = done.code
    return report


def cells_of_run(report: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        one["name"]: (one["status"] == "PASS", one.get("detail") or one.get("note") or "")
        for one in report["results"]
    }


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("way", "names"), [("stdio", ANSWERS), ("http", malformed.OVER_HTTP)])
def test_run_judges_each_answer_as_stated(
    way: str, names: list[str], era: str, tmp_path: Path
) -> None:
    table = TABLES[way]
    with served(way) as server:
        report = run(tmp_path, server, names, "--spec-version", era, "--timeout", PATIENT)
    assert not wrongly_judged(table, cells_of_run(report), names)
    kinds = {one["name"]: one.get("kind") for one in report["results"] if one.get("kind")}
    expected = {
        name: verdicts.CALLED_OTHERWISE.get(name, "protocol")
        for name in names
        if table[name].verdict in {REFUSED, NONE}
    }
    assert kinds == expected
    assert report["exit"] == 1
    for name in names:
        if table[name].verdict == TWICE:
            assert any(
                "the server answered a request twice" in note and table[name].words in note
                for note in report["notes"]
            ), name


@pytest.mark.parametrize(("era", "names"), [(HANDSHAKE, sorted(WAITED_FOR)), (STATELESS, FAMILIES)])
def test_run_says_what_came_where_no_answer_can_be_used(
    era: str, names: list[str], tmp_path: Path
) -> None:
    with served("stdio") as server:
        report = run(tmp_path, server, names, "--spec-version", era, "--timeout", "4s")
    assert not wrongly_judged(verdicts.ON_STDIO, cells_of_run(report), names)
    assert {one["kind"] for one in report["results"]} == {"protocol"}


OVER_SSE = {
    # One stream carries all answers, so that an id is all that tells whose one is.
    name: row
    for name, row in verdicts.OF_ANY.items()
    if row.verdict != NONE and name not in {"carriage-return"}
}


def test_run_judges_each_answer_over_http_with_sse(tmp_path: Path) -> None:
    with served("sse") as server:
        options = ("--spec-version", "2024-11-05", "--timeout", PATIENT)
        report = run(tmp_path, server, OVER_SSE, *options)
    assert not wrongly_judged(OVER_SSE, cells_of_run(report), OVER_SSE)
    assert report["exit"] == 1


@pytest.mark.parametrize("way", TABLES)
@pytest.mark.parametrize("fault", ["nan", "bom", "batch", "neither", "string-id", "utf-16-le"])
def test_the_answer_that_begins_a_session_is_held_to_the_same(
    fault: str, way: str, tmp_path: Path
) -> None:
    with served(way, fault, "initialize") as server:
        report = run(tmp_path, server, ["echo"], "--spec-version", HANDSHAKE, "--timeout", "4s")
    (result,) = report["results"]
    assert (result["status"], result["kind"]) == ("FAIL", "protocol")
    assert TABLES[way][fault].words in result["detail"]


def test_lenient_makes_a_warning_of_what_can_be_read(tmp_path: Path) -> None:
    readable = ["invalid-utf8", "nan", "batch", "bom", "version-1", "no-version", "error-null"]
    unreadable = ["neither", "result-and-error", "unknown-content", "result-null"]
    options = ("--spec-version", HANDSHAKE, "--timeout", PATIENT, "--lenient")
    with served("stdio") as server:
        report = run(tmp_path, server, [*readable, *unreadable], *options)
    cells = cells_of_run(report)
    assert [name for name in cells if cells[name][0]] == readable
    assert all(verdicts.ON_STDIO[name].words in cells[name][1] for name in readable)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_batch_of_one_is_an_answer_in_the_one_revision_with_batches(
    revision: str, tmp_path: Path
) -> None:
    with served("stdio", "batch") as server:
        report = run(tmp_path, server, ["echo"], "--spec-version", revision, "--timeout", PATIENT)
    assert report["exit"] == (0 if revision == "2025-03-26" else 1)


@pytest.mark.parametrize("way", TABLES)
def test_no_golden_file_is_made_of_an_answer_that_is_refused(way: str, tmp_path: Path) -> None:
    table, names = TABLES[way], ANSWERS if way == "stdio" else malformed.OVER_HTTP
    options = ("--spec-version", HANDSHAKE, "--timeout", PATIENT)
    path = suite(tmp_path, names)
    with served(way) as server:
        update = ("snapshot", path, "--update", "--server", server, *options)
        done = mcptest(*update, cwd=tmp_path)
    assert done.code == 1
    bad = {name for name in names if table[name].verdict in {REFUSED, NONE}}
    assert {golden.stem for golden in tmp_path.rglob("*.snap")} == set(names) - bad
    for name in bad:
        assert table[name].words in done.out, name


# -- audit, fuzz, record, init: one tool for each fault ----------------------------------------


def tools(names: Iterable[str]) -> list[str]:
    return [word for name in names for word in ("--tool", name)]


def names_for(way: str) -> list[str]:
    return [*ANSWERS, *FAMILIES] if way == "stdio" else malformed.OVER_HTTP


@pytest.mark.parametrize(("way", "era"), [("stdio", HANDSHAKE), ("http", STATELESS)])
def test_audit_judges_each_answer_as_stated(way: str, era: str, tmp_path: Path) -> None:
    names = names_for(way)
    options = ("--json", "--spec-version", era, "--timeout", BRIEF, *tools(names))
    with served(way) as server:
        done = mcptest("audit", "--server", server, *options, cwd=tmp_path)
    report = json.loads(done.out)
    cells = {
        one["tool"]: (one["worked"], one["detail"] or "; ".join(one.get("notes", ())))
        for one in report["results"]
    }
    assert not wrongly_judged(TABLES[way], cells, names)
    assert any("the server answered a request twice" in note for note in report["notes"])
    assert report["score"] < 100
    assert done.code == 1


@pytest.mark.parametrize(("way", "era"), [("stdio", STATELESS), ("http", HANDSHAKE)])
def test_fuzz_judges_each_answer_as_stated(way: str, era: str, tmp_path: Path) -> None:
    names = names_for(way)
    if way == "stdio":
        names = [*ANSWERS, *FAMILIES[:2]]  # each is waited for several times
    options = ("--json", "--spec-version", era, "--timeout", BRIEF, "--runs", "2", "--seed", "1")
    with served(way) as server:
        done = mcptest("fuzz", "--server", server, *options, *tools(names), cwd=tmp_path)
    report = json.loads(done.out)
    notes = {
        name: "; ".join(note for note in report["notes"] if note.startswith(f"tools/call {name}:"))
        for name in names
    }
    cells = {
        one["tool"]: (
            not one["failures"],
            notes[one["tool"]] or "; ".join(failure["detail"] for failure in one["failures"]),
        )
        for one in report["tools"]
    }
    assert not wrongly_judged(TABLES[way], cells, names)
    assert any("the server answered a request twice" in note for note in report["notes"])
    assert done.code == 1


@pytest.mark.parametrize(("way", "era"), [("stdio", HANDSHAKE), ("http", STATELESS)])
def test_record_says_what_is_wrong_with_each_answer(way: str, era: str, tmp_path: Path) -> None:
    names = names_for(way)
    calls = [word for name in names for word in ("--call", f"{name}={{}}")]
    options = ("--out", "kept.jsonl", "--spec-version", era, "--timeout", BRIEF)
    with served(way) as server:
        done = mcptest("record", "--server", server, *options, *calls, cwd=tmp_path)
    steps = (line.split(maxsplit=3) for line in done.err.splitlines() if "tools/call" in line)
    cells = {
        name: (symbol in "✓!", detail[0] if detail else "") for symbol, _, name, *detail in steps
    }
    assert not wrongly_judged(TABLES[way], cells, names)
    assert "the server answered a request twice; the second response is ignored" in done.err
    assert done.code == 1
    judged = mcptest("compliance", "invariants", "--capture", "kept.jsonl", cwd=tmp_path)
    assert judged.code == 1
    assert "MSG-002" in judged.out


def test_init_makes_no_golden_file_of_an_answer_that_is_refused(tmp_path: Path) -> None:
    with served("http") as server:
        options = ("--spec-version", HANDSHAKE, "--timeout", PATIENT, "--server", server)
        done = mcptest("init", "made", *options, cwd=tmp_path)
    table = verdicts.OVER_HTTP
    for name in malformed.OVER_HTTP:
        refused = table[name].verdict in {REFUSED, NONE}
        assert (f"tool '{name}' is broken: its test will fail" in done.out) == refused, name
        assert (f"tool '{name}': its response is doubtful" in done.out) == (
            table[name].verdict == WARNED
        ), name
        assert table[name].words in done.said, name


# -- the commands that take one answer of each -------------------------------------------------

SAMPLE = [
    "invalid-utf8",
    "nan",
    "batch",
    "bom",
    "version-1",
    "string-id",
    "error-without-code",
    "unknown-content",
    "duplicate-key",
    "twice",
]
SCENARIO = (
    *("conformance", "server", "--scenario", "tools-call-simple-text", "--verbose"),
    *("--map", "test_simple_text=echo", "--spec-version", HANDSHAKE),
)
DOCTOR = ("doctor", "--to", STATELESS)
IN_OTHER_WORDS = {
    ("conformance", "batch"): "the server sent messages in an array",
    ("conformance", "string-id"): "id",
    ("conformance", "error-without-code"): "code",
    ("conformance", "unknown-content"): "video",
    ("conformance", "twice"): "already has a response",
    ("doctor", "twice"): "the server answered a request twice",
}


@pytest.mark.parametrize(
    ("words", "fault"),
    [*((SCENARIO, fault) for fault in SAMPLE), *((DOCTOR, fault) for fault in SAMPLE[-5:])],
    ids=lambda one: one if isinstance(one, str) else one[0],
)
def test_a_fault_of_an_answer_is_said_by(
    words: tuple[str, ...], fault: str, tmp_path: Path
) -> None:
    row = verdicts.ON_STDIO[fault]
    with served("stdio", fault) as server:
        done = mcptest(*words, "--server", server, "--timeout", PATIENT, cwd=tmp_path)
    assert IN_OTHER_WORDS.get((words[0], fault), row.words) in done.said, done.said
    # The server that is examined has other faults that stand in the way of a move.
    taken = words is SCENARIO and row.verdict in {WARNED, TWICE}
    assert done.code == (0 if taken else 1)


OFFERING: dict[str, tuple[str, ...]] = {
    "audit": ("audit",),
    "fuzz": ("fuzz", "--runs", "5"),
    "generate": ("generate", "--output", "made"),
    "init": ("init", "made", "--no-snapshots"),
    "coverage": ("coverage", "suite.yaml"),
    "lint": ("lint",),
    "record": ("record", "--out", "recorded.jsonl"),
    "doctor": DOCTOR,
}


def started(folder: Path, words: tuple[str, ...], server: str, timeout: str = PATIENT) -> Done:
    version = () if words[0] in {"coverage", "doctor"} else ("--spec-version", HANDSHAKE)
    return mcptest(*words, *version, "--server", server, "--timeout", timeout, cwd=folder)


@pytest.mark.parametrize("fault", ["nan", "string-id", "result-null", "duplicate-key"])
@pytest.mark.parametrize("command", OFFERING)
def test_a_fault_of_a_list_is_said_by(command: str, fault: str, tmp_path: Path) -> None:
    suite(tmp_path)
    row = verdicts.ON_STDIO[fault]
    with served("stdio", fault, "tools/list") as server:
        done = started(tmp_path, OFFERING[command], server)
    assert row.words in done.said
    assert done.code == (0 if row.verdict == WARNED and command != "doctor" else 1)


@pytest.mark.parametrize("command", OFFERING)
def test_a_malformed_beginning_is_said_by(command: str, tmp_path: Path) -> None:
    suite(tmp_path)
    method = "server/discover" if command in {"coverage", "doctor"} else "initialize"
    with served("stdio", "nan", method) as server:
        done = started(tmp_path, OFFERING[command], server)
    assert "NaN is not JSON" in done.said
    assert done.code == (0 if command == "fuzz" else 1)


@pytest.mark.parametrize("command", ["audit", "lint", "generate", "record"])
def test_a_beginning_that_cannot_be_read_is_named_by(command: str, tmp_path: Path) -> None:
    with served("stdio", "two-lines", "initialize") as server:
        done = started(tmp_path, (*OFFERING[command], "--startup-timeout", "4s"), server, "4s")
    assert "it is JSON over several lines" in done.said
    assert done.code == 3


@pytest.mark.parametrize("command", ["property", "compliance"])
def test_a_malformed_answer_breaks_its_rule_in(command: str, tmp_path: Path) -> None:
    words = {
        "property": ("property", "--property", "messages-valid", "--seed", "1", "--no-database"),
        "compliance": ("compliance", "run"),
    }[command]
    with served("http", "nan") as server:
        done = started(tmp_path, words, server)
    assert "MSG-002" in done.out
    assert "NaN is not JSON" in done.out
    assert done.code == 1


# -- the proxies -------------------------------------------------------------------------------

SESSION = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}},
]
TRAJECTORY = "tests: [{name: calls, trajectory: [{type: presence, tools: [echo]}]}]\n"


def talked(argv: Sequence[str], folder: Path) -> tuple[int, bytes, str]:
    """The session of a client that waits for the answer to `initialize`."""
    first, *rest = [json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in SESSION]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(argv, cwd=folder, **pipes) as process:
        process.stdin.write(first)
        process.stdin.flush()
        begun = process.stdout.readline()
        out, err = process.communicate(b"".join(rest), timeout=BOUND)
    return process.returncode, begun + out, err.decode()


@pytest.mark.parametrize("fault", ["nan", "duplicate-key", "twice", "utf-16-le", "unknown-content"])
def test_a_session_through_a_proxy_is_passed_on_and_judged(fault: str, tmp_path: Path) -> None:
    (tmp_path / "calls.yaml").write_text(TRAJECTORY)
    _, alone, _ = talked([*SERVER, fault], tmp_path)
    commands = {
        "record": ("record", "--proxy", "--out", "kept.jsonl"),
        "intercept": ("intercept", "--trajectory", "calls.yaml"),
    }
    row = verdicts.ON_STDIO[fault]
    for command, words in commands.items():
        argv = [sys.executable, "-m", "mcptest", *words, "--", *SERVER, fault]
        code, out, err = talked(argv, tmp_path)
        assert out == alone, command
        if command == "intercept":
            assert row.rule in err
            assert code == (0 if row.verdict == WARNED else 1)
    judged = mcptest("compliance", "invariants", "--capture", "kept.jsonl", cwd=tmp_path)
    assert row.rule in judged.out


# -- agents, fleets, pytest --------------------------------------------------------------------

TOLD = ["nan", "string-id", "unknown-content"]


def configured(folder: Path, faults: Iterable[str]) -> str:
    """A client configuration with a server for each fault."""
    program, *arguments = SERVER
    servers = {one: {"command": program, "args": [*arguments, one]} for one in faults}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return ".mcp.json"


def test_an_agent_is_told_of_a_malformed_answer(tmp_path: Path) -> None:
    configured(tmp_path, TOLD)
    allowed = [word for one in TOLD for word in ("--allow-server", one)]
    with Agent(tmp_path, "--allow-run", *allowed) as agent:
        for fault in TOLD:
            told = outcome(agent.use("audit_server", {"server_name": fault}))
            assert verdicts.ON_STDIO[fault].words in json.dumps(told), fault
            assert told["verdict"] != "pass", fault


def test_a_fleet_says_what_is_malformed(tmp_path: Path) -> None:
    words = ("fleet", configured(tmp_path, TOLD), "--timeout", PATIENT)
    done = mcptest(*words, "--json-file", "fleet.json", "--verbose", cwd=tmp_path)
    assert done.code == 1
    report = (tmp_path / "fleet.json").read_text() + done.said
    for fault in TOLD:
        assert verdicts.ON_STDIO[fault].rule in report, fault


def test_a_suite_under_pytest_says_what_is_malformed(tmp_path: Path) -> None:
    for fault in TOLD:
        program, *arguments = SERVER
        server = {"command": program, "args": [*arguments, fault], "spec_version": HANDSHAKE}
        test = {
            "name": fault,
            "assert": {"tool": "echo", "args": {}, "expect": {"not_error": True}},
        }
        (tmp_path / f"{fault}.yaml").write_text(json.dumps({"server": server, "tests": [test]}))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--mcptest", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert f"{len(TOLD)} failed" in done.stdout, done.stdout + done.stderr
    for fault in TOLD:
        assert verdicts.ON_STDIO[fault].words in done.stdout, fault


# -- tests in Python ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nan", "the answer to tools/call is malformed: NaN is not JSON"),
        ("duplicate-key", "the answer to tools/call is doubtful: the key 'extra' occurs twice"),
        ("twice", "the server answered a request twice"),
    ],
)
def test_a_test_in_python_is_warned_of(fault: str, words: str) -> None:
    from mcptest.testing import MalformedAnswer, Server

    server = Server(shlex.join([*SERVER, fault]), revision=HANDSHAKE)
    with pytest.warns(MalformedAnswer) as caught, server.connect() as client:
        assert client.call_tool("echo", {}).ok
    assert any(words in str(one.message) for one in caught)


def test_a_healthy_answer_is_no_reason_to_warn() -> None:
    from mcptest.testing import Server

    with contextlib.ExitStack() as session:
        server = Server(shlex.join([*SERVER, "float-id"]), revision=HANDSHAKE)
        client = session.enter_context(server.connect())
        assert client.call_tool("echo", {}).ok
