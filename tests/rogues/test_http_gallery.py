"""Misbehaving HTTP servers: each costs one named trouble, in bounded time and memory."""

from __future__ import annotations

import gzip
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mcptest.core.capture import AnyRecord, Frame, HttpResponse, Note, SseEvent, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline, Limits
from mcptest.transport.http.transports import LegacySse
from tests.rogues.http_script import (
    LAST_CHUNK,
    PING,
    PONG,
    SSE_HEAD,
    WAIT,
    Script,
    Wire,
    always,
    ask,
    chunk,
    connected,
    messages,
    reply,
    serving,
    statuses,
    troubles,
    until_end,
)

SMALL = Limits(message_bytes=100_000, header_bytes=10_000)
HTML = b"<!doctype html><title>Oops</title><h1>It broke</h1>"


def after_request(*actions: Callable[[Wire], None]) -> Script:
    def script(wire: Wire) -> None:
        wire.request()
        for action in actions:
            action(wire)

    return script


def sends(data: bytes) -> Callable[[Wire], None]:
    return lambda wire: wire.send(data)


def for_ever(data: bytes) -> Callable[[Wire], None]:
    return lambda wire: wire.send_for_ever(data)


def stops_inside_the_body(wire: Wire) -> None:
    """Never finishes: the client has to hang up by its own clock."""
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
    wire.send(b"{")
    wire.wait_for_hang_up()


@dataclass(frozen=True)
class Rogue:
    script: Script
    kind: ErrorKind
    phrase: str
    status: int | None = 200
    complete: bool = False


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = gzip.compress(b"x" * 20_000_000)
SSE_BOMB = gzip.compress(b": comment\n\n" * 2_000_000)

