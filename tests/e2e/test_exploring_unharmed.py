"""Hostile names, full disks and sudden ends: nothing outside, nothing half, nothing lost unsaid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.suite.load import load_suites
from mcptest.suite.model import ToolBlock
from tests.e2e.driving import BOUND, Done, is_alive, mcptest, wait_until

HERE = Path(__file__).parent
EXPLORED = (sys.executable, "-I", "-S", str(HERE / "explored.py"))
NAMES = [
    *("../../escape", "..", "/tmp/mcptest-no-such/x", "a\0b", "x" * 10_240, "\u202egnol"),
    *("echo", "Echo", "ECHO", "Straße", "STRASSE", "e\u0301", "\u00e9", "con", "nul.txt"),
    *("a/b", "a\\b", " ", "-rf", "--output", "a\nb", "::error::x", "\x1b[31mred", ".hidden"),
    *("$(touch pwned)", "tool.yaml", "${HOME}", "\U0001f600"),
]


# -- names -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    path = tmp_path_factory.mktemp("names") / "names.json"
    path.write_text(json.dumps(NAMES))
    return (sys.executable, "-I", "-S", str(HERE / "named.py"), str(path))


def nothing_outside(site: Path, folder: Path) -> None:
    """Only the folder was made, and only plain files of suites are in it."""
    assert [one.name for one in site.iterdir()] == [folder.name]
    for path in folder.iterdir():
        assert path.is_file() or path.name == ".snapshots"
        assert path.name.isprintable()
        assert len(path.name) < 120
    folded = [path.name.casefold() for path in folder.iterdir()]
    assert len(folded) == len(set(folded))


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--no-verify", "--quiet", "--output", "out"),
        ("generate", "--quiet", "--output", "out"),
        ("init", "out", "--no-snapshots"),
    ],
    ids=["audit", "generate", "init"],
)
def test_hostile_names_lead_nowhere_and_no_tool_is_lost(
    words: tuple[str, ...], named: tuple[str, ...], tmp_path: Path
) -> None:
    done = mcptest(*words, "--", *named, cwd=tmp_path)
    assert done.code == 0, done.said
    nothing_outside(tmp_path, tmp_path / "out")
    tests = load_suites([str(tmp_path / "out")]).suite.tests
    found = [test.block.tool for test in tests if isinstance(test.block, ToolBlock)]
    assert sorted(found) == sorted(NAMES)
    assert "\x1b" not in done.said
    assert "\u202e" not in done.said


def test_failures_of_tools_with_hostile_names_are_saved_in_their_folder(
    named: tuple[str, ...], tmp_path: Path
) -> None:
    options = ("--runs", "12", "--seed", "1", "--output", "out", "--json")
    done = mcptest("fuzz", *options, "--", *named, "internal", cwd=tmp_path)
    report = json.loads(done.out)
    assert done.code == 1
    nothing_outside(tmp_path, tmp_path / "out")
    saved = [path for path in (tmp_path / "out").iterdir() if path.suffix == ".yaml"]
    assert len(report["tools"]) == len(saved) == len(NAMES)


# -- a disk that is full ---------------------------------------------------------------------


def without_room(*words: str, cwd: Path) -> Done:
    """The command in a world where no file can hold a byte; pipes are as ever."""
    shell = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
    done = subprocess.run(
        [*shell, sys.executable, "-m", "mcptest", *words],
        capture_output=True,
        timeout=BOUND,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("words", "server"),
    [
        (("audit", "--no-verify"), "only=echo,internal"),
        (("fuzz", "--runs", "3", "--timeout", "5s"), "only=internal"),
    ],
    ids=["audit", "fuzz"],
)
def test_tests_that_find_no_room_cost_nobody_the_report(
    words: tuple[str, ...], server: str, tmp_path: Path
) -> None:
    done = without_room(*words, "--output", "out", "--", *EXPLORED, server, cwd=tmp_path)
    assert done.code == 1
    assert "internal" in done.out
    assert done.err.count("tests not written: can't write") == 1
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("words", [("generate", "--output", "out"), ("init", "out")])
def test_starter_tests_that_find_no_room_are_one_clear_message(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = without_room(*words, "--", *EXPLORED, "only=echo", cwd=tmp_path)
    assert done.code == 2
    assert "can't write" in done.err
    assert "Traceback" not in done.err
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("command", ["audit", "fuzz", "lint", "generate", "coverage"])
def test_a_capture_that_has_no_place_is_said(command: str, tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    words: tuple[str, ...] = (command, "--save-capture", "wire")
    if command == "generate":
        words += ("--output", "out")
    if command == "fuzz":
        words += ("--runs", "3")
    if command == "coverage":
        suite.write_text("name: a\nassert: {tool: echo, args: {}, expect: {not_error: true}}\n")
        words += ("--suite", str(suite))
    # With room for tests, but for no capture: a file is where its folder would be.
    (tmp_path / "wire").write_text("in the way")
    done = mcptest(*words, "--", *EXPLORED, "only=complain", cwd=tmp_path)
    assert "wire" in done.said
    assert "Traceback" not in done.said
    assert done.code != 0


def test_a_capture_that_breaks_off_is_said_in_the_report(tmp_path: Path) -> None:
    words = ("audit", "--no-verify", "--json", "--save-capture", "wire")
    done = without_room(*words, "--", *EXPLORED, "only=echo", cwd=tmp_path)
    report = json.loads(done.out)
    assert report["score"] == 100
    assert any("is not complete" in note for note in report["notes"])


# -- very many tools -------------------------------------------------------------------------

MANY = (*EXPLORED, "only=complain", "many=1000")


def within_bounds(*words: str, cwd: Path) -> Done:
    """The command with a gigabyte of memory at the most."""
    shell = ("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh")
    done = subprocess.run(
        [*shell, sys.executable, "-m", "mcptest", *words, "--", *MANY],
        capture_output=True,
        timeout=BOUND,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_thousand_tools_are_linted_and_fuzzed(tmp_path: Path) -> None:
    linted = within_bounds("lint", "--json", cwd=tmp_path)
    assert json.loads(linted.out)["tools"] == 1001
    fuzzed = within_bounds("fuzz", "--runs", "1", "--json", cwd=tmp_path)
    assert fuzzed.code == 0, fuzzed.err
    assert json.loads(fuzzed.out)["summary"]["total_passed"] == 1001


def test_a_thousand_tools_get_a_test_each_and_are_covered_by_them(tmp_path: Path) -> None:
    generated = within_bounds("generate", "--quiet", "--output", "suite", cwd=tmp_path)
    assert generated.out == "suite: 1001 created\n"
    covered = within_bounds("coverage", "--quiet", "--suite", "suite", cwd=tmp_path)
    assert covered.out.startswith("coverage 100%: 1001 of 1001 items")


# -- sudden ends -----------------------------------------------------------------------------


def started(
    words: tuple[str, ...], server: tuple[str, ...], call: str, folder: Path
) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A command in the middle of a call that hangs, and its server."""
    wire = folder / "wire"
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", *words, "--save-capture", str(wire), "--", *server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    seen = wire / "session-001.jsonl.partial"
    wait_until(lambda: seen.exists() and call in seen.read_text(), "the call")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    assert children
    return process, [int(pid) for pid in children.split()]


linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc here")


@linux
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_fuzz_run_reports_what_it_saw_and_leaves_nobody_behind(
    sign: signal.Signals, tmp_path: Path
) -> None:
    words = ("fuzz", "--runs", "20", "--seed", "1", "--json", "--json-file", "report.json")
    fuzzed = (sys.executable, "-I", "-S", str(HERE / "fuzzed.py"), "sound", "hangs")
    process, server = started(words, fuzzed, '"name":"hangs"', tmp_path)
    process.send_signal(sign)
    out, err = process.communicate(timeout=BOUND)
    report = json.loads(out)
    assert process.returncode == 130, err
    assert report["interrupted"] is True
    assert (report["tools"][0]["tool"], report["tools"][0]["runs"]) == ("sound", 20)
    assert json.loads((tmp_path / "report.json").read_text())["interrupted"] is True
    wait_until(lambda: not any(map(is_alive, server)), "the end of the server")


@linux
def test_a_killed_run_leaves_no_half_file(tmp_path: Path) -> None:
    """What it had seen is in the capture, which says by its name that it has no end."""
    words = ("audit", "--no-verify", "--json-file", "report.json", "--output", "out")
    call = '"name":"hang","arguments"'
    process, server = started(words, (*EXPLORED, "only=echo,hang"), call, tmp_path)
    process.kill()
    process.communicate(timeout=BOUND)
    for pid in server:  # in its call it is deaf to the end of its stdin
        os.kill(pid, signal.SIGKILL)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"session-001.jsonl.partial"}
    lines = (tmp_path / "wire" / "session-001.jsonl.partial").read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)
