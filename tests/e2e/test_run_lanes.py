"""`mcptest run --config`: tests and lanes in one report with one exit code."""

from __future__ import annotations

import json
import os
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import Done, awkward, mcptest

LOOK = {"name": "it looks", "assert": {"tool": "look", "expect": {"contains": ["seen"]}}}
MISS = {"name": "it misses", "assert": {"tool": "look", "expect": {"contains": ["nothing"]}}}


def server(peculiarity: str = "ordinary") -> dict[str, Any]:
    return {"command": sys.executable, "args": list(awkward(peculiarity)[1:])}


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path / "tmp"
        self.temporary.mkdir()

    def suite(self, **top: Any) -> str:
        (self.path / "s.yml").write_text(json.dumps({"server": server(), **top}))
        return "s.yml"

    def run(self, *argv: str, command: str = "run") -> Done:
        env = {**os.environ, "TMPDIR": str(self.temporary), "GITHUB_ACTIONS": ""}
        return mcptest(command, *argv, cwd=self.path, env=env)

    def results(self, *argv: str) -> tuple[int, dict[str, dict[str, Any]]]:
        done = self.run(*argv, "--json")
        return done.code, {one["name"]: one for one in json.loads(done.out)}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_tests_and_lanes_have_one_report_and_one_exit_code(folder: Folder) -> None:
    block = {"spec_version": "v2025-11-25", "tests": [{"name": "PROTO-002"}]}
    suite = folder.suite(tests=[LOOK], compliance=block, invariants={"rules": ["MSG-002"]})
    done = folder.run(
        "--config", suite, "--junit", "r.xml", "--markdown", "r.md", "--json-file", "r.json"
    )
    assert done.code == 0, done.said
    names = ["it looks", "invariants MSG-002", "compliance PROTO-002"]
    assert [case.get("name") for case in ET.parse(folder.path / "r.xml").iter("testcase")] == names
    saved = json.loads((folder.path / "r.json").read_text())
    assert [one["name"] for one in saved["results"]] == names
    assert "3 tests, 3 passed" in done.out
    assert list(folder.temporary.iterdir()) == [], "the sessions were kept for the lane alone"


def test_a_suite_with_the_block_is_no_error_for_a_plain_run(folder: Folder) -> None:
    code, results = folder.results(folder.suite(compliance=[{"name": "PROTO-002"}]))
    assert code == 0
    assert results["compliance PROTO-002"]["status"] == "PASS"


def test_a_lane_that_fails_fails_the_run(folder: Folder) -> None:
    gate = {"spec_version": "v2024-11-05", "spec_version_check": {"against": "v2026-07-28"}}
    code, results = folder.results(folder.suite(tests=[LOOK], compliance={**gate, "tests": []}))
    assert code == 1
    assert results["it looks"]["status"] == "PASS"
    failed = results["compliance spec_version_check"]
    assert failed["status"] == "FAIL"
    assert "v2024-11-05 -> v2026-07-28" in failed["detail"]


def test_a_server_that_does_not_start_is_a_failed_lane_and_not_exit_3(folder: Folder) -> None:
    suite = folder.suite(server=server("exits"), compliance=[{"name": "PROTO-002"}])
    code, results = folder.results(suite)
    assert code == 1
    assert "cannot find the database" in results["compliance"]["detail"]


def test_the_sessions_of_the_tests_are_judged(folder: Folder) -> None:
    suite = folder.suite(server=server("banner"), tests=[LOOK], invariants=None)
    code, results = folder.results(suite)
    assert code == 1
    assert results["it looks"]["status"] == "PASS"
    assert results["invariants STDIO-001"]["status"] == "FAIL"
    assert "in 1 of 1 sessions" in results["invariants STDIO-001"]["detail"]
    assert results["invariants INV-001"]["status"] == "PASS"


def test_captures_that_were_asked_for_stay_and_older_ones_are_not_judged(folder: Folder) -> None:
    good = folder.suite(tests=[LOOK], invariants={"rules": ["STDIO-001"]})
    assert folder.run(good, "--save-capture", "caps").code == 0
    bad = folder.suite(server=server("banner"), tests=[MISS, LOOK], invariants=None)
    done = folder.run(bad, "--save-capture", "caps", "--json-file", "r.json")
    assert done.code == 1
    saved = {
        one["name"]: one for one in json.loads((folder.path / "r.json").read_text())["results"]
    }
    failed = saved["invariants STDIO-001"]
    assert "in 2 of 2 sessions" in failed["detail"]
    assert (folder.path / failed["proof"]["capture"]).is_file()


def test_a_capture_that_is_gone_is_not_named(folder: Folder) -> None:
    suite = folder.suite(tests=[MISS], invariants=None)
    folder.run(suite, "--json-file", "r.json")
    (failed, *_) = json.loads((folder.path / "r.json").read_text())["results"]
    assert failed["status"] == "FAIL"
    assert "capture" not in failed["proof"]


@pytest.mark.parametrize("narrow", [("-k", "looks"), ("--tag", "x"), ("--shard", "2/2")])
def test_lanes_are_left_out_when_only_some_tests_are_asked_for(
    folder: Folder, narrow: tuple[str, ...]
) -> None:
    suite = folder.suite(tests=[LOOK, MISS], compliance=[{"name": "PROTO-002"}])
    done = folder.run(suite, *narrow)
    assert "the lanes of the suite are not run" in done.err
    assert "compliance" not in done.out


def test_the_list_names_the_lanes(folder: Folder) -> None:
    suite = folder.suite(tests=[LOOK], compliance=[{"name": "PROTO-002"}], invariants=None)
    done = folder.run(suite, "--list")
    assert done.code == 0
    assert [line.partition(": ")[2] for line in done.out.splitlines()] == [
        "it looks",
        "the compliance lane",
        "the invariants lane",
    ]


def test_a_name_that_does_not_exist_is_told_before_anything_runs(folder: Folder) -> None:
    done = folder.run(folder.suite(tests=[LOOK], compliance=[{"name": "PROTO-999"}]))
    assert done.code == 2
    assert "unknown rule PROTO-999" in done.err
    assert done.out == ""


def test_ci_runs_the_lanes_and_a_matrix_says_that_it_does_not(folder: Folder) -> None:
    suite = folder.suite(tests=[LOOK], compliance=[{"name": "PROTO-002"}])
    done = folder.run(suite, command="ci")
    assert done.code == 0, done.said
    assert "compliance PROTO-002" in done.out
    done = folder.run(suite, "--languages", "a:demo", command="matrix")
    assert "the lanes of the suite are not run" in done.err


def test_the_server_of_the_command_line_is_the_one_that_is_judged(folder: Folder) -> None:
    suite = folder.suite(server=server("exits"), compliance=[{"name": "PROTO-002"}])
    done = folder.run(suite, "--server", shlex.join(awkward("ordinary")))
    assert done.code == 0, done.said
