"""The response reader: one table of bytes and events, one of what is refused and why."""

from __future__ import annotations

import pytest

from mcptest.model.errors import ErrorKind
from mcptest.wire.fault import WireError
from mcptest.wire.http1 import End, Event, Head, ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"


def read(data: bytes, pieces: int, *, method: str = "POST", close: bool = False) -> list[Event]:
    reader = ResponseReader(method)
    events: list[Event] = []
    for start in range(0, len(data), pieces):
        events += reader.feed(data[start : start + pieces])
        if reader.fault is not None:
            raise reader.fault
    if close:
        reader.finish()
        events.append(End.END)
    return joined(events)


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring pieces of body as one, so that cutting makes no difference."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, bytes) and isinstance(last, bytes):
            result[-1] = last + event
        else:
            result.append(event)
    return result


READABLE: dict[str, tuple[bytes, list[Event]]] = {
    "length": (
        OK + b"Content-Length: 3\r\n\r\nabc",
        [Head(200, "OK", (("Content-Length", "3"),)), b"abc", End.END],
    ),
    "length zero": (
        OK + b"content-length:0\r\n\r\n",
        [Head(200, "OK", (("content-length", "0"),)), End.END],
    ),
    "chunked": (
        OK + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        [Head(200, "OK", (("Transfer-Encoding", "Chunked"),)), b"abc0123456789", End.END],
    ),
    "trailers": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n",
        [Head(200, "OK", (("Transfer-Encoding", "chunked"),)), b"a", End.END],
    ),
    "no content": (b"HTTP/1.1 204\r\n\r\n", [Head(204, "", ()), End.END]),
    "interim": (
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
        [Head(103, "Early", (("Link", "x"),)), Head(204, "N", ()), End.END],
    ),
    "values are trimmed and kept": (
        b"HTTP/1.1 204 \r\nA:  b c\t \r\na: \r\nL: \xe9\r\n\r\n",
        [Head(204, "", (("A", "b c"), ("a", ""), ("L", "é"))), End.END],
    ),
}


@pytest.mark.parametrize("case", READABLE)
@pytest.mark.parametrize("pieces", [1, 2, 5, 1000])
def test_a_response_is_read_the_same_however_it_is_cut(case: str, pieces: int) -> None:
    data, expected = READABLE[case]
    assert read(data, pieces) == expected


def test_a_body_without_length_ends_with_the_connection() -> None:
    assert read(OK + b"\r\nabc", 2, close=True) == [Head(200, "OK", ()), b"abc", End.END]


def test_what_follows_the_response_is_kept_apart() -> None:
    reader = ResponseReader("POST")
    reader.feed(OK + b"Content-Length: 1\r\n\r\nabc")
    assert reader.rest == b"bc"


KEPT_ALIVE = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
    (b"HTTP/1.1 200 OK\r\n\r\n", False),
]


@pytest.mark.parametrize(("data", "kept"), KEPT_ALIVE)
def test_a_connection_is_used_again_only_where_the_response_allows_it(
    data: bytes, kept: bool
) -> None:
    reader = ResponseReader("POST")
    reader.feed(data)
    assert reader.keep_alive is kept


