"""`mcptest fleet` as people run it: one run with everything in it, looked at in every form."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcptest.core.capture import Closed, Frame, Opened
from mcptest.core.results import RunReport, Status
from mcptest.report.codec import as_json, decode, json_schema
from mcptest.report.fleet import FleetReport, ServerOutcome
from mcptest.report.html.building import page_of
from mcptest.report.stored import code_of_all, parts_of_fleet
from mcptest.report.terminal import Style
from mcptest.wire.capture_forms import encode_records
from tests.e2e.driving import BOUND, Done, is_alive, mcptest, wait_until
from tests.fleet.configured import DEMO, GONE, script, stuck_once, write_config

SECRET = "hush-hush-4711"
TALKATIVE = f"""\
import json, sys
# Tells its secret, dies of a call, and is hostile in every word.
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {{"jsonrpc": "2.0", "id": asked.get("id")}}
    if method == "initialize":
        info = {{"name": "\\x1b[31m</script>::error::{SECRET}", "version": "1"}}
        answer["result"] = {{"protocolVersion": "2025-06-18", "serverInfo": info,
                            "capabilities": {{"tools": {{}}}}}}
    elif method == "tools/list":
        words = {{"readOnlyHint": True}}
        answer["result"] = {{"tools": [
            {{"name": "echo", "description": "{SECRET}", "inputSchema": {{"type": "object"}},
              "annotations": words}},
            {{"name": "dies", "inputSchema": {{"type": "object"}}, "annotations": words}}]}}
    elif method == "tools/call" and asked["params"].get("name") == "dies":
        sys.stderr.write("{SECRET} was the last word\\n")
        sys.exit(3)
    elif method == "tools/call":
        answer["result"] = {{"content": [{{"type": "text", "text": "{SECRET}"}}]}}
    elif method == "ping":
        answer["result"] = {{}}
    elif "id" in asked:
        answer["error"] = {{"code": -32601, "message": "no"}}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""


