"""Servers that never stop talking: every command ends, in bounded memory, with small reports."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, START, Done

FLOODING = (sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "rogues" / "flooding.py"))
MOST_MEGABYTES = 150
LARGEST_REPORT = 20 * 1024 * 1024
"""A page has room for 16 MB of messages."""
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
PATIENCE = ("--timeout", "3m")
"""For an answer that does come: how fast the flood before it is read is a matter of the machine."""
REPORTS = ("--html", "r.html", "--json-file", "r.json")
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": ("audit", *TIMEOUT, *REPORTS, "--max-time", "5s"),
    "fuzz": ("fuzz", *TIMEOUT, "--html", "r.html", "--max-time", "5s"),
    "property": ("property", *TIMEOUT, "--html", "r.html", "--max-time", "5s", "--no-database"),
    "record": ("record", *TIMEOUT, "--out", "c.jsonl"),
    "init": ("init", "here", *TIMEOUT, "--max-time", "10s"),
    "conformance": (
        *("conformance", "server", *TIMEOUT, *REPORTS, "-o", "out"),
        *("--scenario", "tools-call-simple-text", "--fixture", "test_simple_text=echo"),
    ),
    "compliance": ("compliance", "run", "--timeout", "1s", *REPORTS),
    "doctor": ("doctor", *TIMEOUT, "--to", "draft", "--html", "r.html", "--max-time", "5s"),
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
    assert "internal error" not in said
    return Done(done.returncode, done.stdout.decode(), said)


@contextlib.contextmanager
def peer(case: str, way: str, *era: str) -> Iterator[tuple[str, str]]:
    """What to say for --server, and a suite's block for the same."""
    if way == "stdio":
        words = [*FLOODING, case, *era]
        yield shlex.join(words), json.dumps({"command": words[0], "args": words[1:]})
        return
    with subprocess.Popen([*FLOODING, case, way, *era], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            yield url, json.dumps({"transport": way, "url": url})
        finally:
            process.kill()


def write_suite(folder: Path, block: str = "") -> None:
    test = {
        "name": "calls",
        "assert": {"tool": "echo", "args": {"text": "hello"}, "expect": {"not_error": True}},
    }
    server = {"server": json.loads(block)} if block else {}
    (folder / "suite.yaml").write_text(json.dumps(test | server))


def run_suite(folder: Path, block: str, *options: str, command: str = "run") -> Done:
    write_suite(folder, block)
    reports = (*REPORTS, "--junit", "r.xml", "--markdown", "r.md", "--sarif", "r.sarif")
    return measured(folder, command, "suite.yaml", *reports, "--save-capture", "wire", *options)


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
        assert "more records in the capture" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("case", ["many-logs-then-the-answer", "logs-all-the-time"])
def test_a_right_answer_behind_or_within_a_flood_is_found(
    case: str, way: str, tmp_path: Path
) -> None:
    with peer(case, way) as (_, block):
        done = run_suite(tmp_path, block, *PATIENCE)
    assert done.code == 0, done.said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_bears_a_flood_in_a_call(command: str, tmp_path: Path) -> None:
    with peer("logs-in-a-call", "stdio") as (server, _):
        done = measured(tmp_path, *COMMANDS[command], *START, "--server", server)
    assert done.code in {0, 1}, done.said


@pytest.mark.parametrize("command", ["audit", "fuzz", "record"])
@pytest.mark.parametrize(
    "case",
    [
        "drips-in-a-call",
        "changes-all-the-time",
        "samplings-in-a-call",
        "progress-in-a-call",
        "large-logs-in-a-call",
    ],
)
def test_exploring_bears_every_flood(case: str, command: str, tmp_path: Path) -> None:
    words = [word.replace("5s", "3s") for word in COMMANDS[command]]
    with peer(case, "stdio") as (server, _):
        done = measured(tmp_path, *words, "--timeout", "1s", *START, "--server", server)
    assert done.code in {0, 1}, done.said


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_side_by_side_large_messages_are_taken_in_one_at_a_time(way: str, tmp_path: Path) -> None:
    words = ("compliance", "run", "--timeout", "1s", *REPORTS)
    with peer("largest-logs-in-a-call", way) as (server, _):
        done = measured(tmp_path, *words, "--server", server)
    assert done.code == 1, done.said


@pytest.mark.parametrize(
    ("way", "era"), [("sse", ()), ("stdio", ("stateless",)), ("http", ("stateless",))]
)
def test_a_flood_in_another_transport_or_era_ends_as_well(
    way: str, era: tuple[str, ...], tmp_path: Path
) -> None:
    with peer("logs-in-a-call", way, *era) as (_, block):
        done = run_suite(tmp_path, block, "--timeout", "1s")
    assert done.code == 1, done.said
    [result] = json.loads((tmp_path / "r.json").read_text())["results"]
    assert result["kind"] == "timeout"


@pytest.mark.parametrize(
    ("way", "era"), [("sse", ()), ("stdio", ("stateless",)), ("http", ("stateless",))]
)
def test_an_answer_behind_a_flood_is_found_in_every_transport_and_era(
    way: str, era: tuple[str, ...], tmp_path: Path
) -> None:
    with peer("many-logs-then-the-answer", way, *era) as (_, block):
        done = run_suite(tmp_path, block, *PATIENCE)
    assert done.code == 0, done.said


def test_ci_on_a_flood_fails(tmp_path: Path) -> None:
    with peer("pings-in-a-call", "stdio") as (_, block):
        done = run_suite(tmp_path, block, "--timeout", "1s", command="ci")
    assert done.code == 1, done.said


def test_a_matrix_tells_the_flood_from_the_server_beside_it(tmp_path: Path) -> None:
    write_suite(tmp_path)
    flood, good = (shlex.join([*FLOODING, case]) for case in ("logs-in-a-call", "no-flood"))
    servers = ("--languages", f"flood:{flood}", "--languages", f"good:{good}")
    options = (*servers, *REPORTS, "--timeout", "10s")
    done = measured(tmp_path, "matrix", "suite.yaml", *options)
    assert done.code == 1, done.said
    results = json.loads((tmp_path / "r.json").read_text())["results"]
    assert sorted(one["status"] for one in results) == ["FAIL", "PASS"]


def test_a_watch_of_a_flood_ends_its_first_cycle_and_leaves(tmp_path: Path) -> None:
    with peer("logs-in-a-call", "stdio") as (_, block):
        write_suite(tmp_path, block)
        words = ("watch", "suite.yaml", "--timeout", "1s", "--json-file", "r.json")
        process = subprocess.Popen(
            [sys.executable, "-m", "mcptest", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        with process:
            assert process.stdout is not None
            told = next(line for line in process.stdout if b"failed" in line)
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=BOUND)
    assert b"1 failed" in told
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    assert int(peak) / 1024 < MOST_MEGABYTES
    assert process.returncode == 130


def test_a_proxy_passes_a_flood_on_in_bounded_memory(tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    words = ("record", "--proxy", "--out", "c.jsonl", "--", *FLOODING, "large-logs-in-a-call")
    with subprocess.Popen(
        [sys.executable, "-c", MEASURED, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        passed_on = [process.stdout.readline() for _ in range(50)]
        process.stdin.close()
        process.stdout.close()
        said, _, peak = process.stderr.read().decode().rstrip().rpartition("\n")
    assert all(json.loads(one)["method"] == "notifications/message" for one in passed_on)
    assert int(peak) / 1024 < MOST_MEGABYTES, said
    assert (tmp_path / "c.jsonl").stat().st_size > sum(map(len, passed_on))


STARTING: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("audit", "lint", "fuzz", "property")},
    "init": ("init", "here"),
    "doctor": ("doctor", "--to", "draft"),
    "generate": ("generate", "--output", "here"),
    "coverage": ("coverage", "suite.yaml"),
    "record": ("record", "--out", "c.jsonl"),
    "compliance": ("compliance", "run"),
    "conformance": ("conformance", "server"),
}


@pytest.mark.parametrize("command", STARTING)
def test_a_start_is_not_waited_for_longer_than_a_request(command: str, tmp_path: Path) -> None:
    write_suite(tmp_path)
    with peer("logs-at-first", "stdio") as (server, _):
        done = measured(tmp_path, *STARTING[command], "--timeout", "1s", "--server", server)
    assert done.code in {1, 3}, done.said
    assert "within 1s" in done.said


def test_judging_an_intercepted_flood_takes_no_longer_than_the_session(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "tests:\n- {name: t, trajectory: [{type: presence, tools: [echo]}]}\n"
    )
    asked = (
        {"id": 1, "method": "initialize", "params": {}},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}},
    )
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in asked)
    words = (
        "intercept",
        "--trajectory",
        "t.yaml",
        "--max-time",
        "2s",
        *REPORTS,
        "--save-capture",
        "c.jsonl",
    )
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
