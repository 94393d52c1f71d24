"""What a run of property tests says on a terminal."""

from __future__ import annotations

from mcptest.report.html.sources import source_of_property
from mcptest.report.html.wire_rows import Places
from mcptest.report.property import PropertyReport, PropertyResult
from mcptest.report.terminal import Style


def test_a_property_that_was_not_tried_neither_holds_nor_is_broken() -> None:
    late = PropertyResult(name="late", about="", ended_early="not run: stopped after 10s")
    held = PropertyResult(name="held", about="", examples=3)
    report = PropertyReport(server="s", properties=(held, late), seed=1)
    assert report.failed, "what was asked for and not done is never green"
    assert report.in_words() == "1/1 properties hold, 3 examples, 1 not run (late), seed 1"
    style = Style(colour=False)
    [row] = [line for line in report.lines(style) if " late " in line]
    assert row.lstrip().startswith(style.unsure)
    [_, entry] = source_of_property(report, Places([])).entries
    assert entry.outcome == "not_observed", "on the page, too"