@dataclass(frozen=True)
class Run:
    done: Done
    folder: Path
    config: Path

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    @property
    def json(self) -> Any:
        return json.loads(self.text("f.json"))

    @property
    def report(self) -> FleetReport:
        found: FleetReport = decode((self.folder / "f.json").read_bytes(), FleetReport, "f.json")
        return found

    @property
    def rows(self) -> dict[str, Any]:
        return {row["name"]: row for row in self.json["fleet"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("fleet")
    talkative = script(folder, "talkative", TALKATIVE)
    servers = {
        "gone": GONE,
        "sound": {**DEMO, "env": {"API_KEY": "another-secret-1"}},
        "rude \x1b[31m": {**talkative, "env": {"API_KEY": "${FLEET_SECRET}"}},
        "asleep": {"command": "never", "disabled": True},
        "far": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    }
    config = write_config(folder, servers)
    forms = {"json-file": "f.json", "junit": "f.xml", "sarif": "f.sarif", "markdown": "f.md"}
    files = [word for form, name in forms.items() for word in (f"--{form}", str(folder / name))]
    done = mcptest(
        "fleet",
        str(config),
        *files,
        "--save-capture",
        str(folder / "kept"),
        env={**os.environ, "FLEET_SECRET": SECRET},
    )
    return Run(done, folder, config)


def test_every_server_has_its_row_in_the_order_of_the_file(run: Run) -> None:
    assert run.done.code == 1, run.done.said
    outcomes = [(row["name"], row["outcome"]) for row in run.json["fleet"]]
    assert outcomes == [
        ("gone", "unreachable"),
        ("sound", "passed"),
        ("rude \x1b[31m", "failed"),
        ("asleep", "disabled"),
        ("far", "unreachable"),
    ]
    assert run.json["summary"]["unreachable"] == 2
    assert run.json["exit_code"] == 1


def test_the_table_tells_what_matters_of_each(run: Run) -> None:
    heading, *lines = run.done.out.splitlines()
    assert heading.split() == [
        "server",
        "revision",
        "grade",
        "audit",
        "tools",
        "MUST",
        "time",
        "outcome",
    ]
    (sound,) = [line for line in lines if line.startswith("✓ sound")]
    assert sound.split()[2:7] == ["2026-07-28", "A+", "93%", "16", "0"]
    assert sum("[" in line and "]" in line for line in run.done.err.splitlines()) == 4


def test_the_documents_inside_are_those_of_the_other_commands(run: Run) -> None:
    row = run.rows["sound"]
    assert row["compliance"]["format"] == "mcptest.compliance/1"
    assert row["audit"]["format"] == "mcptest.audit/1"
    assert row["compliance"]["judgements"][0]["summary"]["broken_musts"] == row["broken_musts"] == 0


def test_what_was_stored_is_read_back_whole(run: Run) -> None:
    again = as_json(run.report)
    assert json.loads(again) == run.json
    assert run.report.servers[0].outcome is ServerOutcome.UNREACHABLE


def test_what_is_stored_has_the_form_that_its_schema_says(run: Run) -> None:
    schema = {**json_schema(FleetReport), "unevaluatedProperties": False}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(run.json)] == []
    assert not validator.is_valid({**run.json, "fleet": [{"name": "alone"}]})


def test_failures_name_the_command_that_repeats_them_alone(run: Run) -> None:
    assert "tool dies crashed" in run.done.out
    shown = f"mcptest audit --mcp-config {run.config} --server 'rude \\x1b[31m' --tool dies"
    assert shown in run.done.out
    gone = run.rows["gone"]["repeat"]
    assert gone == f"mcptest compliance run --mcp-config {run.config} --server gone"


def test_a_server_that_dies_does_not_hide_what_two_share(run: Run) -> None:
    (hazard,) = run.json["hazards"]
    assert hazard["id"] == "COMP-001"
    assert hazard["names"] == ["echo"]
    assert "mcptest explain COMP-001" in run.done.out
    assert "not compared with the others" in run.done.out


def test_no_secret_and_no_control_code_is_anywhere(run: Run) -> None:
    for path in run.folder.rglob("*"):
        if path.is_file() and path.suffix not in {".py"} and path != run.config:
            data = path.read_bytes()
            assert SECRET.encode() not in data, path
            assert b"another-secret-1" not in data, path
            assert b"\x1b" not in data, path
    assert SECRET not in run.done.said
    assert "\x1b" not in run.done.said


def test_captures_are_kept_for_each_server(run: Run) -> None:
    kept = {path.parent.parent.name for path in (run.folder / "kept").rglob("*.jsonl")}
    assert "sound" in kept
    assert any(name.startswith("rude") for name in kept)


def test_junit_has_a_case_for_each_server_that_could_not_be_reached(run: Run) -> None:
    cases = ET.fromstring(run.text("f.xml")).iter("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    reached = [case for case in failed if "judged and audited" in case.attrib["name"]]
    assert len(reached) == 2


def test_sarif_places_every_problem_in_the_configuration(run: Run) -> None:
    results = json.loads(run.text("f.sarif"))["runs"][0]["results"]
    rules = {one["ruleId"] for one in results}
    assert {"fleet/reachable", "COMP-001", "test/crash"} <= rules
    files = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in results
        if one["ruleId"].startswith(("fleet/", "COMP-"))
    }
    assert len(files) == 1
    assert files.pop().endswith("mcp.json")


def test_markdown_holds_nothing_that_markdown_would_act_on(run: Run) -> None:
    text = run.text("f.md")
    assert "</script>" not in text
    assert text.count("<code>sound</code>") == 1
    assert "Between the servers" in text


def test_as_stored_reports_no_row_gets_lost(run: Run) -> None:
    *judged, beside = parts_of_fleet(run.report, "f.json")
    assert [one.file for one in judged] == ["sound", "rude \x1b[31m"]
    assert isinstance(beside.report, RunReport)
    named = {one.language for one in beside.report.results if one.status is Status.FAIL}
    assert {"gone", "far"} <= named
    assert code_of_all([*judged, beside]) == 1


def test_the_page_holds_every_server_and_nothing_that_runs(run: Run) -> None:
    page = page_of(run.report, by_rules=False).decode()
    assert all(name in page for name in ("gone", "sound", "asleep", "far"))
    assert SECRET not in page
    assert "\x1b" not in page


def test_the_page_shows_an_excerpt_of_a_flood(run: Run, tmp_path: Path) -> None:
    log = Frame(sender="server", raw=b'{"jsonrpc":"2.0","method":"notifications/message"}')
    records = [Opened(server_label="loud", transport="stdio"), *[log] * 5_000, Closed()]
    flood = tmp_path / "flood.jsonl"
    flood.write_bytes(b"".join(encode_records(records)))
    page = page_of(run.report, [str(flood)], by_rules=False).decode()
    assert "3,802 records of a long session are left out" in page


def test_quiet_leaves_out_what_passed_and_verbose_shows_advice(run: Run) -> None:
    quiet = list(run.report.lines(Style(quiet=True)))
    assert not any("sound" in line for line in quiet[:5])
    assert len(list(run.report.lines(Style(verbose=True)))) > len(list(run.report.lines(Style())))


# -- other runs ----------------------------------------------------------------------------------


def test_nobody_reached_is_three_and_an_agent_gets_the_command(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"gone": GONE})
    done = mcptest("fleet", str(config), "--format", "agent")
    assert done.code == 3, done.said
    first, failure, *_ = done.out.splitlines()
    assert first.startswith("FAIL: 1 failed")
    assert failure.startswith(f"mcptest compliance run --mcp-config {config} --server gone  # ")
    assert done.err == ""


