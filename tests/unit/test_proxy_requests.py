"""Reading requests: the same events however the bytes were cut, and a status for what is wrong."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.transport.proxy_requests import RefusedRequest, RequestHead, RequestReader
from mcptest.wire.http1 import End

TWO = (
    b"POST /mcp?a=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: \xe4 y \r\n\r\nhello"
    b"\r\nPUT /b HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    b"GET /c HTTP/1.1\r\nConnection: Keep-Alive, close\r\n\r\n"
)


def events_of(*pieces: bytes) -> list[RequestHead | bytes | End]:
    """All events, with the pieces of each body joined."""
    reader = RequestReader()
    events: list[RequestHead | bytes | End] = []
    for piece in pieces:
        reader.feed(piece)
        while (event := reader.next()) is not None:
            if isinstance(event, bytes) and events and isinstance(events[-1], bytes):
                events[-1] += event
            else:
                events.append(event)
    assert reader.is_between_requests
    return events


def test_requests_come_out_as_they_went_in() -> None:
    first, body, end, second, chunks, _, third, last = events_of(TWO)
    assert isinstance(first, RequestHead)
    assert (first.method, first.target, first.modern) == ("POST", "/mcp?a=1", True)
    assert first.headers == (("Host", "localhost"), ("Content-Length", "5"), ("X", "ä y"))
    assert first.keeps_connection
    assert (body, end) == (b"hello", End.END)
    assert isinstance(second, RequestHead)
    assert not second.keeps_connection
    assert chunks == b"abc"
    assert isinstance(third, RequestHead)
    assert not third.keeps_connection
    assert last is End.END


@given(st.lists(st.integers(0, len(TWO)), max_size=20))
def test_how_the_bytes_were_cut_makes_no_difference(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(TWO)})
    pieces = [TWO[a:b] for a, b in itertools.pairwise(places)]
    assert events_of(*pieces) == events_of(TWO)


def test_an_empty_body_is_no_body() -> None:
    head, end = events_of(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    assert isinstance(head, RequestHead)
    assert end is End.END


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    reader = RequestReader()
    reader.feed(data + b"\r\n\r\n")
    try:
        while reader.next() is not None:
            pass
    except RefusedRequest as refused:
        assert refused.status in {400, 431}  # noqa: PT017 - refusing is only one of two ways


def test_a_head_over_the_limit_is_refused_before_its_end_has_come() -> None:
    reader = RequestReader(header_bytes=100)
    reader.feed(b"GET /" + b"a" * 200)
    with pytest.raises(RefusedRequest, match="larger than 100 bytes") as refused:
        reader.next()
    assert refused.value.status == 431
