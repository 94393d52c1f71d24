"""`--max-time` is kept, whatever a server takes for an answer; what was seen by then is told.

The server writes down each request. Each takes half a second, so their number says how long the
command went on, whatever else the machine is doing.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from mcptest.core.limits import Deadline
from mcptest.probe.properties.engine import run_properties
from mcptest.probe.properties.property_catalogue import PropertyOrder
from mcptest.transport.target import Target
from tests.e2e.driving import Done, mcptest

EXPLORED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("explored.py")))
TOOLS = "only=" + ",".join(f"slow_{number}" for number in range(40))
SLOW = 0.5
LIMIT = 3
MOST = LIMIT / SLOW + 3
"""Requests that a server can answer by then, and those that are under way at the end."""


def limited(log: Path, command: str, *options: str) -> Done:
    words = (f"slow={SLOW}", f"log={log}", TOOLS)
    limits = ("--max-time", f"{LIMIT}s", "--timeout", "20s")
    return mcptest(command, *limits, *options, "--", *EXPLORED, *words)


def requests(log: Path) -> int:
    return len(log.read_text().splitlines())


@pytest.mark.parametrize("command", ["audit", "fuzz"])
def test_a_command_ends_in_time_and_says_what_it_did_not_reach(
    command: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    options = ("--jobs", "1") if command == "fuzz" else ()
    done = limited(log, command, "--json", *options)
    assert done.code == 1, done.said
    report = json.loads(done.out)
    assert report["unreached"] > 20
    assert report["interrupted"] is False
    words = "items" if command == "audit" else "tools"
    said = f"stopped after {LIMIT}s of --max-time: {report['unreached']} of 40 {words} not reached"
    assert said in report["notes"]
    # A fuzzer sends many inputs of one tool at once, and waits for none of them afterwards.
    assert requests(log) <= MOST if command == "audit" else report["unreached"] >= 39


def test_judging_ends_in_time_and_has_no_grade(tmp_path: Path) -> None:
    words = ("--max-time", f"{LIMIT}s", "--timeout", "20s", "--min-grade", "F", "--json")
    server = (*EXPLORED, f"slow={SLOW}", f"log={tmp_path / 'log'}", TOOLS)
    done = mcptest("compliance", "run", *words, "--", *server)
    assert done.code == 1, done.said
    report = json.loads(done.out)
    assert f"stopped after {LIMIT}s of --max-time" in report["notes"]
    assert report["gates"] == [], "half a run is not held against anything"
    (judged,) = report["judgements"]
    assert not judged.get("grade")
    assert "interrupted" in {rule.get("reason") for rule in judged["results"]}


def test_a_doctor_ends_in_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = limited(log, "doctor", "--to", "2025-11-25", "--from", "2024-11-05", "--json")
    assert done.code == 1, done.said
    report = json.loads(done.out)
    assert any(
        "of --max-time: " in note and "items not reached" in note for note in report["notes"]
    )
    assert requests(log) <= 2 * MOST  # it is met twice


def test_properties_end_in_time_whatever_is_being_made_small(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = limited(log, "property", "--jobs", "1", "--no-database", "--json")
    assert done.code == 1, done.said
    report = json.loads(done.out)
    early = [one["ended_early"] for one in report["properties"] if one["ended_early"]]
    assert any(f"stopped after {LIMIT}s of --max-time" in why for why in early)
    assert report["interrupted"] is False
    assert requests(log) <= 2 * MOST  # several may be under way at once


class ByRequests(Deadline, frozen=True):
    """A limit that is up after so many requests, however long they take."""

    log: str = ""
    most: int = 0

    @property
    def expired(self) -> bool:
        file = Path(self.log)
        return file.exists() and requests(file) >= self.most


@pytest.mark.parametrize("most", [30, 60])
def test_what_was_confirmed_is_told_though_there_was_no_time_to_make_it_small(
    most: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = (*EXPLORED, "only=shapeless", f"log={log}")
    limit = ByRequests(math.inf, 1.0, log=str(log), most=most)
    order = PropertyOrder(
        target=Target(way="stdio", label="s", command=command),
        properties=("arguments",),
        seed=1,
        limit=limit,
        max_time=7.0,
    )
    report = run_properties(order)
    assert requests(log) <= most + 10
    (tried,) = report.properties
    assert tried.ended_early == "stopped after 7s of --max-time"
    assert tried.counterexamples
    assert report.failed
    shown = [line.text for line in tried.counterexamples[0].lines]
    assert any("not an object" in text for text in shown)


def test_init_writes_tests_for_what_it_reached_in_time(tmp_path: Path) -> None:
    log, evals = tmp_path / "log", tmp_path / "evals"
    done = limited(log, "init", str(evals))
    assert done.code == 1, done.said
    assert f"stopped after {LIMIT}s of --max-time: " in done.err
    assert "of 40 items not reached" in done.err
    assert "not all golden files were written" in done.err
    assert 0 < len(list(evals.glob("slow_*.yaml"))) < 20
    assert requests(log) <= 2 * MOST  # each server that keeps answers is met once more


@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("fuzz",),
        ("property", "--no-database"),
        ("doctor", "--to", "draft"),
        ("init", "evals"),
    ],
)
def test_a_server_that_is_not_met_in_time_is_not_reached(command: tuple[str, ...]) -> None:
    deaf = (sys.executable, "-c", "import sys; sys.stdin.read()")
    done = mcptest(*command, "--max-time", "1s", "--startup-timeout", "60s", "--", *deaf)
    assert done.code == 3, done.said
    assert "stopped after 1s of --max-time: the server was not ready by then" in done.said


def test_a_time_that_is_long_enough_changes_nothing(tmp_path: Path) -> None:
    done = mcptest("audit", "--max-time", "5m", "--json", "--", *EXPLORED, "only=echo")
    assert done.code == 0
    assert json.loads(done.out)["unreached"] == 0
