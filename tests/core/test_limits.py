"""Deadlines and durations."""

from __future__ import annotations

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline, parse_duration, time_to_end
from tests.support.scripted import VirtualTime


def test_a_deadline_counts_down_and_is_never_negative(clock: VirtualTime) -> None:
    deadline = Deadline.after(5)
    assert deadline.remaining() == 5
    clock.now += 4
    assert deadline.remaining() == 1
    assert not deadline.expired
    clock.now += 1
    assert deadline.expired
    clock.now += 10
    assert deadline.remaining() == 0


def test_a_part_of_the_work_never_outlives_the_whole(clock: VirtualTime) -> None:
    whole = Deadline.after(5)
    assert whole.within(2).remaining() == 2
    assert whole.within(60) is whole
    clock.now += 4
    assert whole.within(2) is whole


def test_a_deadline_remembers_the_limit_it_was_made_with(clock: VirtualTime) -> None:
    assert Deadline.after(5).within(2).limit == 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("2m", 120),
        ("1h", 3600),
        ("1.5s", 1.5),
        ("7", 7),
        ("0.25", 0.25),
    ],
)
def test_a_duration_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "ms", "0", "0s", "-1s", "nan", "inf", "1e300", "abc", "10x", "1s2", "1 m m"]
)
def test_what_is_no_duration_is_a_usage_error_that_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert repr(text) in caught.value.message
    assert "500ms" in caught.value.hint


@pytest.mark.parametrize(("limit", "kept"), [(600.0, 2.0), (20.0, 2.0), (5.0, 0.5), (0.5, 0.05)])
def test_a_part_of_the_limit_of_a_command_is_kept_for_its_end(limit: float, kept: float) -> None:
    assert time_to_end(limit) == pytest.approx(kept)
