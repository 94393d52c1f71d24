"""The same seed gives the same; and what is written of a find fails for the same reason elsewhere.

The server of these tests has a bug for as long as a file beside it says so.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.driving import BOUND, Done, mcptest, mcptest_anew

ROOT = Path(__file__).parents[2]
BUG = "result-and-error"
SERVER = """\
import pathlib, sys
sys.path.insert(0, {root!r})
from tests.properties import faulty
from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import parse_options
bug = pathlib.Path(__file__).with_name("bug.txt")
sys.exit(faulty.main([bug.read_text()]) if bug.exists() else run(parse_options([])))
"""
OF_THE_MOMENT = {"generated_at", "started", "duration_ms", "generating_ms"}


class Place:
    """A folder with the server, and what was written of its bug."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = folder / "server.py"
        self.bug = folder / "bug.txt"
        self.out = folder / "out"
        self.server.write_text(SERVER.format(root=str(ROOT)))
        self.bug.write_text(BUG)

    def words(self, *more: str) -> list[str]:
        command = shlex.join([sys.executable, str(self.server)])
        options = ("--property", "messages-valid", "--examples", "60", "--seed", "4")
        how = ("--spec-version", "2025-11-25", "--no-database", "--fail-fast", "--no-color")
        # an answer that a busy machine gives late would be another example
        patience = ("--timeout", "2m", "--max-time", "10m")
        return ["property", "--server", command, *options, *how, *patience, *more]

    def written(self, pattern: str) -> Path:
        (path,) = self.out.glob(pattern)
        return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("reproducible"))
    done = mcptest(*place.words("--output", "out"), cwd=place.folder)
    assert done.code == 1, done.said
    assert "MSG-001" in done.out
    return place


@pytest.fixture
def clean(place: Place, tmp_path: Path) -> Path:
    """A folder with nothing but what was written, and a server as it was when that was done."""
    place.bug.write_text(BUG)
    shutil.copytree(place.out, tmp_path / "clean")
    return tmp_path / "clean"


def without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_moments(v) for k, v in value.items() if k not in OF_THE_MOMENT}
    return [without_moments(one) for one in value] if isinstance(value, list) else value


def test_the_same_seed_gives_the_same_report_in_another_process(place: Place) -> None:
    """Also where sets have another order, and where other modules are loaded."""
    place.bug.write_text(BUG)
    words = place.words("--json")
    other = mcptest_anew(*words, cwd=place.folder, env={**os.environ, "PYTHONHASHSEED": "2"})
    reports = [
        without_moments(json.loads(done.out)) for done in (mcptest(*words, cwd=place.folder), other)
    ]
    assert reports[0]["summary"]["counterexamples"] == 1
    assert reports[0] == reports[1]
    another_seed = mcptest(*words, "--seed", "5", cwd=place.folder)
    assert without_moments(json.loads(another_seed.out)) != reports[0]


def pytest_in(folder: Path) -> Done:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        ".",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BOUND)
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_pytest_file_fails_by_the_same_rule_until_the_server_is_mended(
    place: Place, clean: Path
) -> None:
    for path in clean.iterdir():
        if path.suffix != ".py":
            path.unlink()
    broken = pytest_in(clean)
    assert broken.code == 1, broken.said
    assert re.search(r"AssertionError: MSG-001: .*", broken.out)
    place.bug.unlink()
    mended = pytest_in(clean)
    assert mended.code == 0, mended.said
    assert "1 passed" in mended.out


def test_the_suite_fails_by_the_same_rule_until_the_server_is_mended(
    place: Place, clean: Path
) -> None:
    broken = mcptest("run", ".", cwd=clean)
    assert broken.code == 1, broken.said
    assert "MSG-001" in broken.out
    place.bug.unlink()
    mended = mcptest("run", ".", cwd=clean)
    assert mended.code == 0, mended.said


def test_the_capture_is_judged_to_break_the_same_rule(clean: Path) -> None:
    (capture,) = clean.glob("*.jsonl")
    judged = mcptest("compliance", "invariants", "--capture", str(capture), cwd=clean)
    assert judged.code == 1, judged.said
    assert "MSG-001" in judged.out


def test_the_example_is_tried_again_alone(place: Place, clean: Path) -> None:
    (example,) = (one for one in clean.glob("*.json") if one.stem.startswith("messages"))
    again = mcptest(*place.words("--replay", str(example)), cwd=clean)
    assert again.code == 1, again.said
    assert "MSG-001" in again.out
    place.bug.unlink()
    assert mcptest(*place.words("--replay", str(example)), cwd=clean).code == 0
