"""Progress on a terminal, and silence elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from mcptest.report import terminal
from mcptest.report.progress import BEFORE_THE_FIRST, FAILURES_TOLD, Progress
from mcptest.report.terminal import Style
from tests.support.sample_run import CRASH, HOSTILE, READ

COLOUR = Style(colour=True)
TERMINAL = {"TERM": "xterm"}
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[mKJA]", "", text).replace("\r", "\n")


def started(
    stream: io.StringIO, total: int = 21, *, style: Style = COLOUR, verbose: bool = False
) -> tuple[Progress, Clock]:
    """A display that has been there for long enough to be drawn."""
    clock = Clock()
    progress = Progress(stream, total, style, verbose=verbose, clock=clock, environment=TERMINAL)
    clock.now += BEFORE_THE_FIRST + 0.01
    return progress, clock


def test_a_terminal_sees_how_far_it_has_come_and_nothing_at_the_end() -> None:
    stream = Terminal()
    progress, clock = started(stream)
    progress.begin(1, READ.name)
    clock.now += 2
    progress.tick()
    assert "[0/21] 2s" in plain(stream.getvalue())
    assert f"2s  {READ.name}" in plain(stream.getvalue())
    progress.finish(1, READ.name)
    clock.now += 1
    progress.tick()
    assert "[1/21] 3s · 0.3/s" in plain(stream.getvalue())
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[J")
    before = stream.getvalue()
    progress.close()
    progress.tick()
    assert stream.getvalue() == before


def test_what_is_over_at_once_shows_nothing() -> None:
    stream = Terminal()
    progress = Progress(stream, 2, COLOUR, clock=Clock(), environment=TERMINAL)
    progress.begin(1, CRASH.name)
    progress.finish(1, CRASH.name, failed=True, reason="it ended")
    progress.tick()
    progress.close()
    assert stream.getvalue() == ""


def test_a_failure_that_came_before_the_display_is_told_with_it() -> None:
    stream = Terminal()
    clock = Clock()
    progress = Progress(stream, 2, COLOUR, clock=clock, environment=TERMINAL)
    progress.finish(1, CRASH.name, failed=True, reason="it ended")
    clock.now += BEFORE_THE_FIRST + 0.01
    progress.tick()
    assert f"✗ {CRASH.name}: it ended\n" in plain(stream.getvalue())


def test_it_is_drawn_at_most_ten_times_a_second_and_only_when_it_changes() -> None:
    stream = Terminal()
    progress, clock = started(stream, 1_000)
    progress.tick()
    first = len(stream.getvalue())
    for number in range(50):
        progress.finish(number, "quick")
        clock.now += 0.001
    assert len(stream.getvalue()) == first
    clock.now += 0.1
    progress.tick()
    second = len(stream.getvalue())
    assert second > first
    clock.now += 0.1  # the second on the clock has not moved
    progress.tick()
    assert len(stream.getvalue()) == second


@pytest.mark.parametrize(
    ("stream", "style", "environment"),
    [
        (io.StringIO(), COLOUR, TERMINAL),
        (Terminal(), Style(), TERMINAL),
        (Terminal(), COLOUR, {"TERM": "dumb"}),
        (Terminal(), COLOUR, {}),
        (Terminal(), COLOUR, {"TERM": "xterm", "CI": "true"}),
    ],
    ids=["a pipe", "no colour", "a dumb terminal", "an unknown terminal", "CI"],
)
def test_nothing_is_drawn_on(
    stream: io.StringIO, style: Style, environment: dict[str, str]
) -> None:
    clock = Clock()
    progress = Progress(stream, 2, style, clock=clock, environment=environment)
    clock.now += 9
    progress.begin(1, CRASH.name)
    progress.finish(1, CRASH.name, failed=True, reason=CRASH.detail)
    progress.tick()
    progress.close()
    assert not progress.is_live
    assert stream.getvalue() == ""


def test_verbose_tells_each_failure_as_a_plain_line_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress, _ = started(stream, 2, style=Style(), verbose=True)
    progress.finish(1, READ.name)
    progress.finish(2, CRASH.name, failed=True, reason=CRASH.detail)
    assert stream.getvalue() == f"[2/2] FAIL {CRASH.name}: {CRASH.detail}\n"


def test_a_failure_stays_above_the_display() -> None:
    stream = Terminal()
    progress, _ = started(stream, 2)
    progress.tick()
    drawn = stream.getvalue()
    progress.finish(1, CRASH.name, failed=True, reason="it ended")
    told = stream.getvalue().removeprefix(drawn)
    assert told.startswith("\r\x1b[J")  # what was drawn makes room
    above, _, below = told.partition("it ended\n")
    assert CRASH.name in above
    assert "[0/2]" in plain(below)  # and stands below again, to be drawn anew in time


def test_a_flood_of_failures_is_counted_and_not_told() -> None:
    stream = Terminal()
    progress, clock = started(stream, 10_000)
    progress.tick()
    for number in range(3 * FAILURES_TOLD):
        progress.finish(number, f"test {number}", failed=True, reason="no")
    text = plain(stream.getvalue())
    assert text.count(": no\n") == FAILURES_TOLD
    assert text.count("further failures are only counted here") == 1
    clock.now += 1
    progress.tick()
    assert f"{3 * FAILURES_TOLD} failed" in plain(stream.getvalue())


def test_a_stream_that_is_gone_costs_the_progress_only() -> None:
    progress, _ = started(Gone(), 2, verbose=True)
    progress.begin(1, CRASH.name)
    progress.finish(1, CRASH.name, failed=True)
    progress.tick()
    progress.close()
    closed = Terminal()
    progress, _ = started(closed, 2)
    closed.close()
    progress.tick()


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_name_stays_on_its_line_and_steers_nothing(number: int) -> None:
    stream = Terminal()
    progress, clock = started(stream, 2)
    progress.begin(1, HOSTILE[number])
    clock.now += 1
    progress.tick()
    progress.finish(1, HOSTILE[number], failed=True, reason=HOSTILE[number])
    progress.close()
    for line in plain(stream.getvalue()).split("\n"):
        assert terminal.cells(line) < 80
        assert not CONTROL.search(line)
