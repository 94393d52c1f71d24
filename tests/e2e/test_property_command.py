"""`mcptest property` from the command line: what it prints, keeps and writes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTY = [sys.executable, "-m", "tests.properties.faulty", "invalid-request-code"]
OPTIONS = ("--cwd", str(ROOT), "--spec-version", "2025-11-25", "--property", "messages-invalid")


def mcptest(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcptest", *words]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which one bug was found and written down, and what was printed."""
    folder = tmp_path_factory.mktemp("property")
    words = ("--examples", "60", "--seed", "1", "--strict", "--output", "out")
    done = mcptest("property", "--server", shlex.join(FAULTY), *OPTIONS, *words, cwd=folder)
    assert done.returncode == 1, done.stderr
    return folder, done.stdout


def test_a_counterexample_is_told_with_its_rule_its_bytes_and_the_command(
    found: tuple[Path, str],
) -> None:
    _, text = found
    assert "BROKEN JSONRPC-003" in text
    assert "1. send " in text
    assert '"code":-32602' in text
    assert "--replay messages-invalid-" in text
    assert "0/1 properties hold" in text


def test_nothing_is_left_but_what_was_asked_for(found: tuple[Path, str]) -> None:
    folder, _ = found
    assert sorted(path.name for path in folder.iterdir()) == [".mcptest", "out"]


def test_the_command_that_is_told_repeats_it(found: tuple[Path, str]) -> None:
    folder, text = found
    again = next(line for line in text.splitlines() if line.strip().startswith("repeat:"))
    words = shlex.split(again.split("repeat:", 1)[1])
    assert words[0] == "mcptest"
    done = mcptest(*words[1:], "--strict", cwd=folder)
    assert done.returncode == 1
    assert "JSONRPC-003" in done.stdout


def test_what_was_written_fails_for_the_same_reason(found: tuple[Path, str]) -> None:
    folder, _ = found
    suite = mcptest("run", "out", cwd=folder)
    assert suite.returncode == 1
    assert "JSONRPC-003" in suite.stdout
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert tested.returncode == 1
    assert "JSONRPC-003" in tested.stdout
    judged = mcptest("compliance", "invariants", "--capture", *_captures(folder), cwd=folder)
    assert judged.returncode in (0, 1), judged.stderr


def _captures(folder: Path) -> list[str]:
    return [str(path) for path in sorted((folder / "out").glob("*.jsonl"))][:1]


def test_the_report_is_json_and_nothing_else(tmp_path: Path) -> None:
    words = ("--property", "same-lists", "--json", "--no-database", "--seed", "1")
    done = mcptest("property", "--server", "demo", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["format"] == "mcptest.property/1"
    assert report["summary"]["counterexamples"] == 0
    assert [one["name"] for one in report["properties"]] == ["same-lists"]
    assert not (tmp_path / ".mcptest").exists()
    assert not (tmp_path / ".hypothesis").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--property", "conversation"), "did you mean conversations?"),
        (("--examples", "0"), "--examples must be at least 1"),
        (
            ("--replay", "nothing-like-that"),
            "no saved example or file is named 'nothing-like-that'",
        ),
    ],
)
def test_what_can_not_be_used_is_said(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = mcptest("property", "--server", "demo", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_properties_are_listed_without_a_server(tmp_path: Path) -> None:
    done = mcptest("property", "--list", cwd=tmp_path)
    assert done.returncode == 0
    assert "conversations" in done.stdout
    assert "messages-invalid" in done.stdout


def test_a_server_that_can_not_be_started_is_unreachable(tmp_path: Path) -> None:
    done = mcptest("property", "--server", "/no/such/server", cwd=tmp_path)
    assert done.returncode == 3
