"""Every command meets a server in the same revision, however slow it starts, whatever its era."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.driving import Done, listening, mcptest, messages_of, record, records_of

ERAS = Path(__file__).with_name("eras.py")
NEW, OLD = "2026-07-28", "2025-11-25"
LISTED = "server/discover lists it"
REFUSED = "the server rejected server/discover (-32601 Method not found)"
NEWEST = "the newest that server/discover lists"
NAMED = "the newest that the server names in its error"
IGNORED = "the server did not answer server/discover, but a second process answered initialize"
IGNORED_ALONE = (
    "the server did not answer server/discover, but another process, alone, answered initialize"
)
ENDED = "the server exited at server/discover"
SPOKEN = [
    ("modern", NEW, LISTED),
    ("dual", NEW, LISTED),
    ("legacy", OLD, REFUSED),
    ("older", OLD, NEWEST),
    ("unsupported", OLD, NAMED),
    ("exits", OLD, ENDED),
]
SLOW = [one for one in SPOKEN if one[0] in {"dual", "legacy", "older", "unsupported"}]
"""Their twins answer `initialize`, and only then do they read what they were asked."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "capture.jsonl"


def eras(kind: str, *more: str) -> list[str]:
    return [sys.executable, "-S", str(ERAS), kind, *more]


def locked(kind: str, folder: Path) -> list[str]:
    return eras(kind, "--lock", str(folder / "lock"))


@contextlib.contextmanager
def over_http(kind: str, folder: Path, *more: str) -> Iterator[str]:
    place = folder / "port"
    with listening(eras(kind, "--http", str(place), *more), "ready"):
        yield f"http://127.0.0.1:{place.read_text()}/mcp"


def session_of(done: Done, out: Path) -> tuple[str, list[str]]:
    """Why the one session of a capture has its revision, and what the client said in it."""
    assert done.code == 0, done.said
    opened = [each for each in records_of(out) if each["kind"] == "capture"]
    assert len(opened) == 1
    methods = [each["method"] for each in messages_of(out, "client") if "method" in each]
    return opened[0]["revision_reason"], methods


def judged_revision(out: Path) -> tuple[str, str, str]:
    done = mcptest("compliance", "invariants", "--capture", str(out), "--json")
    (session,) = json.loads(done.out)["sessions"]
    failed = [one["rule"] for one in session["verdicts"] if one["outcome"] == "fail"]
    assert not failed, failed
    return session["revision"], session["era"], session["revision_reason"]


def met_as(done: Done, out: Path, revision: str, reason: str) -> None:
    """A recording is one session, begun as its revision begins, and is judged as such offline."""
    told, methods = session_of(done, out)
    assert told == reason
    assert f"{revision}: {reason}" in done.err
    assert methods[0] == ("server/discover" if revision == NEW else "initialize")
    assert ("initialize" in methods) != ("server/discover" in methods)
    era = "stateless" if revision == NEW else "handshake"
    assert judged_revision(out) == (revision, era, reason)


# -- record, and what is judged offline ----------------------------------------------------


@pytest.mark.parametrize(("kind", "revision", "reason"), SPOKEN)
def test_a_server_on_stdio_is_met_by_its_answer(
    out: Path, kind: str, revision: str, reason: str
) -> None:
    met_as(record(out, command=eras(kind)), out, revision, reason)


@pytest.mark.parametrize(("kind", "revision", "reason"), SLOW)
def test_a_start_that_ends_after_that_of_its_twin_changes_nothing(
    out: Path, tmp_path: Path, kind: str, revision: str, reason: str
) -> None:
    done = record(out, command=eras(kind, "--after", str(tmp_path / "answered")))
    assert (tmp_path / "answered").exists()
    met_as(done, out, revision, reason)


def test_a_server_that_ignores_the_question_is_met_by_its_twin(out: Path) -> None:
    met_as(record(out, "--timeout", "8s", command=eras("ignores")), out, OLD, IGNORED)


