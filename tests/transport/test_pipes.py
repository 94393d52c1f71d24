"""Passing bytes on over real pipes: the same bytes, whatever they are and however they come."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.transport.proxy.pipes import chunks_of, widen, write_all

BOUND = 20.0


@contextmanager
def pipes(count: int) -> Iterator[list[tuple[int, int]]]:
    ends = [os.pipe() for _ in range(count)]
    try:
        yield ends
    finally:
        for end in (each for pair in ends for each in pair):
            try:
                os.close(end)
            except OSError:
                continue  # a test may have closed it already


def passed_through(pieces: list[bytes]) -> bytes:
    """What comes out at the other end of: a writer, a pipe, us, a pipe, a reader."""
    with pipes(3) as ((source, into), (out, sink), (gone, lives)):
        os.set_blocking(sink, False)
        widen(source)

        def write() -> None:
            for piece in pieces:
                write_all(into, piece)
            os.close(into)

        def forward() -> None:
            for chunk in chunks_of(source, gone, drain=False):
                write_all(sink, chunk, gone)
            os.close(sink)

        threads = [threading.Thread(target=each, daemon=True) for each in (write, forward)]
        for thread in threads:
            thread.start()
        got = b""
        while chunk := os.read(out, 7_001):
            got += chunk
        for thread in threads:
            thread.join(BOUND)
        assert lives
        return got


@given(st.lists(st.binary(max_size=5_000), max_size=12))
def test_any_bytes_in_any_pieces_come_out_as_they_went_in(pieces: list[bytes]) -> None:
    assert passed_through(pieces) == b"".join(pieces)


@pytest.mark.parametrize("piece", [b"\xff\xfe\x00" * 700_000, b"x" * 3_000_000, b"\n" * 200_000])
def test_more_than_any_pipe_holds_comes_out_as_it_went_in(piece: bytes) -> None:
    assert passed_through([piece, b"end"]) == piece + b"end"


def test_what_a_dead_server_left_is_still_read_but_not_waited_for() -> None:
    with pipes(2) as ((source, into), (gone, lives)):
        os.set_blocking(source, False)
        os.write(into, b"last words")  # and somebody keeps `into` open
        os.close(lives)
        assert b"".join(chunks_of(source, gone, drain=True)) == b"last words"
        os.write(into, b"more")
        assert list(chunks_of(source, gone, drain=False)) == []


def test_a_writer_does_not_wait_for_a_server_that_is_gone() -> None:
    with pipes(2) as ((_, sink), (gone, lives)):
        os.set_blocking(sink, False)
        os.close(lives)
        with pytest.raises(BrokenPipeError):
            write_all(sink, b"x" * 10_000_000, gone)


def test_what_is_no_pipe_stays_as_it_is() -> None:
    with open(os.devnull, "rb") as nowhere:  # noqa: PTH123 - a descriptor is all that is needed
        widen(nowhere.fileno())
