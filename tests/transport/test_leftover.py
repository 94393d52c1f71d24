"""What a line without its newline is worth depends on who ended the session."""

from __future__ import annotations

import pytest

from mcptest.core.capture import Frame, Leftover, Step, Trouble
from mcptest.transport.recorder import KEPT_BYTES, LateOutput, last_line
from mcptest.wire.json_text import Beginning, beginning_of

WHOLE = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ASKED: tuple[Step, ...] = ("stdin-closed", "terminate", "kill")


@pytest.mark.parametrize("end", range(1, len(WHOLE)))
def test_every_part_of_a_message_may_be_the_beginning_of_one(end: int) -> None:
    assert beginning_of(WHOLE[:end]) is Beginning.OF_A_MESSAGE


@pytest.mark.parametrize(
    "raw",
    [b'{"a":1.', b'{"a":-', b'{"a":1e', b'{"a":"\\u12', b'{"a":"\xc3', b' [{"a":tr', b"[" * 9999],
)
def test_a_message_may_be_cut_anywhere(raw: bytes) -> None:
    assert beginning_of(raw) is Beginning.OF_A_MESSAGE


@pytest.mark.parametrize(
    "raw",
    [b"Loading ...", b"> ", b'{"a":nope, "b', b'{"a":NaN, "b', b"{a:", b'{"a":"\xff","b', b"12"],
)
def test_what_no_message_begins_with_is_none_however_it_goes_on(raw: bytes) -> None:
    assert beginning_of(raw) is Beginning.OF_NOTHING


@pytest.mark.parametrize("step", ASKED)
def test_half_a_message_of_a_server_that_was_told_to_end_is_a_leftover(step: Step) -> None:
    assert list(last_line(WHOLE[:9], step, 1.0, "cut")) == [
        Leftover(t=1.0, text=WHOLE[:9].decode(), size=9)
    ]


def test_half_a_message_of_a_server_that_ended_by_itself_is_told() -> None:
    frame, trouble = last_line(WHOLE[:9], "", 1.0, "cut")
    assert isinstance(frame, Frame)
    assert isinstance(trouble, Trouble)
    assert (trouble.error, trouble.detail) == ("truncated", "cut")


@pytest.mark.parametrize("step", ASKED)
def test_a_whole_message_lacks_its_newline_whoever_ended_the_session(step: Step) -> None:
    assert [type(each) for each in last_line(WHOLE, step, 1.0, "cut")] == [Frame, Trouble]


@pytest.mark.parametrize("step", ASKED)
def test_noise_is_noise_whoever_cut_it(step: Step) -> None:
    assert [type(each) for each in last_line(b"> ", step, 1.0, "cut")] == [Frame]


def test_what_comes_late_is_counted_and_its_beginning_is_kept() -> None:
    late = LateOutput()
    for _ in range(100):
        late.add(b"x" * 1000)
    (record,) = late.records(2.0)
    assert record == Leftover(t=2.0, text="x" * KEPT_BYTES, size=100_000)
    assert not list(late.records(3.0))
