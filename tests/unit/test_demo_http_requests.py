"""The demo's HTTP reader: the same requests however the bytes are cut, and nothing unbounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptest.peer.demo.http_requests import MAX_HEAD_BYTES, BadRequest, Request, RequestReader

GET = b"GET /mcp?x=1 HTTP/1.1\r\nHost: localhost\r\nX-Two: a\r\nx-two: b \r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


def read_all(data: bytes, cuts: list[int]) -> list[Request]:
    reader = RequestReader()
    requests = []
    places = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(places):
        reader.feed(data[start:end])
        while (request := reader.next()) is not None:
            requests.append(request)
    assert not reader.in_progress
    return requests


@settings(deadline=None)
@given(st.lists(st.integers(0, len(GET + POST + CHUNKED + GET)), max_size=8))
def test_cuts_between_bytes_do_not_matter(cuts: list[int]) -> None:
    requests = read_all(GET + POST + CHUNKED + GET, cuts)
    assert [(r.method, r.path, r.body) for r in requests] == [
        ("GET", "/mcp", b""),
        ("POST", "/mcp", b"hello"),
        ("POST", "/mcp", b"hello"),
        ("GET", "/mcp", b""),
    ]
    assert requests[0].query == "x=1"
    assert requests[0].header("x-two") == "a, b"


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_requests_or_a_reason(data: bytes) -> None:
    reader = RequestReader()
    reader.feed(data + b"\r\n\r\n")
    status = 200
    try:
        while reader.next() is not None:
            pass
    except BadRequest as problem:
        status = problem.status
    assert status in {200, 400, 413, 431, 505}


@pytest.mark.parametrize(
    ("head", "keep"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_unless_said_otherwise(head: bytes, keep: bool) -> None:
    assert read_all(head, [])[0].keep_alive is keep


def test_an_endless_head_is_refused_in_time() -> None:
    reader = RequestReader()

    def read_on() -> None:
        for _ in range(MAX_HEAD_BYTES):
            reader.feed(b"X: y\r\n" * 100)
            reader.next()

    with pytest.raises(BadRequest, match="head"):
        read_on()
    assert reader.buffered < MAX_HEAD_BYTES + 1000


def test_a_client_that_wants_to_be_asked_for_its_body_is_known() -> None:
    reader = RequestReader()
    head, _, body = POST.partition(b"\r\n\r\n")
    reader.feed(head + b"\r\nExpect: 100-continue\r\n\r\n")
    assert reader.next() is None
    assert reader.continue_wanted
    reader.feed(body)
    request = reader.next()
    assert request is not None
    assert request.body == b"hello"
