"""Framing: whatever is sent and however it is cut, the same messages come out."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.capture import Frame
from mcptest.core.message import Kind
from mcptest.core.revision import TIMELINE, Revision
from mcptest.strategies import Crafted, invalid_messages, notifications, requests, responses
from mcptest.wire.capture_forms import decode_records, encode_records
from mcptest.wire.envelope import decode, envelope_problems
from mcptest.wire.http1 import ResponseHead, ResponseReader
from mcptest.wire.lines import LineReader, LineTooLong
from tests.properties.message_faults import faults
from tests.properties.pace import few
from tests.support.records import encode_record

SOME = few(40)
# Those that are large are left to the tests of limits.
LARGE = {"huge", "too-deep", "unclosed", "huge-number"}
SMALL = invalid_messages(only=sorted({"truncated", "not-json", "invalid-utf8", "utf-16", "array"}))
MESSAGES = requests() | notifications() | responses() | SMALL
CUTS = st.lists(st.integers(1, 40), max_size=30)


def pieces(stream: bytes, sizes: list[int]) -> Iterator[bytes]:
    """The stream in pieces of these sizes, over and over; all at once where there are none."""
    place, turn = 0, 0
    while place < len(stream):
        size = sizes[turn % len(sizes)] if sizes else len(stream)
        yield stream[place : place + size]
        place, turn = place + size, turn + 1


@SOME
@given(st.lists(MESSAGES, max_size=6), CUTS)
def test_lines_come_out_as_they_went_in(messages: list[Crafted], sizes: list[int]) -> None:
    reader = LineReader(limit=1 << 20)
    stream = b"".join(message.raw + b"\n" for message in messages)
    lines = [line for piece in pieces(stream, sizes) for line in reader.feed(piece)]
    assert lines == [message.raw for message in messages]
    assert reader.finish() == b""


@SOME
@given(st.lists(MESSAGES, min_size=1, max_size=4), CUTS, st.integers(10, 120))
def test_a_line_over_the_limit_costs_only_itself(
    messages: list[Crafted], sizes: list[int], limit: int
) -> None:
    reader = LineReader(limit)
    stream = b"".join(message.raw + b"\n" for message in messages)
    lines = [line for piece in pieces(stream, sizes) for line in reader.feed(piece)]
    kept = [message.raw for message in messages if len(message.raw) <= limit]
    assert [line for line in lines if not isinstance(line, LineTooLong)] == kept
    assert len(lines) == len(messages)


@SOME
@given(st.lists(MESSAGES, max_size=4), CUTS, st.booleans())
def test_a_body_comes_out_as_it_went_in(
    messages: list[Crafted], sizes: list[int], chunked: bool
) -> None:
    bodies = [message.raw for message in messages if message.raw]
    whole = b"".join(bodies)
    if chunked:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        coded = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in bodies) + b"0\r\n\r\n"
    else:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole)
        coded = whole
    reader = ResponseReader("POST", 65_536)
    events = [event for piece in pieces(head + coded, sizes) for event in reader.feed(piece)]
    reader.finish()
    assert reader.fault is None
    assert isinstance(events[0], ResponseHead)
    assert b"".join(event for event in events if isinstance(event, bytes)) == whole


@few(80)
@given(MESSAGES | invalid_messages(only=sorted(LARGE)))
def test_a_message_is_read_without_problems_when_it_is_valid(message: Crafted) -> None:
    read = decode(message.raw)
    assert read.raw == message.raw
    if message.valid:
        assert read.problems == ()
        assert envelope_problems(read.value) == ()
        assert read.kind in {Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR}


@SOME
@given(st.lists(MESSAGES, max_size=5))
def test_a_capture_gives_back_the_bytes(messages: list[Crafted]) -> None:
    frames = [Frame(t=0.5, sender="client", raw=message.raw) for message in messages]
    lines = [encode_record(frame) for frame in frames]
    assert encode_records(frames) == lines
    assert list(decode_records(lines)) == frames


@given(st.binary(max_size=80), st.sampled_from(TIMELINE))
def test_any_bytes_are_judged_as_a_message(raw: bytes, revision: Revision) -> None:
    told = faults(raw, revision)
    assert told or decode(raw).kind is not Kind.INVALID