@pytest.mark.parametrize(
    ("kind", "revision", "reason"), [one for one in SPOKEN if one[0] != "exits"]
)
def test_a_server_over_http_is_met_by_its_answer(
    out: Path, tmp_path: Path, kind: str, revision: str, reason: str
) -> None:
    with over_http(kind, tmp_path) as url:
        met_as(record(out, "--server", url), out, revision, reason)


@pytest.mark.parametrize(("kind", "revision", "reason"), SLOW)
def test_a_slow_answer_over_http_changes_nothing(
    out: Path, tmp_path: Path, kind: str, revision: str, reason: str
) -> None:
    with over_http(kind, tmp_path, "--after", str(tmp_path / "answered")) as url:
        met_as(record(out, "--server", url), out, revision, reason)


def test_the_demo_over_http_sse_is_begun_with_a_handshake(out: Path, tmp_path: Path) -> None:
    place = tmp_path / "port"
    words = ("-m", "mcptest.servers.demo", "--transport", "http", "--port-file", str(place))
    with listening((sys.executable, *words), "listening"):
        url = f"http://127.0.0.1:{place.read_text().strip()}/sse"
        done = record(out, "--server", url, "--transport", "sse")
    told, methods = session_of(done, out)
    assert told == "HTTP+SSE starts with the handshake"
    assert methods[0] == "initialize"


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_who_speaks_nothing_that_we_speak_is_told_what_it_names(
    out: Path, tmp_path: Path, way: str
) -> None:
    if way == "stdio":
        done = record(out, command=eras("nothing-shared"))
    else:
        with over_http("nothing-shared", tmp_path) as url:
            done = record(out, "--server", url)
    assert done.code == 3
    assert f"the server does not support {NEW}; it names 2031-01-01" in done.err


# -- every command -------------------------------------------------------------------------

COMMANDS = [
    ("audit",),
    ("lint",),
    ("fuzz", "--runs", "2"),
    ("property", "--examples", "3", "--property", "same-lists"),
    ("compliance", "run", "--rule", "TOOLS-001"),
    ("conformance", "server", "--scenario", "tools-list"),
    ("doctor", "--to", NEW),
    ("coverage",),
    ("generate",),
]


def commanded(server: str, words: tuple[str, ...], folder: Path) -> Done:
    more = {"generate": ("--output", str(folder / "suites"))}.get(words[0], ())
    if words == ("coverage",):
        suite = folder / "suite.yaml"
        suite.write_text("tests: [{name: t, assert: {tool: look, expect: {not_error: true}}}]\n")
        more = ("--suite", str(suite))
    return mcptest(*words, "--server", server, *more, cwd=folder)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_discovery_of_older_revisions_ends_no_command(
    tmp_path: Path, words: tuple[str, ...], way: str
) -> None:
    with contextlib.ExitStack() as stack:
        if way == "http":
            server = stack.enter_context(over_http("older", tmp_path))
        else:
            server = shlex.join(eras("older"))
        done = commanded(server, words, tmp_path)
    assert done.code in {0, 1}, done.said
    if words[0] not in {"lint", "coverage", "generate"}:
        assert f"{OLD}: {NEWEST}" in done.out, done.said


# -- a server that allows one process at a time ---------------------------------------------


@pytest.mark.parametrize(("kind", "revision", "reason"), SPOKEN)
def test_a_server_that_runs_once_at_a_time_is_met_by_its_answer(
    out: Path, tmp_path: Path, kind: str, revision: str, reason: str
) -> None:
    met_as(record(out, command=locked(kind, tmp_path)), out, revision, reason)


def test_a_server_that_runs_once_and_ignores_the_question_is_met_alone(
    out: Path, tmp_path: Path
) -> None:
    done = record(out, "--timeout", "8s", command=locked("ignores", tmp_path))
    met_as(done, out, OLD, IGNORED_ALONE)


