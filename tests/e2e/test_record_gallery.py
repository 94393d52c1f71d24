"""The whole gallery through `mcptest record`, and what the rules then say of each capture.

Whatever a server does, the command ends in time with a clear message, leaves no process behind, and
a capture of a server that died, hung or broke the protocol is never judged green.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.rogues.gallery import CASES, Case, command

LIMIT = 1.5
"""Seconds that each request may take. The command itself may take the time of a few of them."""
BOUND = 30.0

HARMLESS = frozenset(
    {
        # slow, or noisy where noise is allowed
        "answers-byte-by-byte",
        "stderr-garbage",
        "stderr-closed",
        "secrets-on-stderr",
        "writes-before-it-reads",
        # white space that a reader of lines does not notice
        "blank-lines",
        "carriage-returns",
        # floods us with requests, but that is allowed, and answers ours
        "server-request-flood",
        # bad ends and bad families: ended by us, and no fault of the protocol
        "ignores-eof",
        "ignores-sigterm",
        "fails-at-the-end",
        "exits-on-sigterm-only",
        "grandchild-in-its-own-session",
        "grandchild-ignores-sigterm",
        "grandchild-in-its-own-group",
        "daemon",
        "daemon-without-environment",
        "family-of-four-generations",
        "zombie-children",
        "forks-when-terminated",
        "behaves",
        # a SHOULD of RFC 8259: a warning
        "duplicate-keys",
    }
)
BEFORE_THE_MESSAGES = frozenset({"forgets-to-flush", "stdin-closed-but-alive"})
"""Nothing is wrong with the messages: the recording itself failed, and says so.

The one answers when its stdin is closed; to the other nothing could be sent at all.
"""


def mcptest(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcptest", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
    )


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.parametrize("case", [case for case in CASES if not case.large], ids=lambda c: c.name)
def test_every_rogue_gets_a_clear_end_and_an_honest_verdict(case: Case, tmp_path: Path) -> None:
    capture, pids = tmp_path / "capture.jsonl", tmp_path / "pids"
    begin = time.monotonic()
    recorded = mcptest(
        *("record", "--out", str(capture), "--timeout", f"{LIMIT}s", "--env", f"ROGUE_PIDS={pids}"),
        *("--", *command(case)),
    )
    assert time.monotonic() - begin < BOUND
    assert recorded.returncode in {0, 1, 3}
    assert "internal error" not in recorded.stderr
    assert "Traceback" not in "".join(
        line for line in recorded.stderr.splitlines() if "stderr:" not in line
    )
    if recorded.returncode:
        assert "mcptest: " in recorded.stderr or "✗" in recorded.stderr
    left = [pid for pid in map(int, pids.read_text().split()) if not is_gone(pid)]
    assert left == []

    judged = mcptest("compliance", "invariants", "--capture", str(capture), "--json")
    fine = case.name in HARMLESS
    assert (recorded.returncode == 0 and judged.returncode == 0) == fine, (
        recorded.returncode,
        recorded.stderr,
        _failures(judged),
    )
    if not fine and case.name not in BEFORE_THE_MESSAGES:
        assert judged.returncode == 1, recorded.stderr
        assert _failures(judged)


def _failures(judged: subprocess.CompletedProcess[str]) -> list[str]:
    report = json.loads(judged.stdout)
    return [
        f"{verdict['rule']}: {finding['message']}"
        for session in report["sessions"]
        for verdict in session["verdicts"]
        if verdict["outcome"] == "fail"
        for finding in verdict["findings"]
    ]
