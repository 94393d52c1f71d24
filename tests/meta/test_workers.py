"""Workers that are forked after the collection: each test runs once, and is heard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.driving import BOUND

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os, pathlib, pytest
from tests.support.workers import pytest_cmdline_main, pytest_runtestloop

@pytest.fixture(autouse=True, scope="module")
def note(request):
    with pathlib.Path("notes").open("a") as file:
        file.write(f"{os.getpid()} begins {request.node.name}\\n")
        yield lambda word: (file.write(f"{os.getpid()} {word}\\n"), file.flush())
        file.write(f"{os.getpid()} ends {request.node.name}\\n")
"""
MANY = """
import pytest
@pytest.mark.parametrize("number", range(20))
def test_it(number, note, tmp_path):
    (tmp_path / "own").mkdir()
    note(f"ran {number}")
"""
OUTCOMES = """
import os, signal, warnings, pytest
def test_says_and_fails():
    print("said on stdout")
    os.write(2, b"said on stderr")
    assert 1 == 2, "as it should"
def test_is_skipped():
    pytest.skip("for a reason")
def test_warns():
    warnings.warn("a warning that is counted")
@pytest.fixture
def broken():
    yield
    raise ValueError("in its teardown")
def test_breaks_afterwards(broken):
    pass
def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)
def test_comes_after_it():
    pass
"""


def outcome_of(folder: Path, *words: str, **files: str) -> tuple[int, str]:
    """Of pytest with these modules."""
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-ra",
            "--basetemp",
            "base",
            *words,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_test_runs_once_in_one_of_the_workers(tmp_path: Path) -> None:
    code, said = outcome_of(tmp_path, "-n", "3", test_first=MANY, test_second=MANY)
    assert code == 0, said
    assert "40 passed" in said
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert sorted(int(word[2]) for word in notes if word[1] == "ran") == sorted([*range(20)] * 2)
    assert len({pid for pid, *_ in notes}) == 3
    begun = sorted((pid, name) for pid, what, name in notes if what == "begins")
    assert begun == sorted((pid, name) for pid, what, name in notes if what == "ends")


def test_what_becomes_of_each_is_told_and_a_crash_costs_one_test(tmp_path: Path) -> None:
    code, said = outcome_of(tmp_path, "-n", "2", test_outcomes=OUTCOMES)
    assert code == 1, said
    assert "2 failed, 3 passed, 1 skipped, 1 warning, 1 error" in said
    for words in ("said on stdout", "said on stderr", "as it should", "a warning that is counted"):
        assert words in said
    assert "for a reason" in said
    assert "ValueError: in its teardown" in said
    assert "ended with -9 in this test" in said


def test_the_first_failure_can_stop_it(tmp_path: Path) -> None:
    """But for the one test that the worker was told already."""
    files = {"test_first": "def test_it(): assert 0", "test_later": MANY}
    code, said = outcome_of(tmp_path, "-n", "1", "-x", **files)
    assert code == 1, said
    assert "stopping after 1 failures" in said
    assert "1 failed, 1 passed" in said


def test_a_worker_that_can_not_go_on_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "def pytest_runtest_setup(item):\n    raise SystemExit('enough')\n"
        "def pytest_runtest_protocol(item):\n    raise LookupError('of a plugin')\n"
    )
    code, said = outcome_of(tmp_path, "-n", "2", "-p", "plugin", test_first=MANY)
    assert code == 3, said
    assert "LookupError: of a plugin" in said