SIDE_BY_SIDE = {"compliance", "doctor"}
"""They take several processes at a time, and say so where there can't be."""
ON_ONE_PROCESS = {("dual", "compliance")}
"""A server that answers `server/discover` is judged by this rule on the process that answered."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["legacy", "dual"])
def test_a_server_that_runs_once_at_a_time_is_served_or_told_why_not(
    tmp_path: Path, words: tuple[str, ...], kind: str
) -> None:
    done = commanded(shlex.join(locked(kind, tmp_path)), words, tmp_path)
    if words[0] in SIDE_BY_SIDE and (kind, words[0]) not in ON_ONE_PROCESS:
        assert done.code == 3, done.said
        assert "the server exits if another process of it is running" in done.err
        return
    assert done.code in {0, 1}, done.said
    assert "another one is running" not in done.said
    if words[0] not in {"lint", "coverage", "generate"}:
        assert (f"{OLD}: {REFUSED}" if kind == "legacy" else f"{NEW}: {LISTED}") in done.out


@pytest.mark.parametrize("rule", ["JSONRPC-002", "PROTO-010"])
def test_a_process_that_had_no_room_breaks_no_rule(tmp_path: Path, rule: str) -> None:
    server = shlex.join(locked("dual", tmp_path))
    done = mcptest("compliance", "run", "--server", server, "--rule", rule)
    assert done.code in {0, 3}, done.said


@pytest.mark.parametrize("kind", ["legacy", "dual"])
def test_a_server_that_runs_once_at_a_time_passes_a_run(tmp_path: Path, kind: str) -> None:
    run_of(suite_for(tmp_path, locked(kind, tmp_path)), "--jobs", "1")


# -- a run ---------------------------------------------------------------------------------


def suite_for(folder: Path, command: list[str], tests: int = 3) -> Path:
    calls = [
        {"name": f"t{number}", "assert": {"tool": "look", "expect": {"not_error": True}}}
        for number in range(tests)
    ]
    place = folder / "suite.yaml"
    server = {"command": command[0], "args": command[1:]}
    place.write_text(json.dumps({"server": server, "tests": calls}))
    return place


def run_of(suite: Path, *words: str) -> tuple[Done, list[tuple[str, str]]]:
    """A run in which all is well, and what was spoken in each test and why."""
    stored = suite.with_suffix(".report.json")
    done = mcptest("run", str(suite), "--verbose", "--json-file", str(stored), *words)
    assert done.code == 0, done.said
    results = json.loads(stored.read_bytes())["results"]
    return done, [(one["revision"], one["revision_reason"]) for one in results]


@pytest.mark.parametrize(("kind", "revision", "reason"), SPOKEN)
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_run_finds_out_once_and_every_test_says_so(
    tmp_path: Path, kind: str, revision: str, reason: str, jobs: str
) -> None:
    suite = suite_for(tmp_path, eras(kind))
    done, spoken = run_of(suite, "--jobs", jobs)
    assert spoken == [(revision, reason)] * 3
    assert f"{revision}: {reason}" in done.out


@pytest.mark.parametrize(("kind", "revision", "reason"), SLOW)
def test_a_slow_first_start_is_the_same_run(
    tmp_path: Path, kind: str, revision: str, reason: str
) -> None:
    suite = suite_for(tmp_path, eras(kind, "--after", str(tmp_path / "answered")), tests=1)
    assert run_of(suite)[1] == [(revision, reason)]


def test_a_revision_that_a_suite_names_is_why(tmp_path: Path) -> None:
    suite = suite_for(tmp_path, eras("dual"), tests=1)
    written = json.loads(suite.read_text())
    written["server"]["spec_version"] = OLD
    suite.write_text(json.dumps(written))
    assert run_of(suite)[1] == [(OLD, "requested with spec_version")]


# -- the doctor ----------------------------------------------------------------------------


def test_the_doctor_finds_the_same_in_a_slow_server_as_in_a_fast_one(tmp_path: Path) -> None:
    found = []
    for more in ((), ("--after", str(tmp_path / "answered"))):
        done = mcptest("doctor", "--to", NEW, "--json", "--", *eras("dual", *more))
        report = json.loads(done.out)
        items = {one["id"]: one["verdict"] for one in report["items"]}
        found.append((report["examined_in"], report["revision_reason"], items))
    assert found[0] == found[1]
    assert found[0][:2] == (NEW, LISTED)
