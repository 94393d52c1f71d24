"""`mcptest audit` on a server with one tool for each thing that can happen, and on real ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from mcptest.suite.load import load_suites
from tests.e2e.driving import (
    BOUND,
    NPM,
    PEERS,
    PYTHON_SDK,
    START,
    Done,
    free_port,
    is_alive,
    listening,
    mcptest,
    wait_until,
)
from tests.peers.warm_peers import warm_peer

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))


def audit(*options: str, words: tuple[str, ...] = (), **more: Any) -> Done:
    """An audit of the explored server that was told these words."""
    return mcptest("audit", "--timeout", "2s", *START, *options, "--", *EXPLORED, *words, **more)


def report_of(*options: str, words: tuple[str, ...] = ()) -> dict[str, Any]:
    done = audit("--json", *options, words=words)
    report: dict[str, Any] = json.loads(done.out)
    return report


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {one["tool"]: one["status"] for one in report["results"]}


def result_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in report["results"] if one["tool"] == name)
    return found


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return report_of("--timeout", "500ms", words=("prompts", "resources"))


def test_each_tool_is_classified_and_a_crash_costs_only_its_own_verdict(
    whole: dict[str, Any],
) -> None:
    assert statuses(whole) == {
        "echo": "healthy",
        "complain": "healthy",
        "internal": "crash",
        "refuse": "refused",
        "leave": "crash",
        "leave_later": "crash",
        "hang": "timeout",
        "garble": "protocol",
        "shapeless": "protocol",
        "structured": "healthy",
        "misshapen": "healthy",
        "unstructured": "healthy",
        "scribble": "healthy",
        "append": "skipped",
        "put": "skipped",
        "clock": "healthy",
        "silent": "skipped",
        "wipe": "skipped",
    }
    assert whole["restarts"] >= 4


def test_what_is_broken_is_proven(whole: dict[str, Any]) -> None:
    internal = result_of(whole, "internal")
    assert '"name":"internal"' in internal["sent"]
    assert "-32603" in internal["received"]
    assert "--tool internal" in internal["repeat"]
    assert result_of(whole, "leave")["stderr"] == ["Traceback: out of memory"]
    assert "it answered, but then" in result_of(whole, "leave_later")["detail"]


def test_prompts_and_resources_are_audited_too(whole: dict[str, Any]) -> None:
    assert {one["prompt"]: one["status"] for one in whole["prompts"]} == {
        "greet": "healthy",
        "broken": "crash",
    }
    assert {one["uri"]: one["status"] for one in whole["resources"]} == {
        "note://all": "healthy",
        "note://gone": "crash",
    }


def test_structured_content_is_held_against_the_output_schema(whole: dict[str, Any]) -> None:
    assert "findings" not in result_of(whole, "structured")
    assert "does not match its outputSchema" in result_of(whole, "misshapen")["findings"][0]
    assert "no structuredContent" in result_of(whole, "unstructured")["findings"][0]


def test_a_tool_that_says_it_only_reads_and_writes_is_found_out(whole: dict[str, Any]) -> None:
    (claim,) = result_of(whole, "scribble")["claims"]
    assert claim["holds"] is False
    assert "resource note://all" in claim["detail"]
    (honest,) = result_of(whole, "echo")["claims"]
    assert honest["holds"] is True


def test_an_answer_that_changes_by_itself_is_no_lie(whole: dict[str, Any]) -> None:
    assert "findings" not in result_of(whole, "clock")


def test_what_changes_by_itself_is_held_against_nobody() -> None:
    report = report_of(words=("only=echo,scribble", "resources", "ticking"))
    assert result_of(report, "echo")["claims"][0]["holds"] is True
    (claim,) = result_of(report, "scribble")["claims"]
    assert claim["detail"] == "two calls changed resource note://all"


def test_a_change_that_only_another_tool_shows_is_held_against_the_liar() -> None:
    report = report_of(words=("only=echo,scribble,tally",))
    (claim,) = result_of(report, "scribble")["claims"]
    assert claim["holds"] is False
    assert claim["detail"] == "two calls changed the response of tally"
    (honest,) = result_of(report, "echo")["claims"]
    assert honest["holds"] is True
    assert honest["detail"] == (
        "two calls changed nothing visible: the lists, the responses of 2 tools"
    )


def test_a_liar_is_found_out_whatever_other_tools_do_when_they_are_asked() -> None:
    report = report_of(words=("only=scribble,echo,count_calls,clock,tally",))
    lies = {one["tool"] for one in report["results"] if "findings" in one}
    assert lies == {"scribble"}


def test_an_answer_that_moves_on_now_and_then_is_held_against_nobody() -> None:
    report = report_of(words=("only=echo,structured,coarse_clock,clock,tally",))
    assert [one["tool"] for one in report["results"] if "findings" in one] == []


def test_where_nothing_is_visible_nothing_is_claimed() -> None:
    report = report_of(words=("only=echo",))
    (claim,) = result_of(report, "echo")["claims"]
    assert (claim["holds"], claim["detail"]) == (None, "the server has no visible state")


def test_answers_errors_and_crashes_are_told_apart() -> None:
    report = report_of(words=("only=echo,complain,internal,refuse",))
    summary = {name: count for name, count in report["summary"].items() if count}
    assert summary == {
        "healthy": 2,
        "answers": 1,
        "answers_with_errors": 1,
        "crash": 1,
        "refused": 1,
    }
    assert report["score"] == report["tool_score"] == 25
    assert report["answered"] == 50  # the score of mcp-assert
    worked = {one["tool"]: one["worked"] for one in report["results"]}
    assert worked == {"echo": True, "complain": False, "internal": False, "refuse": False}
    gated = audit("--fail-under", "50", words=("only=echo,complain,refuse",))
    assert gated.code == 1
    assert "score 33% (1 of 3 passed), below the required 50%" in gated.out


def test_a_server_that_answers_with_errors_only_is_not_in_health() -> None:
    done = audit(words=("only=complain",))
    assert done.code == 0  # it is no crash, and no gate was set
    assert "score 0% (0 of 1 passed): 1 returned an error" in done.out
    assert "! complain  error" in done.out
    assert "--env" in done.out


def test_idempotence_is_verified_where_writes_are_allowed() -> None:
    words = ("only=append,put", "resources")
    report = report_of("--allow-writes", words=words)
    assert statuses(report) == {"append": "healthy", "put": "healthy"}
    assert result_of(report, "append")["claims"][0]["holds"] is False
    assert result_of(report, "put")["claims"][0]["holds"] is True


def test_nothing_visible_is_never_taken_for_a_proof() -> None:
    report = report_of(words=("only=echo",))
    assert result_of(report, "echo")["claims"][0]["holds"] is None


def test_files_of_the_fixture_are_part_of_what_is_visible(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    words = ("only=scribble", "file={{fixture}}/notes.txt")
    report = report_of("--fixture", str(tmp_path), words=words)
    claim = result_of(report, "scribble")["claims"][0]
    assert claim["holds"] is False
    assert "file notes.txt" in claim["detail"]
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


def test_what_may_write_is_skipped_and_listed_unless_it_is_asked_for() -> None:
    words = ("only=echo,wipe,silent",)
    assert statuses(report_of(words=words)) == {
        "echo": "healthy",
        "wipe": "skipped",
        "silent": "skipped",
    }
    allowed = report_of("--allow-writes", words=words)
    assert set(statuses(allowed).values()) == {"healthy"}


@pytest.mark.parametrize(
    ("options", "only", "code"),
    [
        ((), "echo,complain", 0),
        ((), "echo,internal", 1),
        ((), "echo,refuse", 0),
        ((), "echo,misshapen", 1),
        (("--fail-under", "50"), "echo,internal", 0),
        (("--fail-under", "51"), "echo,internal", 1),
        (("--fail-under", "100"), "echo,refuse", 1),
        ((), "wipe", 4),
        (("--tool", "ehco"), "echo", 2),
        (("--fail-under", "101"), "echo", 2),
    ],
)
def test_the_exit_code_follows_from_what_was_found(
    options: tuple[str, ...], only: str, code: int
) -> None:
    assert audit(*options, words=(f"only={only}",)).code == code


def test_a_server_that_can_not_be_reached_is_three() -> None:
    assert mcptest("audit", "--server", "/nowhere/at-all").code == 3


def test_the_table_names_the_class_the_reason_and_what_to_do() -> None:
    done = audit(words=("only=echo,complain,internal,wipe",))
    assert "✓ echo" in done.out
    assert "isError: no such thing" in done.out
    assert "crashed" in done.out
    assert "skipped" in done.out
    assert "score 33% (1 of 3 passed): 1 returned an error, 1 crashed, 1 skipped" in done.out
    assert "isError: true" in done.out.partition("Next steps:")[2]


def test_entries_of_a_list_that_are_none_are_broken_and_cost_nobody_else() -> None:
    done = audit("--json", words=("only=echo", "strange"))
    assert done.code == 1
    found = [one["status"] for one in json.loads(done.out)["results"]]
    assert found == ["healthy", "protocol", "protocol"]


def test_a_list_that_can_not_be_read_is_never_green() -> None:
    done = audit("--json", words=("only=no-such-tool",))
    assert done.code == 1
    assert "tools/list" in json.loads(done.out)["problems"]


def test_quiet_leaves_out_what_is_in_order() -> None:
    done = audit("--quiet", words=("only=echo,internal",))
    assert "internal" in done.out
    assert "✓ echo" not in done.out
    quiet = audit("--quiet", words=("only=echo",))
    assert quiet.out == "score 100% (1 of 1 passed)\n"


def test_in_docker_everything_is_called(tmp_path: Path) -> None:
    """A stand-in for docker: it drops its own words and becomes the command."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\nwhile [ "$1" != my/image ]; do shift; done; shift; exec "$@"\n')
    docker.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = audit("--json", "--docker", "my/image", words=("only=echo,wipe",), env=env)
    assert statuses(json.loads(done.out)) == {"echo": "healthy", "wipe": "healthy"}
    assert mcptest("audit", "--docker", "x", "--server", "http://127.0.0.1:1/mcp").code == 2


