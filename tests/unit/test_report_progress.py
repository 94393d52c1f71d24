"""Progress on a terminal, and silence elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from mcptest.report import columns
from mcptest.report.progress import Progress
from mcptest.report.terminal import Style
from tests.unit.sample_run import CRASH, HOSTILE, READ, hostile_result

COLOUR = Style(colour=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def frames(stream: io.StringIO) -> list[str]:
    """What stood on the line, one after the other."""
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).split("\r\x1b[K")[1:]


def test_a_terminal_sees_what_is_running_and_nothing_at_the_end() -> None:
    stream = Terminal()
    progress = Progress(stream, 21, COLOUR)
    progress.begin(READ.name)
    progress.begin(CRASH.name)
    progress.finish(CRASH)
    progress.finish(READ)
    progress.close()
    assert frames(stream) == [
        f"[1/21] {READ.name}",
        f"[2/21] {CRASH.name}",
        f"[1/21] {READ.name}",
        "",
    ]
    progress.close()
    assert len(frames(stream)) == 4


def test_a_pipe_sees_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 2, COLOUR)
    progress.begin(CRASH.name)
    progress.finish(CRASH)
    progress.close()
    assert stream.getvalue() == ""


def test_a_terminal_without_colour_sees_nothing() -> None:
    stream = Terminal()
    Progress(stream, 2, Style()).begin("a")
    assert stream.getvalue() == ""


def test_verbose_tells_each_failure_as_it_happens() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 2, Style(), verbose=True)
    progress.finish(READ)
    progress.finish(CRASH)
    assert stream.getvalue() == f"[2/2] FAIL {CRASH.name}: {CRASH.detail}\n"


def test_a_failure_on_a_terminal_has_a_line_of_its_own() -> None:
    stream = Terminal()
    progress = Progress(stream, 2, COLOUR, verbose=True)
    progress.begin(CRASH.name)
    progress.finish(CRASH)
    assert frames(stream)[1] == f"[1/2] FAIL {CRASH.name}: {CRASH.detail}\n"


def test_trials_of_one_name_may_run_together() -> None:
    progress = Progress(Terminal(), 2, COLOUR)
    progress.begin(READ.name)
    progress.begin(READ.name)
    progress.finish(READ)
    progress.finish(READ)
    progress.close()


def test_a_stream_that_is_gone_costs_the_progress_only() -> None:
    progress = Progress(Gone(), 2, COLOUR, verbose=True)
    progress.begin(CRASH.name)
    progress.finish(CRASH)
    progress.close()
    closed = Terminal()
    progress = Progress(closed, 2, COLOUR)
    closed.close()
    progress.begin("a")


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_name_stays_on_its_line_and_steers_nothing(number: int) -> None:
    stream = Terminal()
    progress = Progress(stream, 2, COLOUR, width=50, verbose=True)
    progress.begin(HOSTILE[number])
    assert columns.cells(frames(stream)[0]) < 50
    progress.finish(hostile_result(HOSTILE[number]))
    progress.close()
    for frame in frames(stream):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", frame.rstrip("\n"))
