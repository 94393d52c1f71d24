"""What a live display says at every size: pure, from a state to lines."""

from __future__ import annotations

import io
import os
import re

import pytest

from mcptest.report import terminal
from mcptest.report.progress import ERASE, LiveBlock, LiveState, live_lines, told_failure
from mcptest.report.terminal import Style
from tests.support.sample_run import HOSTILE
from tests.terminal.on_a_terminal import rows_on_screen

PLAIN = Style()
STATE = LiveState(
    done=37,
    total=210,
    failed=2,
    seconds=72.4,
    running=(
        (0.2, "quick one"),
        (3.9, "reads a file"),
        (61.0, "searches everything 漢字漢字漢字漢字漢字漢字漢字漢字漢字"),
        (1.0, "waits"),
        (0.9, "waits too"),
    ),
)


def test_a_wide_terminal_has_it_all_and_what_runs_longest_comes_first() -> None:
    assert live_lines(STATE, PLAIN, 100) == [
        f"{'━' * 7}{'─' * 33} [37/210] 2 failed · 1m12s · 0.5/s",
        "  1m01s  searches everything 漢字漢字漢字漢字漢字漢字漢字漢字漢字",
        "     3s  reads a file",
        "     1s  waits",
        "         and 1 more",
    ]


def test_a_narrow_terminal_keeps_what_matters_most() -> None:
    assert live_lines(STATE, PLAIN, 40)[:2] == [
        "[37/210] 2 failed · 1m12s · 0.5/s",
        "  1m01s  searches everything 漢字漢字…",
    ]
    assert live_lines(STATE, PLAIN, 20) == [
        "[37/210] 2 failed",
        " 1m01s  searches e…",
        "    3s  reads a fi…",
        "    1s  waits",
        "      and 1 more",
    ]
    assert live_lines(STATE, PLAIN, 5)[0] == "[37…"


@pytest.mark.parametrize("width", [1, 2, 7, 19, 20, 33, 57, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 3, 30])
def test_no_line_is_as_wide_and_the_block_is_not_as_high_as_the_terminal(
    width: int, height: int
) -> None:
    for style in (PLAIN, Style(unicode=False)):
        lines = live_lines(STATE, style, width, height)
        assert 1 <= len(lines) <= max(1, height - 1)
        if width >= 20:
            assert all(terminal.cells(line) < width for line in lines)


def test_without_unicode_it_is_drawn_in_ascii() -> None:
    first = live_lines(STATE, Style(unicode=False), 100)[0]
    assert first.isascii()
    assert first.startswith("#######-----")


def test_before_anything_is_counted_it_says_that_it_starts() -> None:
    assert live_lines(LiveState(done=0, total=0, seconds=2), PLAIN, 80) == ["starting … 2s"]
    whole = live_lines(LiveState(done=9, total=9, seconds=0.4), PLAIN, 80)
    assert whole == [f"{'━' * 40} [9/9] 0s"]


def test_where_nobody_says_what_begins_it_says_what_was_last() -> None:
    state = LiveState(done=1, total=3, doing="TOOLS-004 2025-06-18")
    assert live_lines(state, PLAIN, 80)[1:] == ["  TOOLS-004 2025-06-18"]


def test_a_failure_is_one_line_or_two() -> None:
    assert told_failure("reads", "got 7", PLAIN, 80) == ["✗ reads: got 7"]
    assert told_failure("reads", "", PLAIN, 80) == ["✗ reads"]
    assert told_failure("reads", "expected a string, got 7", PLAIN, 24) == [
        "✗ reads",
        "    expected a string,…",
    ]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_nothing_of_a_peer_steers_the_terminal(number: int) -> None:
    name = HOSTILE[number]
    state = LiveState(done=0, total=1, running=((9, name),), doing=name)
    lines = [*live_lines(state, PLAIN, 40), *told_failure(name, name, PLAIN, 40)]
    for line in lines:
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", line)
        assert terminal.cells(line) < 40


class Screen(io.StringIO):
    def shown(self) -> list[str]:
        return rows_on_screen(self.getvalue())


def test_a_block_is_drawn_over_itself_and_leaves_nothing() -> None:
    screen = Screen()
    block = LiveBlock(screen)
    block.tell(["before"])
    block.draw(["a long first line", "second", "third"])
    assert screen.shown() == ["before", "a long first line", "second", "third"]
    block.draw(["short"])
    assert screen.shown() == ["before", "short"]
    block.tell(["failed"])
    assert screen.shown() == ["before", "failed", "short"]
    block.draw(["one", "two"])
    block.clear()
    assert screen.shown() == ["before", "failed", ""]


def test_the_cursor_is_never_hidden_and_waits_where_the_block_begins() -> None:
    screen = Screen()
    block = LiveBlock(screen)
    block.draw(["one", "two", "three"])
    assert "\x1b[?25l" not in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2A\r")
    block.clear()
    assert screen.getvalue().endswith(ERASE)


def test_the_size_is_asked_for_each_time_and_has_an_otherwise() -> None:
    assert LiveBlock(io.StringIO()).size() == (80, 24)
    reading, writing = os.openpty()
    try:
        import fcntl
        import struct
        import termios

        with open(writing, "w", closefd=False) as stream:
            for rows, wide in ((30, 100), (6, 20)):
                fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", rows, wide, 0, 0))
                assert LiveBlock(stream).size() == (wide, rows)
    finally:
        os.close(reading)
        os.close(writing)
