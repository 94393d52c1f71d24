"""Lines out of bytes, however the bytes were cut up."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.wire.lines import Line, LineReader, LineTooLong


def feed_all(reader: LineReader, chunks: list[bytes]) -> list[Line]:
    return [line for chunk in chunks for line in reader.feed(chunk)]


@pytest.mark.parametrize(
    ("chunks", "lines", "rest"),
    [
        ([b"a\nb\n"], [b"a", b"b"], b""),
        ([b"a", b"b\n", b"c"], [b"ab"], b"c"),
        ([b"a\r\n"], [b"a\r"], b""),
        ([b"a\n", b"\n", b"b\n"], [b"a", b"b"], b""),
        ([b"\n\r\n\n"], [], b""),
        ([b"a", b"", b"\nb", b"\n"], [b"a", b"b"], b""),
        ([b"\r", b"\n"], [], b""),
        ([b"a\rb\n"], [b"a\rb"], b""),
        ([b"last"], [], b"last"),
        ([], [], b""),
    ],
)
def test_lines_are_split_at_newlines_only(
    chunks: list[bytes], lines: list[bytes], rest: bytes
) -> None:
    reader = LineReader(100)
    assert feed_all(reader, chunks) == lines
    assert reader.finish() == rest


def test_blank_lines_are_skipped() -> None:
    reader = LineReader(100)
    assert feed_all(reader, [b"\na\n\r\n", b"\n", b"b\n"]) == [b"a", b"b"]


def test_a_line_of_exactly_the_limit_is_taken() -> None:
    assert LineReader(5).feed(b"12345\n") == [b"12345"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_line_over_the_limit_is_refused_once_and_the_next_line_is_read(size: int) -> None:
    stream = b"ok\n" + b"x" * 50 + b"\nfine\n"
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    first, refused, last = feed_all(LineReader(5, head_bytes=3), chunks)
    assert (first, last) == (b"ok", b"fine")
    assert isinstance(refused, LineTooLong)
    assert refused.head == b"xxx"
    assert 5 < refused.size <= 50


def test_an_endless_line_is_refused_before_it_ends_and_is_not_kept() -> None:
    reader = LineReader(1000)
    lines = feed_all(reader, [b"x" * 300] * 100)
    (refused,) = lines
    assert isinstance(refused, LineTooLong)
    assert (refused.size, refused.head) == (1200, b"x" * 200)
    assert reader.finish() == b""


def test_a_refused_line_without_newline_leaves_no_rest() -> None:
    reader = LineReader(3)
    (refused,) = reader.feed(b"long line")
    assert isinstance(refused, LineTooLong)
    assert (refused.size, refused.head) == (9, b"long line")
    assert reader.finish() == b""


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=50), st.integers(1, 30))
def test_chunking_never_changes_the_lines(stream: bytes, sizes: list[int], limit: int) -> None:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    chunks.append(stream[at:])
    whole, parts = LineReader(limit), LineReader(limit)
    expected, got = whole.feed(stream), feed_all(parts, chunks)
    assert [_shape(line) for line in got] == [_shape(line) for line in expected]
    assert parts.finish() == whole.finish()


def _shape(line: Line) -> bytes | str:
    return line if isinstance(line, bytes) else "too long"


def test_reading_byte_by_byte_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        reader = LineReader(1 << 24)
        started = time.thread_time()
        for _ in range(count):
            reader.feed(b"x")
        assert reader.feed(b"\n") == [b"x" * count]
        return time.thread_time() - started

    seconds(1000)
    # ten times the bytes: a quadratic reader takes a hundred times as long
    assert min(seconds(100_000) for _ in range(3)) < 40 * min(seconds(10_000) for _ in range(3))
