"""Log lines on stdout and bodies of HTTP, live and from the capture: one reading of both."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.driving import mcptest
from tests.rogues import malformed
from tests.rogues.malformed import ACCEPTED, NOISE, malformed_http

SERVER = (sys.executable, "-I", "-S", str(Path(malformed.__file__)))
ABOUT_MESSAGES = {"MSG-001", "MSG-002", "MSG-006", "MSG-010", "PROTO-008", "HTTP-001", "STDIO-001"}


def failing(folder: Path, server: str) -> tuple[set[str], set[str]]:
    """The rules about messages that fail: in `compliance run`, and in a recording of a tour."""
    version = ("--spec-version", "2025-11-25", "--server", server)
    mcptest("compliance", "run", *version, "--json-file", "live.json", cwd=folder)
    live = json.loads((folder / "live.json").read_bytes())
    results = [one for judged in live["judgements"] for one in judged["results"]]
    now = {one["id"] for one in results if one["outcome"] == "fail"}
    mcptest("record", *version, "--out", "kept.jsonl", cwd=folder)
    done = mcptest("compliance", "invariants", "--capture", "kept.jsonl", "--json", cwd=folder)
    sessions = json.loads(done.out)["sessions"]
    verdicts = [one for session in sessions for one in session["verdicts"]]
    later = {one["rule"] for one in verdicts if one["outcome"] == "fail"}
    return now & ABOUT_MESSAGES, later & ABOUT_MESSAGES


@pytest.mark.parametrize("noise", NOISE)
def test_json_on_stdout_that_is_no_message_is_noise(noise: str, tmp_path: Path) -> None:
    now, later = failing(tmp_path, shlex.join([*SERVER, noise]))
    assert now == {"STDIO-001"}
    assert later == {"STDIO-001"}


def test_an_error_with_an_id_that_nobody_used_is_an_answer_to_nothing(tmp_path: Path) -> None:
    now, later = failing(tmp_path, shlex.join([*SERVER, "stray-error"]))
    assert now == {"MSG-006"}
    assert later == {"MSG-006"}


@pytest.mark.parametrize("body", ACCEPTED)
def test_a_body_below_a_202_is_the_fault_of_the_202(body: str, tmp_path: Path) -> None:
    with malformed_http(body) as url:
        now, later = failing(tmp_path, url)
    assert now == {"HTTP-001"}
    assert later == {"HTTP-001"}


def test_a_get_that_is_refused_in_json_is_no_fault(tmp_path: Path) -> None:
    with malformed_http("none") as url:
        assert failing(tmp_path, url) == (set(), set())
