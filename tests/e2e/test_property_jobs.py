"""`mcptest property --jobs`: several properties at once from the command line."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcptest.transport.descendants import tree_of
from tests.e2e.driving import BOUND, is_alive, mcptest, wait_until


def words_of(text: str) -> list[str]:
    """What was printed, without how long it took."""
    return [re.sub(r"\s+[0-9.]+m?s\b", "", line) for line in text.splitlines()]


def test_what_is_printed_is_the_same_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    chosen = ("--property", "same-lists", "--property", "arguments-almost-valid", "--no-database")
    given = ("--server", "demo", *chosen, "--seed", "4", "--examples", "20")
    alone, together = (
        mcptest("property", *given, "--jobs", jobs, cwd=tmp_path) for jobs in ("1", "2")
    )
    assert (alone.code, together.code) == (0, 0), together.err
    assert words_of(alone.out) == words_of(together.out)
    assert "2/2 properties hold" in together.out


@pytest.mark.parametrize(
    ("jobs", "said"), [("0", "--jobs takes auto or a number"), ("many", "not 'many'")]
)
def test_a_number_of_jobs_that_makes_no_sense_is_said(jobs: str, said: str, tmp_path: Path) -> None:
    done = mcptest("property", "--server", "demo", "--jobs", jobs, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_workers_and_servers_and_tells_what_was_done(
    number: signal.Signals, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    bell = os.open(started, os.O_RDWR)  # both ends: nobody waits for the other, nothing ends
    command = f"import pathlib; pathlib.Path({str(started)!r}).open('w').write('x'); import runpy; "
    command += "runpy.run_module('mcptest.servers.demo', run_name='__main__')"
    argv = ["property", "--server", f'{sys.executable} -c "{command}"', "--jobs", "2"]
    argv += ["--examples", "100000", "--seed", "1", "--no-database"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", *argv],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(3):  # the first server, and one for each worker
            assert select.select([bell], [], [], BOUND)[0]
            os.read(bell, 1)
        below = list(tree_of(process.pid))
        assert len(below) >= 4
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does it: everyone hears of it
        else:
            process.send_signal(number)
        out, _ = process.communicate(timeout=BOUND)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        os.close(bell)
    assert process.returncode == 130
    assert b"interrupted" in out
    wait_until(lambda: not any(map(is_alive, below)), "the end of workers and servers")
