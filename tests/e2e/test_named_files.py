"""Every file that a command line names: what can't be one is refused, at once and in words."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcptest.commands import app
from mcptest.transport import files
from tests.e2e.driving import ended_after

READING = [
    "run {}",
    "run --suite {}",
    "run s.yaml --server x --config {}",
    "run s.yaml --server demo --baseline {}",
    "ci s.yaml --server demo --baseline {}",
    "matrix --suite {} --languages a:demo",
    "snapshot --suite {} --server demo",
    "coverage --suite {} --server demo",
    "audit --server x --mcp-config {}",
    "doctor --to 2026-07-28 --server x --mcp-config {}",
    "mcp --allow-run --allow-server x --mcp-config {}",
    "lint --tools {}",
    "property --server demo --replay {}",
    "intercept --server demo --trajectory {}",
    "fleet {}",
    "compliance invariants --capture {}",
    "compliance run --from-suite {}",
    "compliance run --server demo --registry {}",
    "compliance run --server demo --baseline {}",
    "compliance rules --registry {}",
    "compliance diff 2025-06-18 2025-11-25 --rules-from {}",
    "conformance server --server demo --expected-failures {}",
    "conformance client --command true --expected-failures {}",
    "conformance judge --scenario initialize --capture {}",
    "serve --mock {}",
    "serve --capture {}",
    "report {}",
    "report --capture {}",
]
WRITING = [
    "audit --server demo --junit {}",
    "lint --server demo --json-file {}",
    "report stored.json --html {}",
    "record --server demo --out {}",
    "schema suite --out {}",
]
SUITE = "assert: {tool: add, args: {a: 1, b: 2}, expect: {not_error: true}}\n"
LIMIT = 60
"""Seconds after which a command that waits for ever is ended."""


def is_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def listens(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "random": lambda path: path.symlink_to("/dev/urandom"),
    "socket": listens,
    "terabyte": is_sparse,
    "nothing": lambda path: None,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to be in, with little patience for pipes, and signals given back at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "SECONDS_FOR_A_WRITER", 0.05)
    monkeypatch.setattr(files, "SECONDS_FOR_A_READER", 0.05)
    (tmp_path / "s.yaml").write_text(SUITE)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("line", READING)
def test_what_is_no_file_is_refused_by_name(
    line: str, kind: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    KINDS[kind](here / "given.yaml")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ended_after(LIMIT):
        code = app.run(shlex.split(line.format("given.yaml")))
    said = capfd.readouterr().err
    assert code == 2, said
    assert "given.yaml" in said
    assert "internal error" not in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80 * 1024


@pytest.mark.parametrize("line", READING)
def test_a_folder_without_what_is_read_is_refused(
    line: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "given.yaml").mkdir()
    with ended_after(LIMIT):
        code = app.run(shlex.split(line.format("given.yaml")))
    said = capfd.readouterr().err
    assert code in (2, 4), said
    assert "given.yaml" in said
    assert "internal error" not in said


@pytest.mark.parametrize("line", WRITING)
def test_a_pipe_that_nobody_reads_from_is_said(
    line: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(here / "given")
    assert app.run(["audit", "--server", "demo", "--json-file", "stored.json"]) == 0
    with ended_after(LIMIT):
        app.run([*shlex.split(line.format("given"))])
    assert "given: no process reads from this pipe within" in capfd.readouterr().err


@pytest.mark.parametrize(
    "line", ["report {}", "compliance invariants --capture {}", "lint --tools {}"]
)
def test_a_pipe_through_which_something_comes_is_read_to_its_end(line: str, here: Path) -> None:
    stored = {"report": "stored.json", "compliance": "s.jsonl", "lint": "s.json"}
    assert app.run(["audit", "--server", "demo", "--json-file", "stored.json"]) == 0
    assert app.run(["record", "--server", "demo", "--out", "s.jsonl"]) == 0
    (here / "s.json").write_text('{"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}')
    os.mkfifo(here / "given")
    data = (here / stored[line.split(maxsplit=1)[0]]).read_bytes()
    writer = threading.Thread(target=lambda: (here / "given").write_bytes(data))
    writer.start()
    with ended_after(LIMIT):
        code = app.run(shlex.split(line.format("given")))
    writer.join(LIMIT)
    assert code in (0, 1)


def test_a_pipe_without_end_is_cut_at_the_limit(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcptest.commands.report.run.LARGEST_REPORT", 1024 * 1024)
    os.mkfifo(here / "given")
    yes = subprocess.Popen(["sh", "-c", "exec yes > given"], cwd=here)
    try:
        with ended_after(LIMIT):
            assert app.run(["report", "given"]) == 2
    finally:
        yes.kill()
        yes.wait()
    assert "given: it is larger than 1 MiB" in capfd.readouterr().err


def test_a_silent_pipe_is_given_up(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "SECONDS_OF_SILENCE", 0.1)
    os.mkfifo(here / "given")
    held = os.open(here / "given", os.O_RDWR)
    try:
        with ended_after(LIMIT):
            assert app.run(["report", "given"]) == 2
    finally:
        os.close(held)
    assert "given: this pipe delivered nothing within" in capfd.readouterr().err


def test_waiting_for_a_pipe_ends_with_a_signal(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "given")
    held = os.open(tmp_path / "given", os.O_RDWR)
    command = [sys.executable, "-m", "mcptest", "report", "given"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until_open(process.pid, tmp_path / "given")
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
            os.close(held)
    assert (process.returncode, said) == (130, "mcptest: interrupted\n")


def wait_until_open(pid: int, path: Path) -> None:
    with ended_after(LIMIT):
        while True:
            with contextlib.suppress(FileNotFoundError):
                opened = Path(f"/proc/{pid}/fd").iterdir()
                if any(os.path.realpath(one) == str(path) for one in opened):
                    return
