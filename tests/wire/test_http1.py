"""The readers of HTTP/1.1: tables of bytes and events, and of what is refused and why."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.errors import ErrorKind
from mcptest.wire.http1 import (
    EndOfMessage,
    RequestEvent,
    RequestHead,
    RequestReader,
    ResponseHead,
    ResponseReader,
)

LIMIT = 65_536
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def reader_of(data: bytes, pieces: int = 10_000) -> tuple[ResponseReader, list[Any]]:
    """A reader that was given `data` in pieces, and its events."""
    reader = ResponseReader("POST", LIMIT)
    events: list[Any] = []
    for start in range(0, len(data), pieces):
        events += reader.feed(data[start : start + pieces])
    return reader, events


def read(data: bytes, pieces: int, *, close: bool = False) -> list[Any]:
    reader, events = reader_of(data, pieces)
    if close:
        reader.finish()
        events.append(EndOfMessage.END)
    assert reader.fault is None
    return joined(events)


def joined(events: list[Any]) -> list[Any]:
    """Heads as tuples, and neighbouring pieces of body as one: cutting makes no difference."""
    result: list[Any] = []
    for event in events:
        if isinstance(event, ResponseHead):
            result.append((event.status, event.reason, event.headers))
            continue
        last = result[-1] if result else None
        if isinstance(event, bytes) and isinstance(last, bytes):
            result[-1] = last + event
        else:
            result.append(event)
    return result


READABLE: dict[str, tuple[bytes, list[Any]]] = {
    "length": (
        OK + b"Content-Length: 3\r\n\r\nabc",
        [(200, "OK", (("Content-Length", "3"),)), b"abc", EndOfMessage.END],
    ),
    "length zero": (
        OK + b"content-length:0\r\n\r\n",
        [(200, "OK", (("content-length", "0"),)), EndOfMessage.END],
    ),
    "chunked": (
        OK + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        [(200, "OK", (("Transfer-Encoding", "Chunked"),)), b"abc0123456789", EndOfMessage.END],
    ),
    "trailers": (
        CHUNKED + b"1\r\na\r\n0\r\nX: y\r\n\r\n",
        [(200, "OK", (("Transfer-Encoding", "chunked"),)), b"a", EndOfMessage.END],
    ),
    "no content": (b"HTTP/1.1 204\r\n\r\n", [(204, "", ()), EndOfMessage.END]),
    "interim": (
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
        [(103, "Early", (("Link", "x"),)), (204, "N", ()), EndOfMessage.END],
    ),
    "values are trimmed and kept": (
        b"HTTP/1.1 204 \r\nA:  b c\t \r\na: \r\nL: \xe9\r\n\r\n",
        [(204, "", (("A", "b c"), ("a", ""), ("L", "é"))), EndOfMessage.END],
    ),
}


@pytest.mark.parametrize("case", READABLE)
@pytest.mark.parametrize("pieces", [1, 2, 5, 1000])
def test_a_response_is_read_the_same_however_it_is_cut(case: str, pieces: int) -> None:
    data, expected = READABLE[case]
    assert read(data, pieces) == expected


def test_a_body_without_length_ends_with_the_connection() -> None:
    assert read(OK + b"\r\nabc", 2, close=True) == [(200, "OK", ()), b"abc", EndOfMessage.END]


def test_what_follows_the_response_is_kept_apart() -> None:
    reader, _ = reader_of(OK + b"Content-Length: 1\r\n\r\nabc")
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
    assert reader_of(data)[0].keep_alive is kept


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
    "an unknown coding": (
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        "unsupported Transfer-Encoding",
    ),
    "chunked in HTTP/1.0": (
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "unsupported Transfer-Encoding",
    ),
    "a chunk size that is none": (CHUNKED + b"xyz\r\n", "chunk's size is 'x"),
    "a signed chunk size": (CHUNKED + b"+1\r\na\r\n", "'+"),
    "an endless chunk size": (CHUNKED + b"1;" + b"x" * 5000, "chunk's size"),
    "a chunk longer than its size": (CHUNKED + b"1\r\nab\r\n", "longer than its size"),
    "a trailer that is none": (CHUNKED + b"0\r\nnonsense\r\n\r\n", "not a header"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("pieces", [1, 10_000])
def test_what_is_no_proper_http_is_refused_with_the_reason(case: str, pieces: int) -> None:
    data, why = REFUSED[case]
    fault = reader_of(data, pieces)[0].fault
    assert fault is not None
    assert fault.kind is ErrorKind.BAD_HTTP
    assert why in fault.detail


CUT: list[tuple[bytes, str]] = [
    (b"", "before the response"),
    (b"HTTP/1.1 20", "after 11 bytes of the head"),
    (OK + b"Content-Length: 5\r\n\r\nab", "3 bytes before the end that Content-Length"),
    (CHUNKED + b"5\r\nab", "before the last chunk"),
    (CHUNKED + b"1\r\na\r\n", "before the last chunk"),
]


@pytest.mark.parametrize(("data", "why"), CUT)
def test_a_response_that_is_cut_off_is_told_from_a_whole_one(data: bytes, why: str) -> None:
    reader, _ = reader_of(data)
    reader.finish()
    assert reader.fault is not None
    assert reader.fault.kind is ErrorKind.TRUNCATED
    assert why in reader.fault.detail


@pytest.mark.parametrize(
    "endless", [b"X: " + b"y" * 100 + b"\r\n", b"y" * 100, b"\r\nHTTP/1.1 100 Continue\r\n"]
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
    reader, events = reader_of(CHUNKED + b"1\r\na\r\nzz\r\n")
    assert events[1:] == [b"a"]
    assert reader.fault is not None
    assert reader.feed(b"more") == []


def test_trailers_without_end_are_refused_at_the_limit() -> None:
    reader = ResponseReader("POST", header_bytes=1000)
    reader.feed(CHUNKED + b"0\r\n")
    for _ in range(1000):
        reader.feed(b"X: y\r\n")
    assert reader.fault is not None
    assert reader.fault.kind is ErrorKind.HEADERS_TOO_LARGE


# -- requests ----------------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
FOUR = (
    b"POST /mcp?a=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: \xe4 y \r\n\r\nhello"
    b"\r\nPUT /b HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\nabc\r\n2 \r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    b"GET /c HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
    b"GET /d HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: Keep-Alive, close\r\n\r\n"
)


def post(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join((b"POST / HTTP/1.1", b"Host: localhost", *lines, b"", body))


def pulled(reader: RequestReader, *pieces: bytes) -> list[RequestEvent]:
    """All events, with the pieces of each body joined."""
    events: list[RequestEvent] = []
    for piece in pieces:
        reader.feed(piece)
        while (event := reader.next_event()) is not None:
            if isinstance(event, bytes) and events and isinstance(events[-1], bytes):
                events[-1] += event
            else:
                events.append(event)
    return events


def requests_of(*pieces: bytes) -> list[tuple[str, str, bytes, bool]]:
    """Method, target, body and whether the connection is kept, of requests without a fault."""
    reader = RequestReader(LIMIT)
    requests, body = [], b""
    head: RequestHead | None = None
    for event in pulled(reader, *pieces):
        if isinstance(event, RequestHead):
            head = event
        elif isinstance(event, bytes):
            body = event
        else:
            assert head is not None
            requests.append((head.method, head.target, body, head.keeps_connection))
            head, body = None, b""
    assert reader.fault is None
    assert reader.is_between_requests
    return requests


@given(st.lists(st.integers(0, len(FOUR)), max_size=20))
def test_requests_are_read_the_same_however_they_are_cut(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(FOUR)})
    assert requests_of(*(FOUR[a:b] for a, b in pairwise(places))) == [
        ("POST", "/mcp?a=1", b"hello", True),
        ("PUT", "/b", b"abcde", True),
        ("GET", "/c", b"", False),
        ("GET", "/d", b"", False),
    ]


def test_headers_of_a_request_are_kept_as_they_came() -> None:
    head = pulled(RequestReader(LIMIT), FOUR)[0]
    assert isinstance(head, RequestHead)
    assert head.headers == (("Host", "localhost"), ("Content-Length", "5"), ("X", "ä y"))
    assert head.header("host") == "localhost"


def test_a_request_is_not_begun_before_somebody_asks_for_it() -> None:
    reader = RequestReader(LIMIT)
    reader.feed(post() + b"nonsense\r\n\r\n")
    assert isinstance(reader.next_event(), RequestHead)
    assert reader.next_event() is EndOfMessage.END
    assert reader.fault is None
    assert reader.next_event() is None
    assert reader.fault is not None


@pytest.mark.parametrize(
    ("start", "wanted"), [(b"POST / HTTP/1.1\r\n", True), (b"POST / HTTP/1.0\r\n", False)]
)
def test_only_a_modern_client_waits_to_be_asked_for_its_body(start: bytes, wanted: bool) -> None:
    reader = RequestReader(LIMIT)
    reader.feed(start + HOST + b"Content-Length: 2\r\nExpect: 100-Continue\r\n\r\n")
    head = reader.next_event()
    assert isinstance(head, RequestHead)
    assert head.expects_continue is wanted
    reader.feed(b"ab")
    assert (reader.next_event(), reader.next_event()) == (b"ab", EndOfMessage.END)


def test_a_minor_version_above_ours_is_read_like_ours() -> None:
    assert requests_of(b"GET / HTTP/1.9\r\n" + HOST + b"\r\n") == [("GET", "/", b"", True)]


UNREADABLE: dict[str, tuple[bytes, int, str]] = {
    "tls": (b"\x16\x03\x01\x02\r\n\r\n", 400, "the request line is"),
    "no version": (b"GET /\r\n\r\n", 400, "the request line is"),
    "a word as version": (b"GET / HTML\r\n" + HOST + b"\r\n", 400, "the request line is"),
    "two spaces": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400, "the request line is"),
    "a method that is none": (b"G(T / HTTP/1.1\r\n" + HOST + b"\r\n", 400, "the request line is"),
    "a control code in the target": (b"GET /\t HTTP/1.1\r\n\r\n", 400, "the request line is"),
    "an absolute target": (b"GET http://a/ HTTP/1.1\r\n" + HOST + b"\r\n", 400, "is not a path"),
    "a tunnel": (b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"\r\n", 400, "is not a path"),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "is not a path"),
    "HTTP/2": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505, "only HTTP/1.1"),
    "HTTP/0.9 by its number": (b"GET / HTTP/0.9\r\n\r\n", 505, "only HTTP/1.1"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "Host header is missing"),
    "two hosts": (post(b"Host: evil.example"), 400, "the request has 2 Host headers"),
    "two hosts in HTTP/1.0": (b"GET / HTTP/1.0\r\n" + HOST * 2 + b"\r\n", 400, "2 Host headers"),
    "a header in two lines": (post(b"A: b", b" c"), 400, "folded"),
    "a space before the colon": (post(b"Content-Length : 1"), 400, "not a header"),
    "a control code in a header": (post(b"A: b\x01"), 400, "not a header"),
    "a lone return in a header": (post(b"A: b\rC: d"), 400, "carriage return"),
    "lone newlines": (b"GET / HTTP/1.1\nHost: a\n\n", 400, "carriage return"),
    "length and chunks": (
        post(b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        400,
        "both Transfer-Encoding and Content-Length",
    ),
    "two lengths": (post(b"Content-Length: 1", b"Content-Length: 2"), 400, "twice"),
    "chunks twice": (
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        400,
        "twice",
    ),
    "chunks that are not last": (
        post(b"Transfer-Encoding: chunked, gzip"),
        400,
        "unsupported Transfer-Encoding",
    ),
    "chunks with a tail": (
        post(b"Transfer-Encoding: chunked;q=1"),
        400,
        "unsupported Transfer-Encoding",
    ),
    "chunks in HTTP/1.0": (
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "unsupported Transfer-Encoding",
    ),
    "a signed length": (post(b"Content-Length: +1"), 400, "Content-Length is '+1'"),
    "a length of letters": (post(b"Content-Length: many"), 400, "Content-Length is 'many'"),
    "a length beyond the limit": (post(b"Content-Length: 101"), 413, "larger than 100 bytes"),
    "a head beyond the limit": (post(b"A: " + b"b" * LIMIT), 431, "larger than"),
}


@pytest.mark.parametrize("case", UNREADABLE)
@pytest.mark.parametrize("size", [1, 100_000])
def test_nobody_acts_on_a_request_that_can_not_be_trusted(case: str, size: int) -> None:
    data, status, why = UNREADABLE[case]
    reader = RequestReader(LIMIT, body_bytes=100)
    pieces = [data] if size > 1 or len(data) > 1000 else [bytes([byte]) for byte in data]
    assert pulled(reader, *pieces) == []
    assert reader.fault is not None
    assert reader.refusal_status == status
    assert why in reader.fault.detail


BAD_CHUNKS: dict[str, tuple[bytes, int, str]] = {
    "no size": (b"zz\r\n", 400, "a chunk's size is"),
    "a space before the size": (b" 1\r\na\r\n", 400, "a chunk's size is"),
    "a lone newline in an extension": (b"1;a\nb\r\na\r\n", 400, "a chunk's size is"),
    "a chunk longer than its size": (b"1\r\nab\r\n", 400, "longer than its size"),
    "a huge chunk": (b"fffffff\r\n", 413, "larger than 100 bytes"),
    "many small chunks": (b"1\r\na\r\n" * 101, 413, "larger than 100 bytes"),
    "a trailer that is none": (b"0\r\nnonsense\r\n\r\n", 400, "not a header"),
    "trailers without end": (b"0\r\n" + b"A: b\r\n" * LIMIT, 431, "headers and trailers"),
}


@pytest.mark.parametrize("case", BAD_CHUNKS)
@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_body_in_chunks_is_read_no_further_than_it_can_be_trusted(case: str, size: int) -> None:
    data, status, why = BAD_CHUNKS[case]
    reader = RequestReader(LIMIT, body_bytes=100)
    pieces = [data] if size > 1 or len(data) > 1000 else [bytes([byte]) for byte in data]
    events = pulled(reader, post(b"Transfer-Encoding: chunked"), *pieces)
    assert isinstance(events[0], RequestHead)
    assert EndOfMessage.END not in events
    assert reader.fault is not None
    assert reader.refusal_status == status
    assert why in reader.fault.detail


def test_a_request_with_bad_framing_is_known_to_whoever_records_it() -> None:
    reader = RequestReader(LIMIT, body_bytes=100)
    assert pulled(reader, post(b"Content-Length: 101")) == []
    assert reader.head is not None
    assert reader.head.method == "POST"


@given(st.binary(max_size=300))
def test_any_bytes_are_requests_or_have_a_fault(data: bytes) -> None:
    reader = RequestReader(LIMIT, body_bytes=100)
    pulled(reader, data + b"\r\n\r\n")
    assert reader.fault is None or reader.refusal_status in {400, 413, 431, 505}


def test_what_is_held_of_an_endless_head_is_bounded() -> None:
    reader = RequestReader(1000)
    for _ in range(1000):
        reader.feed(b"X: y\r\n" * 10)
        assert reader.next_event() is None
        assert reader.held <= 1000 + 60
    assert reader.fault is not None
    assert reader.refusal_status == 431
