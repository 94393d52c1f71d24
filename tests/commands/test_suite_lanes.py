"""Lanes of a suite are judged within the limits that a run has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.commands import app
from mcptest.probe import lanes

SUITE = """\
tests: [{name: t, assert: {tool: add, args: {a: 1, b: 2}, expect: {not_error: true}}}]
invariants:
"""


@pytest.mark.parametrize("command", ["run", "ci"])
def test_sessions_are_judged_no_longer_than_a_request_may_take(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Soon(lanes.Deadline, frozen=True):
        """Is over as soon as it was made for so many seconds."""

        @property
        def expired(self) -> bool:
            return self.limit == 7

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lanes, "Deadline", Soon)
    monkeypatch.setattr(lanes, "_RECORDS_BETWEEN_LOOKS", 1)
    Path("s.yaml").write_text(SUITE)
    words = ("s.yaml", "--server", "demo", "--timeout", "7s", "--json-file", "r.json")
    assert app.run([command, *words]) == 1
    results = {one["name"]: one for one in json.loads(Path("r.json").read_text())["results"]}
    assert results["t"]["status"] == "PASS"
    assert results["invariants"]["kind"] == "timeout"
    assert "only the first 1 records of demo were judged" in results["invariants"]["detail"]
