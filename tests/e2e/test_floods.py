"""Servers that never stop talking: every command ends, in bounded memory, with small reports."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, Done

FLOODING = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "rogues" / "flooding.py"))
MOST_MEGABYTES = 150
LARGEST_REPORT = 8 * 1024 * 1024
# Not ru_maxrss: a child inherits the peak of whoever forked it.
MEASURED = """
import re, sys
from mcptest.__main__ import main
code = main()
status = open("/proc/self/status").read()
print(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1], file=sys.stderr)
sys.exit(code)
"""
TIMEOUT = ("--timeout", "2s")
REPORTS = ("--html", "r.html", "--json-file", "r.json")
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": ("audit", *TIMEOUT, *REPORTS, "--max-time", "10s"),
    "fuzz": ("fuzz", *TIMEOUT, "--html", "r.html", "--max-time", "10s"),
    "property": ("property", *TIMEOUT, "--html", "r.html", "--max-time", "10s", "--no-database"),
    "record": ("record", *TIMEOUT, "--out", "c.jsonl"),
    "compliance": ("compliance", "run", *TIMEOUT, *REPORTS),
    "doctor": ("doctor", *TIMEOUT, "--to", "draft", "--html", "r.html", "--max-time", "10s"),
}


def measured(folder: Path, *argv: str, **options: Any) -> Done:
    """Run the command to its end. It took no more memory than it may."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *argv],
        capture_output=True,
        timeout=2 * BOUND,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        **options,
    )
    said, _, peak = done.stderr.decode().rstrip().rpartition("\n")
    assert int(peak) / 1024 < MOST_MEGABYTES, said
    reports = [path for path in folder.glob("r.*") if path.is_file()]
    assert all(path.stat().st_size < LARGEST_REPORT for path in reports)
    return Done(done.returncode, done.stdout.decode(), said)


@contextlib.contextmanager
def peer(case: str, way: str) -> Iterator[tuple[str, str]]:
    """What to say for --server, and a suite's block for the same."""
    if way == "stdio":
        words = [*FLOODING, case]
        yield shlex.join(words), json.dumps({"command": words[0], "args": words[1:]})
        return
    with subprocess.Popen([*FLOODING, case, "http"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            yield url, json.dumps({"transport": "http", "url": url})
        finally:
            process.kill()


def run_suite(folder: Path, block: str, *options: str) -> Done:
    test = {
        "name": "calls",
        "server": json.loads(block),
        "assert": {"tool": "echo", "args": {"text": "hello"}, "expect": {"not_error": True}},
    }
    (folder / "suite.yaml").write_text(json.dumps(test))
    reports = (*REPORTS, "--junit", "r.xml", "--markdown", "r.md", "--sarif", "r.sarif")
    return measured(folder, "run", "suite.yaml", *reports, "--capture", "wire", *options)


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize(
    "case", ["logs-in-a-call", "pings-in-a-call", "largest-logs-in-a-call", "logs-at-first"]
)
def test_a_run_on_a_flood_fails_and_its_page_shows_an_excerpt(
    case: str, way: str, tmp_path: Path
) -> None:
    with peer(case, way) as (_, block):
        done = run_suite(tmp_path, block, *TIMEOUT)
    assert done.code == 1, done.said
    [result] = json.loads((tmp_path / "r.json").read_text())["results"]
    assert result["status"] == "FAIL"
    assert result["kind"] == "timeout"
    if case == "logs-in-a-call" and way == "stdio":
        assert "more records, which the capture has" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("case", ["many-logs-then-the-answer", "logs-all-the-time"])
def test_a_right_answer_behind_or_within_a_flood_is_found(
    case: str, way: str, tmp_path: Path
) -> None:
    with peer(case, way) as (_, block):
        done = run_suite(tmp_path, block)
    assert done.code == 0, done.said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_bears_a_flood_in_a_call(command: str, tmp_path: Path) -> None:
    with peer("logs-in-a-call", "stdio") as (server, _):
        done = measured(tmp_path, *COMMANDS[command], "--server", server)
    assert "internal error" not in done.said
    assert done.code in {0, 1}, done.said


@pytest.mark.parametrize("command", ["audit", "lint", "fuzz", "property", "init", "doctor"])
def test_a_start_is_not_waited_for_longer_than_a_request(command: str, tmp_path: Path) -> None:
    words = {"init": ("init", "here"), "doctor": ("doctor", "--to", "draft")}.get(
        command, (command,)
    )
    with peer("logs-at-first", "stdio") as (server, _):
        done = measured(tmp_path, *words, *TIMEOUT, "--server", server)
    assert done.code in {1, 3}, done.said
    assert "within 2 s" in done.said


def test_judging_an_intercepted_flood_takes_no_longer_than_the_session(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "tests:\n- {name: t, trajectory: [{type: presence, tools: [echo]}]}\n"
    )
    asked = (
        {"id": 1, "method": "initialize", "params": {}},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}},
    )
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in asked)
    words = ("intercept", "--trajectory", "t.yaml", *TIMEOUT, *REPORTS, "--capture", "c.jsonl")
    there, here = os.pipe()
    with os.fdopen(there, "rb") as stdin, os.fdopen(here, "wb", buffering=0) as agent:
        agent.write(lines)
        process = subprocess.Popen(
            [sys.executable, "-c", MEASURED, *words, "--", *FLOODING, "logs-in-a-call"],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        _, err = process.communicate(timeout=2 * BOUND)
    said, _, peak = err.decode().rstrip().rpartition("\n")
    assert int(peak) / 1024 < MOST_MEGABYTES
    assert process.returncode == 1, said
    results = {one["name"]: one for one in json.loads((tmp_path / "r.json").read_text())["results"]}
    assert results["t"]["status"] == "PASS"
    assert results["session"]["kind"] == "timeout"
    assert (tmp_path / "r.html").stat().st_size < LARGEST_REPORT