REFUSED: dict[str, tuple[bytes, str]] = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9\r\n", "not HTTP"),
    "HTML alone": (b"<html>\n</html>", "not HTTP"),
    "HTTP/2": (b"HTTP/2 200\r\n\r\n", "status line"),
    "a status of two digits": (b"HTTP/1.1 20 OK\r\n\r\n", "status line"),
    "a word as status": (b"HTTP/1.1 abc\r\n\r\n", "status line"),
    "status 099": (b"HTTP/1.1 099 Low\r\n\r\n", "status line"),
    "NUL in the status line": (b"HTTP/1.1 200 O\0K\r\n\r\n", "status line"),
    "switching protocols": (b"HTTP/1.1 101 Sw\r\n\r\n", "101"),
    "a folded header": (OK + b"A: b\r\n c\r\n\r\n", "folded"),
    "NUL in a header": (OK + b"A: b\0c\r\n\r\n", "NUL"),
    "a space before the colon": (OK + b"A : b\r\n\r\n", "not a header"),
    "no colon": (OK + b"nonsense\r\n\r\n", "not a header"),
    "an empty name": (OK + b": b\r\n\r\n", "not a header"),
    "a bare newline in the head": (OK + b"A: b\nC: d\r\n\r\n", "carriage return"),
    "bare newlines only": (b"HTTP/1.1 200 OK\nA: b\n\nbody", "carriage return"),
    "length and chunked": (
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "both Transfer-Encoding and Content-Length",
    ),
    "two lengths": (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "twice"),
    "the same length twice": (OK + b"Content-Length: 1\r\ncontent-length: 1\r\n\r\n", "twice"),
    "a list of lengths": (OK + b"Content-Length: 1, 1\r\n\r\n", "Content-Length is '1, 1'"),
    "a negative length": (OK + b"Content-Length: -1\r\n\r\n", "Content-Length is '-1'"),
    "a huge length": (OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", "Content-Length is"),
    "an unknown coding": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "can't be read"),
    "chunked in HTTP/1.0": (
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "can't be read",
    ),
    "a chunk size that is none": (
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "chunk's size is 'x",
    ),
    "a signed chunk size": (OK + b"Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n", "'+"),
    "an endless chunk size": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 5000,
        "chunk's size",
    ),
    "a chunk longer than its size": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "longer than its size",
    ),
    "a trailer that is none": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nnonsense\r\n\r\n",
        "not a header",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("pieces", [1, 10_000])
def test_what_is_no_proper_http_is_refused_with_the_reason(case: str, pieces: int) -> None:
    data, why = REFUSED[case]
    with pytest.raises(WireError) as caught:
        read(data, pieces)
    assert caught.value.kind is ErrorKind.BAD_HTTP
    assert why in caught.value.detail


CUT: list[tuple[bytes, str]] = [
    (b"", "before the response"),
    (b"HTTP/1.1 20", "after 11 bytes of the head"),
    (OK + b"Content-Length: 5\r\n\r\nab", "3 bytes before the end that Content-Length"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", "before the last chunk"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", "before the last chunk"),
]


@pytest.mark.parametrize(("data", "why"), CUT)
def test_a_response_that_is_cut_off_is_told_from_a_whole_one(data: bytes, why: str) -> None:
    reader = ResponseReader("POST")
    reader.feed(data)
    with pytest.raises(WireError) as caught:
        reader.finish()
    assert caught.value.kind is ErrorKind.TRUNCATED
    assert why in caught.value.detail


@pytest.mark.parametrize(
    "endless",
    [
        b"X: " + b"y" * 100 + b"\r\n",
        b"y" * 100,
        b"\r\nHTTP/1.1 100 Continue\r\n",
    ],
)
def test_headers_without_end_are_refused_at_the_limit(endless: bytes) -> None:
    reader = ResponseReader("POST", header_bytes=1000)
    reader.feed(b"HTTP/1.1 100 Continue\r\n")
    for _ in range(1000):
        reader.feed(endless)
        assert len(reader.rest) <= 1000 + len(endless)
    assert reader.fault is not None
    assert reader.fault.kind is ErrorKind.HEADERS_TOO_LARGE


def test_what_came_before_a_fault_is_not_lost() -> None:
    reader = ResponseReader("POST")
    events = reader.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n")
    assert events[1:] == [b"a"]
    assert reader.fault is not None
    assert reader.feed(b"more") == []


def test_trailers_without_end_are_refused_at_the_limit() -> None:
    reader = ResponseReader("POST", header_bytes=1000)
    reader.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    for _ in range(1000):
        reader.feed(b"X: y\r\n")
    assert reader.fault is not None
    assert reader.fault.kind is ErrorKind.HEADERS_TOO_LARGE