@pytest.mark.parametrize("servers", [{}, {"off": {"command": "x", "disabled": True}}])
def test_nothing_to_judge_is_four(tmp_path: Path, servers: dict[str, Any]) -> None:
    done = mcptest("fleet", str(write_config(tmp_path, servers)), "--json")
    assert done.code == 4, done.said
    assert json.loads(done.out)["exit_code"] == 4
    assert "has no server to judge" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jobs", "0"), "--jobs takes auto or a number"),
        (("--jobs", "x"), "--jobs takes auto or a number"),
        (("--min-grade", "Z"), "--min-grade takes A+ to F"),
        (("--fail-under", "101"), "takes a percentage from 0 to 100"),
        (("--server", "gon"), "did you mean gone?"),
        (("--spec-version", "1999"), "1999"),
        (("--server-timeout", "soon"), "--server-timeout"),
        (("--scheduler", "gopher://x", "--save-capture", "c"), "does not work with --scheduler"),
    ],
)
def test_options_that_cannot_be_used_are_two(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = mcptest("fleet", str(write_config(tmp_path, {"gone": GONE})), *words)
    assert done.code == 2, done.said
    assert said in done.err
    assert done.out == ""


def test_the_configuration_of_this_folder_needs_no_name(tmp_path: Path) -> None:
    done = mcptest("fleet", cwd=tmp_path)
    assert done.code == 2
    assert "this folder has no .mcp.json" in done.err
    write_config(tmp_path, {"gone": GONE}, ".mcp.json")
    assert mcptest("fleet", "--quiet", cwd=tmp_path).code == 3


def test_an_interrupt_reports_what_is_finished_and_leaves_nothing(tmp_path: Path) -> None:
    entry, mark = stuck_once(tmp_path)
    config = write_config(tmp_path, {"gone": GONE, "stuck": entry, "later": GONE})
    command = [sys.executable, "-m", "mcptest", "fleet", str(config), "--jobs", "1", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(mark.exists, "the server that is stuck")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"]
    assert [row["outcome"] for row in report["fleet"]] == [
        "unreachable",
        "interrupted",
        "interrupted",
    ]
    assert not is_alive(int(mark.read_text()))


def test_whoever_is_killed_takes_the_servers_along(tmp_path: Path) -> None:
    entry, mark = stuck_once(tmp_path)
    config = write_config(tmp_path, {"stuck": entry})
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", "fleet", str(config), "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(mark.exists, "the server that is stuck")
    process.kill()
    process.wait()
    wait_until(lambda: not is_alive(int(mark.read_text())), "the end of the server")
