"""Progress while a server is judged: how far, and what is broken at once."""

from __future__ import annotations

from mcptest.core.judgement import JudgingBegan, JudgingWaits, RuleJudged
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.report.compliance.text import JudgingProgress
from tests.report.test_progress import Terminal, plain, started

BEGAN = JudgingBegan(Revision.V2026_07_28, "stdio", "weather 2.1.0", 168)
JUDGED = RuleJudged(37, 168, "TOOLS-004", Outcome.PASS)


def test_a_terminal_sees_how_many_rules_are_judged() -> None:
    stream = Terminal()
    progress, clock = started(stream, 0)
    tell = JudgingProgress(progress)
    progress.tick()
    assert "starting … 0s" in plain(stream.getvalue())
    clock.now += 1
    tell(BEGAN)
    assert "[0/168] 1s" in plain(stream.getvalue())
    assert "weather 2.1.0 2026-07-28" in plain(stream.getvalue())
    clock.now += 1
    tell(JUDGED)
    assert "[37/168] 2s · 16/s" in plain(stream.getvalue())
    assert "TOOLS-004 2026-07-28" in plain(stream.getvalue())


def test_it_says_what_it_waits_for_and_how_far_it_is() -> None:
    stream = Terminal()
    progress, clock = started(stream, 0)
    tell = JudgingProgress(progress)
    for event in (BEGAN, JUDGED, JudgingWaits("waiting for 2 more server processes to start")):
        clock.now += 1
        tell(event)
    shown = plain(stream.getvalue()).rpartition("[37/168] 3s")[2]
    assert "waiting for 2 more server processes to start" in shown


def test_a_must_that_is_broken_is_told_at_once_and_a_should_is_not() -> None:
    stream = Terminal()
    progress, _ = started(stream, 0)
    tell = JudgingProgress(progress)
    tell(BEGAN)
    tell(RuleJudged(1, 168, "TOOLS-004", Outcome.FAIL, "names are unique", failed=True))
    tell(RuleJudged(2, 168, "TOOLS-005", Outcome.FAIL, "names are short", failed=False))
    assert "✗ TOOLS-004 2026-07-28: names are unique\n" in plain(stream.getvalue())
    assert "TOOLS-005" not in stream.getvalue()


def test_a_server_with_a_hostile_name_steers_nothing() -> None:
    stream = Terminal()
    progress, _ = started(stream, 0)
    JudgingProgress(progress)(JudgingBegan(Revision.DRAFT, "stdio", "\x1b[2J\n" + "x" * 500, 3))
    assert "\x1b[2J" not in stream.getvalue()
    assert all(len(line) < 80 for line in plain(stream.getvalue()).split("\n"))
