"""The copy of a proxy: in order, in bounded memory, and never in the way of the stream."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.capture import AnyRecord, Frame, Note, Trouble
from mcptest.core.limits import Limits
from mcptest.transport.proxy.pipes import LineCopy, Onlooker

BOUND = 20.0


def note(chunk: bytes, t: float) -> Sequence[AnyRecord]:
    return (Note(t=t, text=chunk.decode()),)


def nothing() -> None:
    """Where there is no file to flush."""


def test_what_was_seen_is_looked_at_in_order() -> None:
    seen: list[AnyRecord] = []
    onlooker = Onlooker(seen.append, nothing)
    onlooker.start()
    for number in range(1_000):
        onlooker.saw(note, b"%d" % number, float(number))
    onlooker.finish()
    assert [each.t for each in seen] == [float(number) for number in range(1_000)]


def test_whoever_lags_too_far_makes_the_stream_wait() -> None:
    may_look, seen = threading.Event(), []

    def slow(record: AnyRecord) -> None:
        assert may_look.wait(BOUND)
        seen.append(record)

    onlooker = Onlooker(slow, nothing, room=1_000)
    onlooker.start()
    passed = []

    def stream() -> None:
        for number in range(20):
            onlooker.saw(note, b"x" * 500, 0.0)
            passed.append(number)

    writer = threading.Thread(target=stream, daemon=True)
    writer.start()
    writer.join(0.2)
    assert writer.is_alive()
    assert len(passed) < 5
    may_look.set()
    writer.join(BOUND)
    onlooker.finish()
    assert len(seen) == 20


def test_the_file_is_flushed_whenever_all_that_came_was_looked_at() -> None:
    flushed = threading.Event()
    onlooker = Onlooker(lambda record: None, flushed.set)
    onlooker.start()
    onlooker.saw(note, b"x", 0.0)
    assert flushed.wait(BOUND)
    onlooker.finish()


def test_a_stream_that_never_pauses_is_flushed_all_the_same() -> None:
    flushed = []
    onlooker = Onlooker(lambda record: None, lambda: flushed.append(1), room=100 * 1024 * 1024)
    for _ in range(20):
        onlooker.saw(note, b"x" * 500_000, 0.0)
    onlooker.start()
    onlooker.finish()
    assert 5 < len(flushed) <= 20


def test_what_goes_wrong_in_looking_is_told_at_the_end_and_stops_nobody() -> None:
    def broken(record: AnyRecord) -> None:
        raise ValueError("a defect")

    onlooker = Onlooker(broken, nothing, room=100)
    onlooker.start()
    for _ in range(100):
        onlooker.saw(note, b"x" * 100, 0.0)
    with pytest.raises(ValueError, match="a defect"):
        onlooker.finish()


LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20)


@given(LINES, st.lists(st.integers(0, 600), max_size=10), st.booleans())
def test_any_bytes_cut_anywhere_are_the_same_messages(
    lines: list[bytes], cuts: list[int], complete: bool
) -> None:
    data = b"\n".join(lines) + b"\n" * complete
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    copy = LineCopy("client")
    records = [
        record for a, b in itertools.pairwise(places) for record in copy.take(data[a:b], 1.0)
    ]
    records += copy.finish("", 2.0)
    frames = [record.raw for record in records if isinstance(record, Frame)]
    *whole, rest = data.split(b"\n")
    # Blank lines are no messages; what is left at the end is kept as it is.
    assert frames == [line for line in whole if line not in (b"", b"\r")] + [rest] * bool(rest)


def test_a_line_that_is_too_long_is_told_and_the_next_is_read() -> None:
    copy = LineCopy("server", Limits(message_bytes=10))
    records = [*copy.take(b"x" * 30, 1.0), *copy.take(b"xx\n{}\n", 2.0)]
    trouble, frame = records
    assert isinstance(trouble, Trouble)
    assert (trouble.error, trouble.excerpt) == ("line-too-long", "x" * 30)
    assert isinstance(frame, Frame)
    assert frame.raw == b"{}"