def test_thousands_of_tools_are_audited() -> None:
    report = report_of("--no-verify", words=("only=echo", "many=2000"))
    assert (report["tool_count"], report["score"]) == (2001, 100)


def test_every_page_of_tools_is_audited() -> None:
    assert report_of(words=("paged", "only=echo,complain,clock"))["tool_count"] == 3


def test_reports_and_captures_are_written_together(tmp_path: Path) -> None:
    names = {"--json-file": "a.json", "--junit": "a.xml", "--markdown": "a.md"}
    options = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    done = audit(
        *options, "--save-capture", str(tmp_path / "wire"), words=("only=echo,internal,wipe",)
    )
    assert done.code == 1
    assert json.loads((tmp_path / "a.json").read_text())["score"] == 50
    cases = ET.parse(tmp_path / "a.xml").getroot().findall(".//testcase")
    assert [len(case.findall("failure")) for case in cases] == [0, 1, 0]
    assert "internal" in (tmp_path / "a.md").read_text()
    assert "tools/call" in (tmp_path / "wire" / "session-001.jsonl").read_text()


def test_starter_tests_load_and_expect_what_was_seen(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    words = ("only=echo,complain,wipe", "prompts", "resources")
    audit("--output", str(folder), words=words)
    suite = load_suites([str(folder)]).suite
    skipped = {test.name for test in suite.tests if test.skip}
    assert skipped == {"wipe answers"}
    assert len(suite.tests) == 7
    done = mcptest("run", str(folder), "--json")
    verdicts = {one["name"]: one["status"] for one in json.loads(done.out)}
    assert verdicts["echo answers"] == "PASS"
    assert verdicts["complain answers"] == "PASS"
    assert verdicts["prompt broken is given"] == "FAIL"


def test_a_stopped_audit_reports_what_it_saw_and_leaves_nobody_behind(tmp_path: Path) -> None:
    pids, wire = tmp_path / "pids", tmp_path / "wire"
    options = (
        "--json",
        "--timeout",
        "60s",
        "--env",
        f"ROGUE_PIDS={pids}",
        "--save-capture",
        str(wire),
    )
    command = (sys.executable, "-m", "mcptest", "audit", *options, "--", *EXPLORED)
    process = subprocess.Popen(
        (*command, "only=echo,hang"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    seen = wire / "session-001.jsonl.partial"
    wait_until(
        lambda: seen.exists() and '"name":"hang","arguments"' in seen.read_text(), "the call"
    )
    server = pids.read_text().split()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    report = json.loads(out)
    assert report["interrupted"] is True
    assert statuses(report) == {"echo": "healthy"}
    wait_until(lambda: not any(is_alive(int(pid)) for pid in server), "the end of the server")


def test_secrets_are_in_nothing_that_is_written(tmp_path: Path) -> None:
    options = ("--env", "API_TOKEN=hush-hush-hush", "--output", str(tmp_path / "evals"))
    done = audit("--json", *options, words=("only=echo,internal",))
    written = "".join(path.read_text() for path in (tmp_path / "evals").iterdir())
    assert "hush-hush" not in done.said + written
    assert "${API_TOKEN}" in written


@pytest.mark.parametrize("way", ["http", "sse"])
def test_the_demo_is_audited_over_every_transport(way: str, tmp_path: Path) -> None:
    port = free_port()
    command = (sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http")
    with listening((*command, "--port", str(port)), "http://"):
        path = "sse" if way == "sse" else "mcp"
        done = mcptest("audit", "--server", f"http://127.0.0.1:{port}/{path}", "--json")
    report = json.loads(done.out)
    assert done.code == 0, done.said
    assert report["transport"] == way
    assert report["answered"] == 100
    erring = [one["tool"] for one in report["results"] if one["is_error"]]
    assert erring == ["fail", "read_file"]
    assert report["score"] == 93


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2026-07-28"])
def test_the_demo_is_audited_in_both_eras(revision: str) -> None:
    done = mcptest("audit", "--server", "demo", "--json", "--spec-version", revision, "--no-verify")
    report = json.loads(done.out)
    assert report["spec_version"] == revision
    # before 2025-03-26 no tool can say that it only reads
    assert done.code == 0
    assert (report["tool_score"] is None) is (revision == "2024-11-05")


REAL = {
    "python-sdk": PYTHON_SDK,
    "fastmcp": (sys.executable, str(PEERS / "fastmcp_server.py")),
    "memory": ("node", str(NPM / "server-memory" / "dist" / "index.js")),
    "time": (str(Path(sys.executable).with_name("mcp-server-time")),),
}


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(REAL))
def test_real_servers_are_in_health(name: str, tmp_path: Path) -> None:
    command = REAL[name]
    if name == "memory" and not NPM.is_dir():
        pytest.skip("the npm servers are not installed")
    if name == "time" and not Path(command[0]).exists():
        pytest.skip("mcp-server-time is not installed")
    env = ("--env", f"MEMORY_FILE_PATH={tmp_path / 'memory.json'}")
    command = command if name == "memory" else warm_peer(*command)
    done = mcptest("audit", "--json", *env, "--allow-writes", "--", *command)
    report = json.loads(done.out)
    assert report["tool_count"] > 0
    assert report["tool_score"] is not None
    assert [one["tool"] for one in report["results"] if one["status"] == "crash"] == []
