"""mcptest judges its own server by everything that it judges others by."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.agents.asking import ALLOWED, COMMAND
from tests.agents.listening import listening_server
from tests.e2e.demo_peer import ALL
from tests.e2e.driving import mcptest

READING = shlex.join(COMMAND)
PAGE = Path(__file__).parents[2] / "docs" / "commands" / "mcp.md"
EVERYTHING = shlex.join([*COMMAND, *ALLOWED, "--allow-write"])


@pytest.mark.parametrize("revision", ALL)
def test_it_conforms_in_every_revision_with_the_best_grade(tmp_path: Path, revision: str) -> None:
    """One by one: `--spec-version all`, which the page shows, is the same in one long command."""
    words = ("--spec-version", revision, "--strict", "--min-grade", "A+", "--format", "agent")
    done = mcptest("compliance", "run", "--server", READING, *words, cwd=tmp_path)
    assert done.code == 0, done.said
    graded = f"v{revision} grade A+"
    assert graded in done.out
    shown = next(line for line in PAGE.read_text().splitlines() if line.startswith("PASS: v2024"))
    assert graded in shown


def test_it_conforms_over_http(tmp_path: Path) -> None:
    words = ("--spec-version", "2026-07-28", "--strict", "--min-grade", "A+")
    with listening_server(tmp_path, "--root", str(tmp_path)) as server:
        done = mcptest("compliance", "run", "--server", server.url, *words, cwd=tmp_path)
    assert done.code == 0, done.said


def test_no_scenario_for_servers_fails(tmp_path: Path) -> None:
    done = mcptest("conformance", "server", "--server", READING, "--json", cwd=tmp_path)
    assert done.code == 0, done.said


@pytest.mark.parametrize("server", [READING, EVERYTHING], ids=["reading", "everything"])
def test_a_model_can_use_its_tools(tmp_path: Path, server: str) -> None:
    done = mcptest("lint", "--server", server, "--strict", cwd=tmp_path)
    assert done.code == 0, done.said
    assert "no findings" in done.out


def test_an_audit_finds_everything_in_health(tmp_path: Path) -> None:
    done = mcptest("audit", "--server", EVERYTHING, "--json", cwd=tmp_path)
    assert done.code == 0, done.said
    assert json.loads(done.out)["answered"] == 100, (
        "files that are not there are answered with isError"
    )


def test_fuzz_finds_nothing(tmp_path: Path) -> None:
    words = ("--runs", "10", "--seed", "1")
    done = mcptest("fuzz", "--server", READING, *words, cwd=tmp_path)
    assert done.code == 0, done.said


def test_no_property_has_a_counterexample(tmp_path: Path) -> None:
    words = ("--examples", "5", "--seed", "1", "--no-database", "--max-time", "50s")
    names = ("messages-invalid", "arguments", "arguments-almost-valid", "conversations")
    chosen = [word for name in names for word in ("--property", name)]
    done = mcptest("property", "--server", READING, *words, *chosen, cwd=tmp_path)
    assert done.code == 0, done.said
