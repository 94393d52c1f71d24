"""Streamable HTTP against small honest servers: streams, pools, resumption, headers, records."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pytest

from mcptest.core.capture import (
    AnyRecord,
    Frame,
    HttpRequest,
    HttpResponse,
    Note,
    Sse,
    SseEvent,
    StreamEnd,
)
from mcptest.core.errors import ErrorKind, PeerError, UsageError
from mcptest.core.limits import Deadline
from mcptest.transport.http.transports import StreamableHttp
from tests.rogues.http_script import (
    LAST_CHUNK,
    PING,
    PONG,
    SSE_HEAD,
    WAIT,
    SeenRequest,
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


def soon() -> Deadline:
    return Deadline.after(WAIT)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_a_json_answer_is_a_response_a_message_and_an_end() -> None:
    response, frame, end = ask(always(reply()))
    assert isinstance(response, HttpResponse)
    assert (response.stream, response.status) == (1, 200)
    assert response.header("content-TYPE") == "application/json"
    assert isinstance(frame, Frame)
    assert (frame.sender, frame.raw, frame.stream, frame.sse) == ("server", PONG, 1, None)
    assert isinstance(end, StreamEnd)
    assert end.complete


def test_events_are_messages_with_their_fields_and_the_rest_is_told_too() -> None:
    stream = (
        b"id: 1\nretry: 500\ndata:\n\n: still here\n\n"
        b"event: message\nid: 2\ndata: {}\n\nevent: other\ndata: x\n\ndata: []\n\n"
    )
    records = ask(always(SSE_HEAD + chunk(stream) + LAST_CHUNK))
    assert [without_time(each) for each in records[1:]] == [
        SseEvent(stream=1, sse=Sse(id="1", retry=500)),
        SseEvent(stream=1, comment="still here"),
        Frame(sender="server", raw=b"{}", stream=1, sse=Sse(event="message", id="2")),
        SseEvent(stream=1, sse=Sse(event="other"), data="x"),
        Frame(sender="server", raw=b"[]", stream=1),
        StreamEnd(stream=1),
    ]


def without_time(record: Any) -> AnyRecord:
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    made: AnyRecord = type(record)(**{**fields, "t": 0.0})
    return made


@pytest.mark.parametrize("status", ["202 Accepted", "204 No Content", "200 OK"])
def test_an_empty_success_is_a_response_and_an_end(status: str) -> None:
    empty = f"HTTP/1.1 {status}\r\n" + ("" if "204" in status else "Content-Length: 0\r\n")
    records = ask(always(empty.encode() + b"\r\n"))
    assert [type(each) for each in records] == [HttpResponse, StreamEnd]


def test_the_json_body_of_an_error_status_is_a_message() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    records = ask(always(reply(error, "404 Not Found")))
    assert statuses(records) == [404]
    assert messages(records) == [error]
    assert troubles(records) == []


def test_an_event_below_an_error_status_is_a_message_as_it_is_in_a_json_body() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    events = b"event: message\ndata: " + error + b"\n\n"
    records = ask(always(reply(events, "404 Not Found", kind="text/event-stream")))
    assert statuses(records) == [404]
    assert messages(records) == [error]
    assert troubles(records) == []


def test_an_event_stream_below_an_error_status_that_says_nothing_is_a_refusal() -> None:
    records = ask(always(reply(b": nothing\n\n", "404 Not Found", kind="text/event-stream")))
    assert messages(records) == []
    (refused,) = troubles(records)
    assert "HTTP 404" in refused.detail


def test_the_capture_has_both_sides_in_order() -> None:
    records: list[AnyRecord] = []
    with serving(always(reply())) as server, connected(server, records) as transport:
        until_end(transport, transport.send(PING, soon()))
    assert [type(each) for each in records] == [HttpRequest, Frame, HttpResponse, Frame, StreamEnd]
    request, sent = records[:2]
    assert isinstance(request, HttpRequest)
    assert (request.method, request.url) == ("POST", server.url)
    assert isinstance(sent, Frame)
    assert (sent.sender, sent.raw, sent.stream) == ("client", PING, 1)
    assert [each.t for each in records] == sorted(each.t for each in records)


def test_headers_are_recorded_as_they_are_sent() -> None:
    seen: list[SeenRequest] = []
    records: list[AnyRecord] = []
    with serving(remembering(seen)) as server, connected(server, records) as transport:
        until_end(transport, transport.send(PING, soon(), {"X-A": "1", "mcp-session-id": "s"}))
    (request,) = [each for each in records if isinstance(each, HttpRequest)]
    lines = [f"{name}: {value}" for name, value in request.headers]
    assert seen[0].raw_head.decode().split("\r\n") == ["POST /mcp HTTP/1.1", *lines]
    assert seen[0].headers["accept"] == "application/json, text/event-stream"
    assert seen[0].headers["content-type"] == "application/json"
    assert seen[0].headers["accept-encoding"] == "identity"
    assert seen[0].body == PING


def remembering(seen: list[SeenRequest], answer: bytes | None = None) -> Any:
    def script(wire: Wire) -> None:
        while request := wire.request():
            seen.append(request)
            wire.send(answer or reply())

    return script


def test_a_caller_may_change_or_drop_every_header() -> None:
    seen: list[SeenRequest] = []
    with serving(remembering(seen)) as server, connected(server) as transport:
        odd = {"accept": "", "HOST": "evil.example", "Content-Type": "text/plain"}
        until_end(transport, transport.send(PING, soon(), odd))
    assert "accept" not in seen[0].headers
    assert seen[0].headers["host"] == "evil.example"
    assert seen[0].headers["content-type"] == "text/plain"
    assert seen[0].raw_head.lower().count(b"\r\nhost:") == 1


def test_the_users_own_headers_go_with_every_request_and_the_calls_win() -> None:
    seen: list[SeenRequest] = []
    with serving(remembering(seen)) as server:
        transport = StreamableHttp(
            server.url, sink=lambda record: None, headers={"Authorization": "Bearer x", "X": "own"}
        )
        until_end(transport, transport.send(PING, soon()))
        until_end(transport, transport.send(PING, soon(), {"x": "call"}))
        transport.close(soon())
    assert [each.headers["authorization"] for each in seen] == ["Bearer x", "Bearer x"]
    assert [each.headers["x"] for each in seen] == ["own", "call"]


@pytest.mark.parametrize(
    ("name", "value"), [("X", "a\r\nY: b"), ("X", "\0"), ("X Y", "a"), ("", "a")]
)
def test_a_header_that_would_start_another_is_refused(name: str, value: str) -> None:
    transport = StreamableHttp("http://127.0.0.1:1/", sink=lambda record: None)
    with pytest.raises(UsageError):
        transport.send(PING, soon(), {name: value})
    transport.close(soon())


def test_two_hundred_posts_at_once_share_a_bounded_pool() -> None:
    """The server holds the first 32 answers back until all 32 have been asked at once."""
    gate = threading.Barrier(32, timeout=WAIT)
    first = threading.local()

    def script(wire: Wire) -> None:
        while request := wire.request():
            if not hasattr(first, "done"):
                first.done = True
                gate.wait()
            wire.send(reply(request.body))

    bodies = [b'{"id":%d}' % number for number in range(200)]
    records: list[AnyRecord] = []
    with serving(script) as server, connected(server, records) as transport:
        streams = [transport.send(body, soon()) for body in bodies]
        answers = answers_by_stream(transport, set(streams))
        assert server.connections == 32
    assert streams == list(range(1, 201))
    assert [answers[stream] for stream in streams] == [[body] for body in bodies]


def answers_by_stream(transport: StreamableHttp, open_streams: set[int]) -> dict[int, list[bytes]]:
    answers: dict[int, list[bytes]] = {stream: [] for stream in open_streams}
    deadline = soon()
    while open_streams:
        came = transport.receive(deadline)
        assert came, f"nothing more came, still open: {open_streams}"
        for each in came:
            if isinstance(each, Frame) and each.stream is not None:
                answers[each.stream].append(each.raw)
            elif isinstance(each, StreamEnd):
                open_streams = open_streams - {each.stream}
    return answers


def test_one_connection_serves_many_requests_one_after_the_other() -> None:
    with serving(always(reply())) as server, connected(server) as transport:
        for _ in range(20):
            until_end(transport, transport.send(PING, soon()))
        assert server.connections == 1


def test_interleaved_event_streams_are_kept_apart() -> None:
    """Three streams write in turns; each event is recorded under its own stream."""
    turn = threading.Barrier(3, timeout=WAIT)

    def script(wire: Wire) -> None:
        request = wire.request()
        assert request is not None
        wire.send(SSE_HEAD)
        for number in range(20):
            turn.wait()
            wire.send(chunk(b"id: %d\ndata: %b\n\n" % (number, request.body)))
        wire.send(LAST_CHUNK)

    with serving(script) as server, connected(server) as transport:
        bodies = {transport.send(body, soon()): body for body in (b"1", b"2", b"3")}
        answers = answers_by_stream(transport, set(bodies))
    assert answers == {stream: [body] * 20 for stream, body in bodies.items()}


def test_a_broken_stream_is_told_and_can_be_resumed_after_its_last_event() -> None:
    seen: list[SeenRequest] = []

    def script(wire: Wire) -> None:
        request = wire.request()
        assert request is not None
        seen.append(request)
        if request.method == "POST":
            wire.send(SSE_HEAD + chunk(b"id: 41\nretry: 10\ndata:\n\n"))
            return
        wire.send(SSE_HEAD + chunk(b"id: 42\ndata: " + PONG + b"\n\n") + LAST_CHUNK)

    with serving(script) as server, connected(server) as transport:
        records = until_end(transport, transport.send(PING, soon()))
        assert troubles(records)[0].error == ErrorKind.CONNECTION_LOST.value
        assert isinstance(records[-1], StreamEnd)
        assert not records[-1].complete
        stream = transport.request("GET", soon(), {"Mcp-Session-Id": "s", "Last-Event-ID": "41"})
        assert stream == 2
        assert messages(until_end(transport, stream)) == [PONG]
    assert [each.method for each in seen] == ["POST", "GET"]  # nothing was sent behind our back
    assert seen[1].headers["last-event-id"] == "41"
    assert seen[1].headers["accept"] == "text/event-stream"
    assert seen[1].headers["mcp-session-id"] == "s"
    assert "content-type" not in seen[1].headers


def test_a_stream_that_ends_properly_without_an_answer_is_complete() -> None:
    records = ask(always(SSE_HEAD + chunk(b"id: 1\ndata:\n\n") + LAST_CHUNK))
    assert troubles(records) == []
    assert isinstance(records[-1], StreamEnd)
    assert records[-1].complete


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "405 Method Not Allowed"])
def test_a_session_is_deleted_and_the_answer_told(status: str) -> None:
    seen: list[SeenRequest] = []
    answer = reply(b"", status, None) if "204" not in status else b"HTTP/1.1 204 N\r\n\r\n"
    with serving(remembering(seen, answer)) as server, connected(server) as transport:
        records = until_end(transport, transport.request("DELETE", soon(), {"Mcp-Session-Id": "s"}))
    assert statuses(records) == [int(status[:3])]
    assert troubles(records) == []
    assert (seen[0].method, seen[0].headers["mcp-session-id"]) == ("DELETE", "s")
    assert "content-length" not in seen[0].headers


def test_an_abandoned_stream_is_closed_at_once_and_others_go_on() -> None:
    hung_up = threading.Event()

    def script(wire: Wire) -> None:
        request = wire.request()
        if request is not None and request.body == b"slow":
            wire.send(SSE_HEAD)
            wire.wait_for_hang_up()
            hung_up.set()
        else:
            wire.send(reply())

    records: list[AnyRecord] = []
    with serving(script) as server, connected(server, records) as transport:
        slow = transport.send(b"slow", soon())
        while not statuses(records):
            transport.receive(soon())
        transport.abandon(slow)
        assert hung_up.wait(WAIT)
        transport.abandon(slow)  # nothing is left to abandon
        assert messages(until_end(transport, transport.send(PING, soon()))) == [PONG]
    ends = [each for each in records if isinstance(each, StreamEnd)]
    assert [(each.stream, each.complete) for each in ends] == [(slow, False), (2, True)]
    assert any(isinstance(each, Note) and "abandoned" in each.text for each in records)


def test_a_queued_request_that_is_abandoned_is_never_sent() -> None:
    seen: list[SeenRequest] = []
    go = threading.Event()

    def script(wire: Wire) -> None:
        while request := wire.request():
            seen.append(request)
            go.wait(WAIT)
            wire.send(reply())

    with serving(script) as server, connected(server) as transport:
        streams = [transport.send(b"%d" % number, soon()) for number in range(34)]
        transport.abandon(streams[32])
        go.set()
        answers_by_stream(transport, set(streams) - {streams[32]})
    assert len(seen) == 33
    assert b"32" not in {each.body for each in seen}


def test_a_standing_stream_takes_no_place_from_requests() -> None:
    def script(wire: Wire) -> None:
        while request := wire.request():
            if request.method == "GET":
                wire.send(SSE_HEAD)
            else:
                wire.send(reply())

    with serving(script) as server, connected(server) as transport:
        for _ in range(40):
            transport.request("GET", soon())
        assert messages(until_end(transport, transport.send(PING, soon()))) == [PONG]


def test_a_redirect_within_the_server_is_followed_and_each_step_recorded() -> None:
    seen: list[SeenRequest] = []

    def script(wire: Wire) -> None:
        while request := wire.request():
            seen.append(request)
            if request.target == "/mcp":
                wire.send(reply(b"moved", "307 T", "text/plain", "Location: /mcp/?a=b\r\n"))
            else:
                wire.send(reply())

    records: list[AnyRecord] = []
    with serving(script) as server, connected(server, records) as transport:
        stream = transport.send(PING, soon(), {"Authorization": "Bearer x"})
        assert messages(until_end(transport, stream)) == [PONG]
    requests = [each for each in records if isinstance(each, HttpRequest)]
    assert [each.url for each in requests] == [server.url, f"{server.url}/?a=b"]
    assert {each.stream for each in requests} == {stream}
    assert statuses(records) == [307, 200]
    assert [(each.target, each.body) for each in seen] == [("/mcp", PING), ("/mcp/?a=b", PING)]
    assert sum(isinstance(each, Frame) and each.sender == "client" for each in records) == 1
    assert sum(isinstance(each, StreamEnd) for each in records) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_get_follows_every_redirect_within_the_server(status: int) -> None:
    def script(wire: Wire) -> None:
        while request := wire.request():
            if request.target == "/mcp":
                wire.send(reply(b"", f"{status} M", None, "Location: other\r\n"))
            else:
                wire.send(SSE_HEAD + chunk(b"data: 1\n\n") + LAST_CHUNK)

    with serving(script) as server, connected(server) as transport:
        assert messages(until_end(transport, transport.request("GET", soon()))) == [b"1"]


def test_interim_responses_are_noted_and_passed_over() -> None:
    records: list[AnyRecord] = []
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    with serving(always(early + reply())) as server, connected(server, records) as transport:
        seen = until_end(transport, transport.send(PING, soon()))
    assert statuses(seen) == [200]
    notes = [each.text for each in records if isinstance(each, Note)]
    assert notes == ["stream 1: interim response 100", "stream 1: interim response 103"]


def test_a_compressed_answer_is_read_although_we_did_not_ask_for_it() -> None:
    import gzip

    packed = gzip.compress(PONG)
    assert messages(ask(always(reply(packed, extra="Content-Encoding: gzip\r\n")))) == [PONG]


def test_an_early_error_to_a_large_request_is_read_although_the_server_stopped_reading() -> None:
    def script(wire: Wire) -> None:
        wire.sock.recv(1000)
        wire.send(reply(b"", "413 Too Large", None, "Connection: close\r\n"))
        wire.sock.shutdown(socket.SHUT_WR)
        wire.wait_for_hang_up()

    with serving(script) as server, connected(server) as transport:
        records = until_end(transport, transport.send(b"x" * 5_000_000, soon()))
    assert statuses(records) == [413]


def test_a_large_body_passes_both_ways() -> None:
    body = json.dumps(["x" * 1000] * 8000).encode()

    def script(wire: Wire) -> None:
        while request := wire.request():
            wire.send(reply(request.body))

    with serving(script) as server, connected(server) as transport:
        assert messages(until_end(transport, transport.send(body, soon()))) == [body]


def test_nobody_listening_is_said_when_the_transport_is_opened() -> None:
    transport = StreamableHttp(f"http://127.0.0.1:{free_port()}/mcp", sink=lambda record: None)
    with pytest.raises(PeerError, match="can't connect to http://127") as caught:
        transport.open(soon())
    assert caught.value.kind is ErrorKind.CONNECTION_REFUSED
    assert "check that the server is running" in caught.value.hint
    transport.close(soon())


def test_a_server_that_went_away_is_said_when_something_is_sent() -> None:
    with serving(always(reply(), then_close=True)) as server:
        transport = StreamableHttp(server.url, sink=lambda record: None)
        until_end(transport, transport.send(PING, soon()))
    with pytest.raises(PeerError) as caught:
        transport.send(PING, soon())
    assert caught.value.kind is ErrorKind.CONNECTION_REFUSED
    transport.close(soon())


def test_receiving_with_nothing_under_way_waits_for_the_deadline() -> None:
    with serving(always(reply())) as server, connected(server) as transport:
        started = time.monotonic()
        cpu = time.process_time()
        assert transport.receive(Deadline.after(0.2)) == []
        assert time.monotonic() - started >= 0.2
        assert time.process_time() - cpu < 0.1


def test_closing_tells_of_streams_that_were_open_and_may_be_repeated() -> None:
    records: list[AnyRecord] = []

    def script(wire: Wire) -> None:
        wire.request()
        wire.send(SSE_HEAD)
        wire.wait_for_hang_up()

    with serving(script) as server:
        with connected(server, records) as transport:
            transport.request("GET", soon())
        transport.close(soon())
        with pytest.raises(PeerError, match="closed"):
            transport.send(PING, soon())
    assert isinstance(records[-1], StreamEnd)
    assert not records[-1].complete
