"""How a fuzz run adapts to a tool: how many at once, and how long silence may last."""

from __future__ import annotations

from mcptest.commands.fuzz.fuzzer import Pace


def test_silence_is_borne_longer_with_a_tool_that_was_seen_to_be_slow() -> None:
    pace = Pace(timeout=60.0)
    before = pace.patience
    pace.waited(5.0)
    assert pace.patience > max(before, 5.0)


def test_patience_never_outlasts_the_time_out() -> None:
    pace = Pace(timeout=1.0)
    pace.waited(0.9)
    assert pace.patience == 1.0


def test_quick_answers_let_more_be_under_way_up_to_a_bound() -> None:
    pace = Pace(timeout=15.0)
    for _ in range(20):
        pace.answered(0.001, over_http=False)
    over_pipes = pace.width
    for _ in range(20):
        pace.answered(0.001, over_http=True)
    assert over_pipes == 256
    assert pace.width == 64


def test_slow_answers_and_breaks_make_it_fewer_and_at_last_one() -> None:
    pace = Pace(timeout=15.0)
    first = pace.width
    pace.answered(5.0, over_http=False)
    slower = pace.width
    for _ in range(5):
        pace.broken()
    assert 1 < slower < first
    assert pace.width == 1