GALLERY: dict[str, Rogue] = {
    "wrong content type": Rogue(
        always(reply(PONG, kind="text/plain")),
        ErrorKind.BAD_CONTENT_TYPE, "HTTP 200 with text/plain", complete=True,
    ),
    "no content type": Rogue(
        always(reply(PONG, kind=None)),
        ErrorKind.BAD_CONTENT_TYPE, "no content type", complete=True,
    ),
    "HTML page with status 200": Rogue(
        always(reply(HTML, kind="text/html")),
        ErrorKind.BAD_CONTENT_TYPE, "text/html", complete=True,
    ),
    "HTML page with status 500": Rogue(
        always(reply(HTML, "500 Internal Server Error", "text/html")),
        ErrorKind.HTTP_STATUS, "HTTP 500 Internal Server Error (text/html)", 500, complete=True,
    ),
    "401": Rogue(
        always(reply(b"", "401 Unauthorized", None, 'WWW-Authenticate: Bearer realm="x"\r\n')),
        ErrorKind.HTTP_STATUS, 'requires authorization: Bearer realm="x"', 401, complete=True,
    ),
    "404": Rogue(
        always(reply(b"no such page", "404 Not Found", "text/plain")),
        ErrorKind.HTTP_STATUS, "HTTP 404 Not Found", 404, complete=True,
    ),
    "503 without a body": Rogue(
        always(reply(b"", "503", None)),
        ErrorKind.HTTP_STATUS, "HTTP 503, without a body", 503, complete=True,
    ),
    "status 999": Rogue(
        always(reply(b"", "999 Whatever", None)),
        ErrorKind.HTTP_STATUS, "not an HTTP status", 999, complete=True,
    ),
    "an error page without end": Rogue(
        after_request(
            sends(b"HTTP/1.1 500 No\r\nContent-Type: text/html\r\n\r\n"), for_ever(b"x" * 65536)
        ),
        ErrorKind.HTTP_STATUS, "HTTP 500 No (text/html)", 500,
    ),
    "202 with a body": Rogue(
        always(reply(b"thanks", "202 Accepted", "text/plain")),
        ErrorKind.BAD_CONTENT_TYPE, "a 202 that should be empty has a body", 202, complete=True,
    ),
    "chunked, cut off": Rogue(
        after_request(sends(JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\"\r\n")),
        ErrorKind.BAD_HTTP, "longer than its size",
    ),
    "chunked, closed before the last chunk": Rogue(
        after_request(sends(JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(PONG))),
        ErrorKind.TRUNCATED, "before the last chunk",
    ),
    "chunk size is garbage": Rogue(
        after_request(sends(JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")),
        ErrorKind.BAD_HTTP, "chunk's size is 'zz'",
    ),
    "Content-Length too large": Rogue(
        after_request(sends(JSON_HEAD + b"Content-Length: 1000\r\n\r\n" + PONG)),
        ErrorKind.TRUNCATED, "bytes before the end that Content-Length announced",
    ),
    "Content-Length too small": Rogue(
        after_request(sends(JSON_HEAD + b"Content-Length: 10\r\n\r\n" + PONG)),
        ErrorKind.BAD_HTTP, "sent 26 bytes after the end of the response", complete=True,
    ),
    "Content-Length twice": Rogue(
        always(JSON_HEAD + b"Content-Length: 36\r\nContent-Length: 37\r\n\r\n" + PONG),
        ErrorKind.BAD_HTTP, "Content-Length appears twice",
    ),
    "Content-Length and chunked": Rogue(
        always(JSON_HEAD + b"Content-Length: 36\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ErrorKind.BAD_HTTP, "both Transfer-Encoding and Content-Length",
    ),
    "headers without end": Rogue(
        after_request(sends(b"HTTP/1.1 200 OK\r\n"), for_ever(b"X-Filler: " + b"y" * 80 + b"\r\n")),
        ErrorKind.HEADERS_TOO_LARGE, "larger than 10000 bytes", None,
    ),
    "one header without end": Rogue(
        after_request(sends(b"HTTP/1.1 200 OK\r\nX: "), for_ever(b"y" * 4096)),
        ErrorKind.HEADERS_TOO_LARGE, "larger than 10000 bytes", None,
    ),
    "interim responses without end": Rogue(
        after_request(for_ever(b"HTTP/1.1 100 Continue\r\n\r\n")),
        ErrorKind.HEADERS_TOO_LARGE, "larger than 10000 bytes", None,
    ),
    "body without end": Rogue(
        after_request(sends(JSON_HEAD + b"\r\n["), for_ever(b"1," * 20_000)),
        ErrorKind.BODY_TOO_LARGE, "larger than 100000 bytes",
    ),
    "chunks without end": Rogue(
        after_request(
            sends(JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"), for_ever(chunk(b"1," * 500))
        ),
        ErrorKind.BODY_TOO_LARGE, "larger than 100000 bytes",
    ),
    "SSE event over the limit": Rogue(
        after_request(sends(SSE_HEAD), for_ever(chunk(b"data: " + b"x" * 5000 + b"\n"))),
        ErrorKind.EVENT_TOO_LARGE, "event is larger than 100000 bytes",
    ),
    "SSE line without end": Rogue(
        after_request(sends(SSE_HEAD + chunk(b"data: ")), for_ever(chunk(b"x" * 5000))),
        ErrorKind.EVENT_TOO_LARGE, "event is larger than 100000 bytes",
    ),
    "SSE comment without end": Rogue(
        after_request(sends(SSE_HEAD + chunk(b":")), for_ever(chunk(b"x" * 5000))),
        ErrorKind.EVENT_TOO_LARGE, "event is larger than 100000 bytes",
    ),
    "SSE without a blank line at the end": Rogue(
        always(SSE_HEAD + chunk(b"data: " + PONG + b"\n") + LAST_CHUNK),
        ErrorKind.BAD_SSE, "the stream ended inside an event: 36 bytes", complete=True,
    ),
    "SSE cut off inside an event": Rogue(
        after_request(sends(SSE_HEAD + chunk(b"data: {"))),
        ErrorKind.CONNECTION_LOST, "7 bytes of an unfinished event: 'data: {'",
    ),
    "gzip bomb": Rogue(
        always(reply(BOMB, extra="Content-Encoding: gzip\r\n")),
        ErrorKind.DECOMPRESSION_BOMB, "unpack to more than 100000 bytes",
    ),
    "deflate bomb": Rogue(
        always(reply(zlib.compress(b"x" * 20_000_000), extra="Content-Encoding: deflate\r\n")),
        ErrorKind.DECOMPRESSION_BOMB, "unpack to more than 100000 bytes",
    ),
    "gzip bomb as an event stream": Rogue(
        always(reply(SSE_BOMB, kind="text/event-stream", extra="Content-Encoding: gzip\r\n")),
        ErrorKind.DECOMPRESSION_BOMB, "of gzip unpack to more than",
    ),
    "gzip that is none": Rogue(
        always(reply(PONG, extra="Content-Encoding: gzip\r\n")),
        ErrorKind.BAD_HTTP, "the gzip body is corrupt",
    ),
    "gzip cut off": Rogue(
        always(reply(gzip.compress(PONG)[:-8], extra="Content-Encoding: gzip\r\n")),
        ErrorKind.TRUNCATED, "the gzip body stops before its own end",
    ),
    "an unknown content coding": Rogue(
        always(reply(PONG, extra="Content-Encoding: br\r\n")),
        ErrorKind.BAD_HTTP, "Content-Encoding 'br', which was not requested",
    ),
    "redirect to another host": Rogue(
        always(reply(b"", "307 Away", None, "Location: http://other.example/mcp\r\n")),
        ErrorKind.REDIRECT_REFUSED, "to another server: http://other.example", 307, complete=True,
    ),
    "redirect to the metadata service": Rogue(
        always(reply(b"", "308 Away", None, "Location: http://169.254.169.254/latest\r\n")),
        ErrorKind.REDIRECT_REFUSED, "http://169.254.169.254", 308, complete=True,
    ),
    "redirect to a file": Rogue(
        always(reply(b"", "307 Away", None, "Location: file:///etc/passwd\r\n")),
        ErrorKind.REDIRECT_REFUSED, "only http and https are supported", 307, complete=True,
    ),
    "redirect that turns a POST into a GET": Rogue(
        always(reply(b"", "302 Found", None, "Location: /other\r\n")),
        ErrorKind.REDIRECT_REFUSED, "turn a POST into a GET", 302, complete=True,
    ),
    "redirect in a circle": Rogue(
        always(reply(b"", "307 Again", None, "Location: /mcp\r\n")),
        ErrorKind.REDIRECT_REFUSED, "more than 5 redirects", 307, complete=True,
    ),
    "reset inside the body": Rogue(
        after_request(sends(JSON_HEAD + b"Content-Length: 1000\r\n\r\n{"), Wire.reset),
        ErrorKind.CONNECTION_LOST, "the connection broke",
    ),
    "closes without an answer": Rogue(
        after_request(), ErrorKind.CONNECTION_LOST, "closed the connection without a response", None
    ),
    "closes inside the head": Rogue(
        after_request(sends(b"HTTP/1.1 200 O")), ErrorKind.TRUNCATED, "14 bytes of the head", None
    ),
    "garbage instead of HTTP": Rogue(
        after_request(sends(b"\x16\x03\x01\x02\x00 hello")), ErrorKind.BAD_HTTP, "not HTTP", None
    ),
    "HTTP/0.9": Rogue(after_request(sends(HTML)), ErrorKind.BAD_HTTP, "not HTTP", None),
    "a folded header": Rogue(
        always(JSON_HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n"),
        ErrorKind.BAD_HTTP, "folded over two lines", None,
    ),
    "NUL in a header": Rogue(
        always(JSON_HEAD + b"X: a\0b\r\nContent-Length: 0\r\n\r\n"),
        ErrorKind.BAD_HTTP, "NUL byte", None,
    ),
    "newlines without carriage returns": Rogue(
        always(b"HTTP/1.1 200 OK\nContent-Type: application/json\n\n" + PONG),
        ErrorKind.BAD_HTTP, "without a carriage return", None,
    ),
    "switches protocols": Rogue(
        always(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), ErrorKind.BAD_HTTP, "101", None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GALLERY)
def test_a_rogue_costs_one_named_trouble_and_the_next_call_is_fine(name: str) -> None:
    rogue = GALLERY[name]

    def script(wire: Wire) -> None:
        (rogue.script if wire.number == 1 else always(reply()))(wire)

    started = time.monotonic()
    with serving(script) as server, connected(server, limits=SMALL) as transport:
        stream = transport.send(PING, Deadline.after(WAIT))
        records = until_end(transport, stream)
        server.hang_up()
        assert messages(until_end(transport, transport.send(PING, Deadline.after(WAIT)))) == [PONG]
    assert time.monotonic() - started < WAIT
    assert [each.error for each in troubles(records)] == [rogue.kind.value]
    assert rogue.phrase in troubles(records)[0].detail
    assert statuses(records)[-1:] == ([] if rogue.status is None else [rogue.status])
    assert isinstance(records[-1], StreamEnd)
    assert records[-1].complete is rogue.complete
    assert sum(map(size_of, records)) < 20 * SMALL.message_bytes


def size_of(record: AnyRecord) -> int:
    if isinstance(record, Frame):
        return len(record.raw)
    if isinstance(record, Trouble):
        assert len(record.detail) < 1000
        assert len(record.excerpt) <= 200
        return len(record.detail) + len(record.excerpt)
    if isinstance(record, HttpResponse):
        return sum(len(name) + len(value) for name, value in record.headers)
    return 16


def test_the_excerpt_of_an_error_page_is_safe_to_print() -> None:
    page = b"\x1b[31m::error::<script>\x00\xff" + b"x" * 10_000
    (trouble,) = troubles(ask(always(reply(page, "500 X", "text/html"))))
    assert trouble.excerpt.startswith("\\x1b[31m")
    assert len(trouble.excerpt) <= 200


@pytest.mark.parametrize(
    "script",
    [
        Wire.wait_for_hang_up,
        after_request(stops_inside_the_body),
        after_request(sends(b"HTTP/1.1 2"), Wire.wait_for_hang_up),
    ],
    ids=["accepts and never answers", "slow body", "slow head"],
)
def test_silence_ends_with_the_deadline_and_not_later(script: Script) -> None:
    started = time.monotonic()
    records = ask(script, seconds=0.3)
    assert 0.3 <= time.monotonic() - started < WAIT
    assert not any(isinstance(each, StreamEnd) for each in records)


def test_a_slow_loris_does_not_stretch_the_deadline() -> None:
    def script(wire: Wire) -> None:
        wire.request()
        wire.send(SSE_HEAD)
        # As fast as the client takes them, one comment at a time: every read is a new record.
        while True:
            wire.send(chunk(b":\n"))

    started = time.monotonic()
    with serving(script) as server, connected(server) as transport:
        stream = transport.send(PING, Deadline.after(WAIT))
        deadline = Deadline.after(0.3)
        seen = 0
        while records := transport.receive(deadline):
            assert len(records) < 100_000
            seen += sum(isinstance(each, SseEvent) for each in records)
            if deadline.expired:
                break
        transport.abandon(stream)
    assert seen > 0
    assert time.monotonic() - started < WAIT


def test_invalid_utf8_in_an_event_reaches_the_record_as_it_came() -> None:
    records = ask(always(SSE_HEAD + chunk(b'data: "\xff\xfe"\n\n') + LAST_CHUNK))
    assert messages(records) == [b'"\xff\xfe"']
    assert troubles(records) == []


def test_an_answer_on_the_wrong_stream_is_recorded_where_it_came() -> None:
    """Two requests; the server swaps the answers. Who is meant is not the transport's business."""
    two = b'{"jsonrpc":"2.0","id":2,"result":{}}'

    def script(wire: Wire) -> None:
        while request := wire.request():
            wire.send(reply(two if b'"id":1,' in request.body else PONG))

    with serving(script) as server, connected(server) as transport:
        first = transport.send(PING, Deadline.after(WAIT))
        (frame,) = [each for each in until_end(transport, first) if isinstance(each, Frame)]
        assert (frame.stream, frame.raw) == (first, two)


def test_an_idle_connection_that_the_server_closed_is_not_used_again() -> None:
    def script(wire: Wire) -> None:
        wire.request()
        wire.send(reply())

    records: list[AnyRecord] = []
    with serving(script) as server, connected(server, records) as transport:
        for _ in range(5):
            stream = transport.send(PING, Deadline.after(WAIT))
            assert messages(until_end(transport, stream)) == [PONG]
        assert server.connections >= 5
    assert troubles(records) == []


def test_a_request_that_met_a_closing_connection_is_sent_again_once_and_noted() -> None:
    """The race proper: the server closes without having read the second request."""

    def script(wire: Wire) -> None:
        wire.request()
        wire.send(reply())
        if wire.number == 1:
            wire.wait_unread()
            return
        always(reply())(wire)

    records: list[AnyRecord] = []
    with serving(script) as server, connected(server, records) as transport:
        for _ in range(2):
            stream = transport.send(PING, Deadline.after(WAIT))
            assert messages(until_end(transport, stream)) == [PONG]
    notes = [each.text for each in records if isinstance(each, Note)]
    assert notes == ["stream 2: the server closed the idle connection; sent again on a new one"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what the peer has read")
def test_a_request_that_the_server_read_is_never_sent_again() -> None:
    """It may have been carried out: a tool that ends its server would end the next one, too."""

    def script(wire: Wire) -> None:
        wire.request()
        wire.send(reply())
        wire.request()

    with serving(script) as server, connected(server) as transport:
        stream = transport.send(PING, Deadline.after(WAIT))
        assert messages(until_end(transport, stream)) == [PONG]
        stream = transport.send(PING, Deadline.after(WAIT))
        (trouble,) = troubles(until_end(transport, stream))
        assert trouble.detail == "the server closed the connection without a response"
        assert server.connections == 1


def test_a_fresh_connection_that_closes_without_an_answer_is_not_tried_twice() -> None:
    with serving(after_request()) as server, connected(server) as transport:
        stream = transport.send(PING, Deadline.after(WAIT))
        (trouble,) = troubles(until_end(transport, stream))
        assert trouble.error == ErrorKind.CONNECTION_LOST.value
        assert server.connections == 1


def test_many_unfinished_bodies_together_are_bounded() -> None:
    def script(wire: Wire) -> None:
        wire.request()
        wire.send(JSON_HEAD + b"Content-Length: 99999\r\n\r\n" + b"x" * 90_000)
        wire.wait_for_hang_up()

    with serving(script) as server, connected(server, limits=SMALL) as transport:
        streams = [transport.send(PING, Deadline.after(WAIT)) for _ in range(6)]
        refused = []
        while len(refused) < len(streams) - 3:
            came = transport.receive(Deadline.after(WAIT))
            assert came
            refused += troubles(came)
    assert {each.error for each in refused} == {ErrorKind.BODY_TOO_LARGE.value}
    assert "unfinished responses hold more than 300000 bytes" in refused[0].detail


def test_a_server_that_does_not_read_gets_no_more_time_than_the_deadline() -> None:
    over = threading.Event()

    def script(wire: Wire) -> None:
        over.wait(WAIT)

    with serving(script) as server, connected(server) as transport:
        started = time.monotonic()
        with pytest.raises(PeerError, match="did not accept the request within") as caught:
            transport.send(b"x" * 30_000_000, Deadline.after(0.3))
        assert caught.value.kind is ErrorKind.TIMEOUT
        assert time.monotonic() - started < WAIT
        over.set()


LEGACY: dict[str, tuple[Script, ErrorKind, str]] = {
    "endpoint on another server": (
        always(SSE_HEAD + chunk(b"event: endpoint\ndata: http://other.example/m\n\n")),
        ErrorKind.ADDRESS_REFUSED, "is on another server",
    ),
    "endpoint that is no URL": (
        always(SSE_HEAD + chunk(b"event: endpoint\ndata: file:///etc/passwd\n\n")),
        ErrorKind.ADDRESS_REFUSED, "only http and https are supported",
    ),
    "no event stream": (
        always(reply(HTML, kind="text/html")), ErrorKind.BAD_CONTENT_TYPE, "text/html",
    ),
    "not found": (always(reply(b"", "404 Not Found", None)), ErrorKind.HTTP_STATUS, "HTTP 404"),
    "ends without an endpoint": (
        always(SSE_HEAD + LAST_CHUNK), ErrorKind.CLOSED, "before it sent an endpoint",
    ),
    "never names an endpoint": (
        after_request(sends(SSE_HEAD), Wire.wait_for_hang_up),
        ErrorKind.TIMEOUT, "the server sent a response but no endpoint event",
    ),
    "never answers": (Wire.wait_for_hang_up, ErrorKind.TIMEOUT, "the server sent no response"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGACY)
def test_a_rogue_of_the_old_transport_is_named_when_it_is_opened(name: str) -> None:
    script, kind, phrase = LEGACY[name]
    with serving(script) as server:
        transport = LegacySse(server.url, sink=lambda record: None)
        seconds = 0.3 if kind is ErrorKind.TIMEOUT else WAIT
        with pytest.raises(PeerError) as caught:
            transport.open(Deadline.after(seconds))
        transport.close(Deadline.after(WAIT))
    assert caught.value.kind is kind
    assert phrase in caught.value.message


def test_what_came_of_an_unfinished_answer_is_known_when_the_time_is_over() -> None:
    with serving(after_request(stops_inside_the_body)) as server, connected(server) as transport:
        assert transport.partial() == ""
        transport.send(PING, Deadline.after(WAIT))
        deadline = Deadline.after(WAIT)
        while not transport.partial() and not deadline.expired:
            transport.receive(deadline.within(0.05))
        assert transport.partial() == "the server sent 1 bytes of an unfinished response"
