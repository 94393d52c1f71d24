"""The event stream decoder: every line ending, every split, nothing lost that a tester needs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.capture import Sse
from mcptest.core.errors import ErrorKind
from mcptest.wire.sse import Event, SseDecoder


def decode(data: bytes, *, pieces: int = 0) -> list[Event]:
    decoder = SseDecoder()
    if not pieces:
        return decoder.feed(data)
    cut = [data[start : start + pieces] for start in range(0, len(data), pieces)]
    return [item for piece in cut for item in decoder.feed(piece)]


CASES: dict[str, tuple[bytes, list[Event]]] = {
    "one data line": (b"data: x\n\n", [Event(b"x")]),
    "no space after the colon": (b"data:x\n\n", [Event(b"x")]),
    "only one space is removed": (b"data:  x\n\n", [Event(b" x")]),
    "data lines are joined": (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
    "all fields": (
        b"event: message\nid: 7\nretry: 250\ndata: x\n\n",
        [Event(b"x", Sse("message", "7", 250))],
    ),
    "CR": (b"data: a\rdata: b\r\r", [Event(b"a\nb")]),
    "CRLF": (b"data: a\r\ndata: b\r\n\r\n", [Event(b"a\nb")]),
    "mixed endings": (b"data: a\r\n\rdata: b\n\r\n", [Event(b"a"), Event(b"b")]),
    "a leading byte order mark": (b"\xef\xbb\xbfdata: x\n\n", [Event(b"x")]),
    "a second byte order mark is a name": (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
    "comments": (
        b": hi\n:\n\ndata: x\n\n",
        [Event(comment=b"hi"), Event(comment=b""), Event(b"x")],
    ),
    "a comment inside an event": (
        b"data: a\n: c\ndata: b\n\n",
        [Event(comment=b"c"), Event(b"a\nb")],
    ),
    "a priming event": (b"id: 1\ndata:\n\n", [Event(b"", Sse(id="1"))]),
    "an id alone": (b"id: 1\n\n", [Event(None, Sse(id="1"))]),
    "an empty id": (b"id\ndata: x\n\n", [Event(b"x", Sse(id=""))]),
    "an id with NUL is ignored": (b"id: a\0b\ndata: x\n\n", [Event(b"x")]),
    "retry with other than digits is ignored": (b"retry: 1s\ndata: x\n\n", [Event(b"x")]),
    "retry beyond all numbers is ignored": (
        b"retry: " + b"9" * 5000 + b"\ndata: x\n\n",
        [Event(b"x")],
    ),
    "a name without colon": (b"data\n\n", [Event(b"")]),
    "an unknown field": (b"dada: x\n\n", []),
    "blank lines alone": (b"\n\n\n", []),
    "invalid UTF-8 stays as it came": (b"data: \xff\xfe\n\n", [Event(b"\xff\xfe")]),
    "two events": (b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    "nothing carries over": (
        b"id: 1\nevent: e\ndata: a\n\ndata: b\n\n",
        [Event(b"a", Sse("e", "1")), Event(b"b")],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("pieces", [0, 1, 2, 3, 7])
def test_events_are_the_same_however_the_bytes_are_cut(case: str, pieces: int) -> None:
    data, expected = CASES[case]
    assert decode(data, pieces=pieces) == expected


PARTS = [b"data: x", b"id: 1", b"\r", b"\n", b"\r\n", b": c", b"\xef\xbb\xbf"]


@given(st.lists(st.sampled_from(PARTS)), st.integers(1, 5))
def test_cutting_never_changes_what_is_read(parts: list[bytes], pieces: int) -> None:
    data = b"".join(parts)
    assert decode(data, pieces=pieces) == decode(data)


@pytest.mark.parametrize(
    ("data", "discarded"),
    [
        (b"data: x\n", b"x"),
        (b"data: x", b"data: x"),
        (b"data: a\ndata: b", b"a\ndata: b"),
        (b"id: 1\n", b""),
        (b"data: x\n\n", None),
        (b": only a comment", None),
        (b"", None),
    ],
)
def test_an_event_that_was_never_finished_is_told_at_the_end(
    data: bytes, discarded: bytes | None
) -> None:
    decoder = SseDecoder()
    decoder.feed(data)
    assert decoder.finish() == discarded


@pytest.mark.parametrize(
    "piece", [b"data: " + b"x" * 90, b"data: 123\n" * 5, b"data\n" * 10, b":" + b"c" * 90]
)
def test_an_event_past_the_limit_is_refused_with_what_is_kept_bounded(piece: bytes) -> None:
    decoder = SseDecoder(limit=1000)
    for _ in range(100):
        decoder.feed(piece)
        assert decoder.held <= 1000 + len(piece)
    assert decoder.fault is not None
    assert decoder.fault.kind is ErrorKind.EVENT_TOO_LARGE
    assert "larger than 1000 bytes" in decoder.fault.detail


def test_events_before_one_that_is_too_large_are_not_lost() -> None:
    decoder = SseDecoder(limit=10)
    assert decoder.feed(b"data: a\n\ndata: " + b"x" * 20) == [Event(b"a")]
    assert decoder.fault is not None
    assert decoder.feed(b"\n\ndata: b\n\n") == []


def test_lines_that_mean_nothing_do_not_add_up() -> None:
    decoder = SseDecoder(limit=100)
    for _ in range(100):
        assert decoder.feed(b"unknown: field\n\n") == []
    assert decoder.fault is None


def test_a_line_in_very_many_pieces_takes_linear_time() -> None:
    decoder = SseDecoder()
    started = time.process_time()
    for _ in range(200_000):
        decoder.feed(b"xxxxxxxxxxxxxxxx")
    assert decoder.feed(b"\n\n") == []
    assert time.process_time() - started < 5  # quadratic would be minutes
