"""Ctrl-C while a doctor is at work: what was found by then is told, and nothing is left behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mcptest.commands.doctor.run import examine
from mcptest.core.revision import Revision
from mcptest.probe.compliance.site import Order
from mcptest.report.doctor import DoctorVerdict
from mcptest.transport.target import Target
from tests.e2e.driving import interrupted_in_a_call

DEMO = (sys.executable, "-m", "mcptest.servers.demo")


def test_what_was_looked_at_before_is_told_and_the_rest_is_unknown() -> None:
    told: list[str] = []
    order = Order(
        target=Target(way="stdio", command=DEMO, label="demo"), should_stop=lambda: len(told) > 4
    )
    report = examine(order, Revision.V2026_07_28, None, lambda *told_of: told.append(told_of[-1]))
    reached = [one for one in report.items if "not looked at" not in one.detail]
    assert 0 < len(reached) < len(report.items)
    assert {one.verdict for one in report.items if one not in reached} == {DoctorVerdict.UNKNOWN}
    assert report.notes[-1].startswith("interrupted")
    assert not report.breaks


def test_an_interrupted_examination_reports_and_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "part.json"
    words = ("doctor", "--to", "2026-07-28", "--json-file", str(out))
    done = interrupted_in_a_call(tmp_path, *words)
    assert done.code == 130, done.err
    assert "mcptest: interrupted" in done.err
    assert "interrupted: the report is incomplete" in done.out
    assert any("interrupted" in one for one in json.loads(out.read_text())["notes"])
