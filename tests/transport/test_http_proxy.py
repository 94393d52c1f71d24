"""The HTTP proxy in this process: what passes, what is refused, and that nobody can hurt it."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
from pathlib import Path

import pytest

from mcptest.core.capture import Frame, HttpRequest, HttpResponse, Note, StreamEnd, Trouble
from mcptest.core.limits import Limits
from mcptest.transport import listener
from mcptest.transport.proxy import http_proxy
from tests.support.proxy_bench import (
    BOUND,
    EVENTS,
    Between,
    ScriptedServer,
    between,
    get,
    plain,
    post,
    read_all,
)

JSON = "Content-Type: application/json"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def answering(answer: bytes) -> object:
    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(answer)

    return script


def kinds(proxy: Between) -> list[str]:
    return [type(record).__name__ for record in proxy.records]


# -- what passes ---------------------------------------------------------------------------


def test_a_request_and_its_answer_pass_and_are_recorded() -> None:
    with between(answering(plain(b'{"ok":1}', JSON, "X-Server: s"))) as (proxy, server):
        answer = proxy.ask(post(PING, JSON, "X-Client: c", "Accept: a, b"))
    assert answer.endswith(b'\r\n\r\n{"ok":1}')
    assert b"X-Server: s\r\n" in answer
    seen = server.requests[0]
    assert seen.startswith(b"POST /mcp HTTP/1.1\r\n")
    assert seen.endswith(b"\r\n\r\n" + PING)
    assert b"X-Client: c\r\n" in seen
    assert b"Accept: a, b\r\n" in seen
    assert kinds(proxy) == ["HttpRequest", "Frame", "HttpResponse", "Frame", "StreamEnd"]
    request, sent, response, got, _ = proxy.records
    assert isinstance(request, HttpRequest)
    assert request.url == f"http://127.0.0.1:{server.port}/mcp"
    assert ("X-Client", "c") in request.headers
    assert isinstance(sent, Frame)
    assert (sent.sender, sent.raw) == ("client", PING)
    assert isinstance(response, HttpResponse)
    assert response.status == 200
    assert isinstance(got, Frame)
    assert (got.sender, got.raw) == ("server", b'{"ok":1}')


def test_the_server_is_named_in_host_and_gets_one_connection_for_each_request() -> None:
    with between(answering(plain(b""))) as (proxy, server):
        proxy.ask(get(host=f"127.0.0.1:{proxy.port}"))
    head = server.requests[0]
    assert f"\r\nHost: 127.0.0.1:{server.port}\r\n".encode() in head
    assert head.lower().count(b"\r\nconnection:") == 1
    assert b"\r\nConnection: close\r\n" in head


def test_headers_that_the_user_named_are_added_and_win() -> None:
    script = answering(plain(b""))
    with between(script, headers={"Authorization": "Bearer t", "X-Ä": "ö"}) as (proxy, server):
        proxy.ask(get("/mcp", "authorization: Bearer other"))
    assert server.requests[0].count(b"uthorization:") == 1
    assert b"Authorization: Bearer t\r\n" in server.requests[0]


def test_an_event_is_passed_on_the_moment_it_comes() -> None:
    go_on = threading.Event()

    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(EVENTS + b"data: 1\n\n")
        assert go_on.wait(BOUND)
        connection.sendall(b"data: 2\n\n")

    with between(script) as (proxy, _), proxy.connect() as client:
        client.sendall(get())
        got = b""
        while b"data: 1\n\n" not in got:
            got += client.recv(65536)
        assert b"data: 2" not in got
        go_on.set()
        assert b"data: 2\n\n" in read_all(client)


def test_two_requests_can_follow_each_other_on_one_connection() -> None:
    with between(answering(plain(b"1"))) as (proxy, server):
        answer = proxy.ask(get("/a", close=False) + get("/b"))
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert [each.split(b" ")[1] for each in server.requests] == [b"/a", b"/b"]


def test_chunks_pass_in_both_directions() -> None:
    body = b"4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nTrailer: t\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    request += b"Connection: close\r\n\r\n" + body
    with between(answering(answer)) as (proxy, server):
        got = proxy.ask(request)
    assert got.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert server.requests[0].endswith(b"\r\n\r\n9\r\nWikipedia\r\n0\r\n\r\n")
    frames = [record.raw for record in proxy.records if isinstance(record, Frame)]
    assert frames == [b"Wikipedia"]


def test_an_old_client_gets_a_body_that_ends_with_the_connection() -> None:
    with between(answering(EVENTS + b"data: 1\n\n")) as (proxy, _):
        got = proxy.ask(b"GET /mcp HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert got.endswith(b"\r\n\r\ndata: 1\n\n")
    assert b"chunked" not in got.lower()


@pytest.mark.parametrize(
    ("method", "answer", "expected"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"Content-Length: 5\r\n"),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", b"204 No Content"),
        ("OPTIONS", plain(b"", "Allow: GET"), b"Allow: GET\r\n"),
    ],
)
def test_other_methods_pass_too(method: str, answer: bytes, expected: bytes) -> None:
    with between(answering(answer)) as (proxy, _):
        got = proxy.ask(get().replace(b"GET", method.encode(), 1))
    assert expected in got
    assert got.endswith(b"\r\n\r\n")


def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(plain(b"done"))

    server = ScriptedServer(script)
    proxy = Between(server.port)
    original = server._serve

    def reluctant(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        original(connection)

    server._serve = reluctant  # type: ignore[method-assign]
    with proxy.connect() as client:
        head, _, body = post(PING, "Expect: 100-continue").partition(b"\r\n\r\n")
        client.sendall(head + b"\r\n\r\n")
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert read_all(client).endswith(b"done")
    proxy.close()
    server.close()


def test_large_bodies_pass_both_ways_though_only_their_beginning_is_kept() -> None:
    body = random.Random(3).randbytes(3_000_000)

    def echo(connection: socket.socket, request: bytes) -> None:
        connection.sendall(plain(request.partition(b"\r\n\r\n")[2], JSON))

    with between(echo, limits=Limits(message_bytes=100_000)) as (proxy, _):
        assert proxy.ask(post(body)).partition(b"\r\n\r\n")[2] == body
        assert proxy.ask(post(PING)).endswith(PING)
    troubles = [record for record in proxy.records if isinstance(record, Trouble)]
    assert [each.error for each in troubles] == ["body-too-large"] * 2
    assert all("passed on" in each.detail for each in troubles)
    ends = [record for record in proxy.records if isinstance(record, StreamEnd)]
    assert [each.complete for each in ends] == [True, True]


def test_a_slow_reader_gets_everything_and_makes_the_server_wait() -> None:
    size = 12_000_000
    with between(answering(plain(b"x" * size))) as (proxy, _), proxy.connect() as client:
        client.sendall(get())
        client.recv(1)
        assert proxy.ask(get("/other")).count(b"x") == size  # meanwhile others are served
        assert read_all(client).count(b"x") == size


def test_a_redirect_to_the_server_itself_leads_through_the_proxy() -> None:
    def script(connection: socket.socket, request: bytes) -> None:
        there = f"http://localhost:{server_port}/new?a=1"
        connection.sendall(plain(b"", f"Location: {there}", status="307 Temporary Redirect"))

    server = ScriptedServer(script)
    server_port = server.port
    proxy = Between(server.port)
    assert b"\r\nLocation: /new?a=1\r\n" in proxy.ask(get())
    proxy.close()
    server.close()


# -- the old transport ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["relative", "absolute", "elsewhere"])
def test_the_endpoint_of_the_old_transport_leads_through_the_proxy(form: str) -> None:
    def script(connection: socket.socket, request: bytes) -> None:
        if request.startswith(b"POST"):
            connection.sendall(plain(b"Accepted", status="202 Accepted"))
            return
        endpoint = {
            "relative": "/messages?id=1",
            "absolute": f"http://127.0.0.1:{server_port}/messages?id=1",
            "elsewhere": "http://127.0.0.1:1/messages?id=1",
        }[form]
        connection.sendall(EVENTS)
        # cut as unkindly as can be
        for byte in f"event: endpoint\r\ndata: {endpoint}\r\n\r\n".encode():
            connection.sendall(bytes([byte]))
        connection.sendall(b"data: {}\n\n")

    server = ScriptedServer(script)
    server_port = server.port
    proxy = Between(server.port, "/sse", legacy=True)
    got = proxy.ask(get("/sse", "Connection: close", close=False).replace(b"1.1", b"1.0", 1))
    events = got.partition(b"\r\n\r\n")[2]
    expected = b"http://127.0.0.1:1/messages?id=1" if form == "elsewhere" else b"/messages?id=1"
    assert events == b"event: endpoint\r\ndata: " + expected + b"\r\n\r\ndata: {}\n\n"
    proxy.ask(post(PING, path="/messages?id=1"))
    proxy.close()
    server.close()
    sessions = 1
    assert len(proxy.sessions) == sessions
    assert sum(isinstance(each, Frame) for each in proxy.records) == 2


# -- sessions ------------------------------------------------------------------------------


def test_sessions_that_go_on_side_by_side_are_recorded_apart() -> None:
    def script(connection: socket.socket, request: bytes) -> None:
        body = request.partition(b"\r\n\r\n")[2]
        named = [] if b"initialize" not in body else [f"Mcp-Session-Id: s-{body[-3:-2].decode()}"]
        connection.sendall(plain(b"{}", JSON, *named))

    def initialize(number: int) -> bytes:
        return post(b'{"jsonrpc":"2.0","method":"initialize","id":%d }' % number, JSON)

    with between(script) as (proxy, _):
        proxy.ask(initialize(1))
        proxy.ask(initialize(2))
        for name in ("s-1", "s-2", "s-1"):
            proxy.ask(post(PING, f"mcp-session-id: {name}"))
    asked = [sum(isinstance(each, HttpRequest) for each in one) for one in proxy.sessions]
    assert asked == [3, 2]


# -- who is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get(host="evil.example"), 403),
        (get(host="localhost.evil.example:80"), 403),
        (get(host="169.254.169.254"), 403),
        (get("/mcp", "Origin: http://evil.example"), 403),
        (get("/mcp", "Origin: null"), 403),
        (get("/mcp", "Sec-Fetch-Site: cross-site"), 403),
        (b"GET /mcp HTTP/1.1\r\n\r\n", 400),
        (get("/mcp", "Host: localhost"), 400),
        (get("http://evil.example/"), 400),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"\x16\x03\x01 hello TLS\r\n\r\n", 400),
        (b"GET /mcp\r\n\r\n", 400),
        (b"GET /mcp HTTP/2.0\r\n\r\n", 505),
        (get("/mcp", "no colon"), 400),
        (get("/mcp", "A: b\n c"), 400),
        (get("/mcp", "Content-Length: 1", "Content-Length: 2"), 400),
        (get("/mcp", "Content-Length: 1", "Transfer-Encoding: chunked"), 400),
        (get("/mcp", "Content-Length: -1"), 400),
        (get("/mcp", "Transfer-Encoding: gzip"), 400),
        (get("/mcp", "Transfer-Encoding: chunked") + b"zz\r\n", 400),
        (get("/mcp", "A: " + "b" * 70_000), 431),
        (b"G" * 70_000, 431),
        (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    ],
)
def test_what_is_malformed_or_from_elsewhere_is_refused_in_one_line(
    request_bytes: bytes, status: int
) -> None:
    with between(answering(plain(b"reached"))) as (proxy, server):
        got = proxy.ask(request_bytes)
        assert proxy.ask(get()).endswith(b"reached")
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert body.startswith(b"mcptest proxy: ")
    assert body.count(b"\n") == 1
    assert len(server.requests) <= 2
    assert any(isinstance(each, Note | StreamEnd) for each in proxy.records)


def test_a_page_on_this_machine_may_use_it_and_is_named_as_it_is() -> None:
    with between(answering(plain(b""))) as (proxy, server):
        proxy.ask(get("/mcp", "Origin: http://localhost:6274"))
        proxy.ask(get("/mcp", f"Origin: http://127.0.0.1:{proxy.port}"))
    assert b"\r\nOrigin: http://localhost:6274\r\n" in server.requests[0]
    assert f"\r\nOrigin: http://127.0.0.1:{server.port}\r\n".encode() in server.requests[1]


def test_the_proxy_is_never_its_own_server() -> None:
    from mcptest.core.errors import UsageError

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UsageError, match="its own server"):
        Between(port, listen=("127.0.0.1", port))


# -- servers that misbehave ----------------------------------------------------------------


def test_a_server_that_is_not_there_is_a_502_that_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = Between(port)
    got = proxy.ask(post(PING))
    proxy.close()
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert body.count(b"\n") == 1
    assert f"can't connect to http://127.0.0.1:{port}".encode() in body
    assert [type(each).__name__ for each in proxy.records][-2:] == ["Trouble", "StreamEnd"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\nA: b\n\n",
        b"HTTP/1.1 200 OK\r\nA",
        b"X" * 100_000,
    ],
)
def test_a_server_that_speaks_no_http_is_a_502(answer: bytes) -> None:
    with between(answering(answer)) as (proxy, _):
        got = proxy.ask(post(PING))
    assert got.startswith(b"HTTP/1.1 502 ")
    assert got.count(b"\n") == got.count(b"\r\n") + 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    ],
)
def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(answer: bytes) -> None:
    with between(answering(answer)) as (proxy, _):
        got = proxy.ask(get())
    assert b"half" in got
    assert not got.endswith(b"0\r\n\r\n")
    ends = [record for record in proxy.records if isinstance(record, StreamEnd)]
    assert [each.complete for each in ends] == [False]


@pytest.mark.parametrize("coding", ["br", "gzip"])
def test_a_body_that_can_not_be_unpacked_passes_as_it_is(coding: str) -> None:
    with between(answering(plain(b"garbage", JSON, f"Content-Encoding: {coding}"))) as (proxy, _):
        assert proxy.ask(get()).endswith(b"garbage")
    assert [type(each).__name__ for each in proxy.records][-2:] == ["Trouble", "StreamEnd"]


def test_a_server_with_tls_is_verified_and_passed_on_to(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Path(__file__).parents[1] / "data" / "http_localhost.pem"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    body = b"x" * 500_000
    server = ScriptedServer(answering(plain(body)))
    plain_serve = server._serve

    def serve(connection: socket.socket) -> None:
        try:
            plain_serve(context.wrap_socket(connection, server_side=True))
        except OSError:
            connection.close()  # we were not trusted

    server._serve = serve  # type: ignore[method-assign]
    distrusting = Between(server.port, scheme="https")
    assert b"502 Bad Gateway" in (refused := distrusting.ask(get()))
    assert b"TLS failed" in refused
    distrusting.close()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    trusting = Between(server.port, scheme="https")
    assert trusting.ask(get()).endswith(body)
    trusting.close()
    server.close()


# -- clients that misbehave ----------------------------------------------------------------


def test_a_client_that_leaves_is_told_to_the_server() -> None:
    told = threading.Event()

    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(EVENTS + b"data: 1\n\n")
        if not connection.recv(1):
            told.set()

    with between(script) as (proxy, _):
        with proxy.connect() as client:
            client.sendall(get())
            assert client.recv(65536)
        assert told.wait(BOUND)
    notes = [record.text for record in proxy.records if isinstance(record, Note)]
    assert notes == ["stream 1: the client left"]


def test_a_client_that_leaves_between_two_pieces_of_an_answer_ends_that_answer_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        # as when the system says that nobody is there any more
        patched.setattr(
            http_proxy.DownstreamConnection, "write", lambda client, data: client.close()
        )
        pieces = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        pieces += b"Transfer-Encoding: chunked\r\n\r\n" + b"9\r\ndata: 1\n\n\r\n" * 3
        with between(answering(pieces)) as (proxy, _):
            assert proxy.ask(get()) == b""
    assert kinds(proxy) == ["HttpRequest", "HttpResponse", "Note", "StreamEnd"]


def test_a_client_that_drips_its_request_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.05)
    monkeypatch.setattr(listener, "TICK", 0.05)
    with between(answering(plain(b""))) as (proxy, _):
        for begun in (b"GET / HT", get("/mcp", "Content-Length: 5") + b"123"):
            with proxy.connect() as client:
                client.sendall(begun)
                assert read_all(client).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("limit", ["IDLE_SECONDS", "LINGER_SECONDS"])
def test_a_client_that_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(listener, limit, 0.05)
    monkeypatch.setattr(listener, "TICK", 0.05)
    with between(answering(plain(b"x"))) as (proxy, _), proxy.connect() as client:
        client.sendall(b"" if limit == "IDLE_SECONDS" else get())
        read_all(client)
        # The proxy closed its side for good: the port it had is not ours to write to any more.
        with contextlib.suppress(OSError):
            while True:
                client.sendall(b"x" * 65536)


def test_hundreds_of_connections_are_served_at_once() -> None:
    everyone = threading.Barrier(200)

    def script(connection: socket.socket, request: bytes) -> None:
        everyone.wait(BOUND)  # nobody is answered before all have asked
        connection.sendall(plain(b"ok"))

    with between(script) as (proxy, _):
        clients = [proxy.connect() for _ in range(200)]
        for client in clients:
            client.sendall(get())
        assert all(read_all(client).endswith(b"ok") for client in clients)
        for client in clients:
            client.close()


def test_one_client_too_many_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 1)
    with between(answering(plain(b"ok"))) as (proxy, _), proxy.connect() as first:
        first.sendall(get("/mcp", close=False))
        assert first.recv(65536)
        with proxy.connect() as second:
            assert read_all(second).startswith(b"HTTP/1.1 503 ")


def test_noise_from_either_side_never_ends_the_proxy() -> None:
    noise = random.Random(11)
    pieces = [b"\r\n", b"HTTP/1.1 200 OK\r\n", b"GET / HTTP/1.1\r\n", b"Host: localhost\r\n", b"\0"]
    pieces += [b"Transfer-Encoding: chunked\r\n\r\n", b"Content-Length: 3\r\n\r\n", b"5\r\nab"]

    def mess() -> bytes:
        return b"".join(noise.choice([*pieces, noise.randbytes(9)]) for _ in range(8))

    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(mess())

    with between(script) as (proxy, server):
        for _ in range(150):
            with proxy.connect() as client, contextlib.suppress(ConnectionError):
                client.sendall(noise.choice([get(), post(PING), mess()]))
                client.shutdown(socket.SHUT_WR)
                read_all(client)
        server.script = answering(plain(b"still here"))
        assert proxy.ask(get()).endswith(b"still here")


def test_stopping_cuts_off_whoever_is_there_and_records_it() -> None:
    def script(connection: socket.socket, request: bytes) -> None:
        connection.sendall(EVENTS + b"data: 1\n\n")
        connection.recv(1)

    server = ScriptedServer(script)
    proxy = Between(server.port)
    with proxy.connect() as client:
        client.sendall(get())
        assert client.recv(65536)
        proxy.close()
        with contextlib.suppress(ConnectionError):
            read_all(client)
    server.close()
    last = proxy.records[-1]
    assert isinstance(last, StreamEnd)
    assert not last.complete


def test_a_server_that_takes_no_connection_is_given_up_while_the_request_still_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_proxy, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(listener, "TICK", 0.05)
    with contextlib.ExitStack() as opened:
        full = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        place = full.getsockname()
        for _ in range(4):  # nobody accepts them, and further ones are not answered
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(place)
        proxy = Between(place[1])
        opened.callback(proxy.close)
        with proxy.connect() as client:
            client.sendall(get("/mcp", "Content-Length: 200000") + bytes(100_000))
            assert read_all(client).startswith(b"HTTP/1.1 502 ")
    troubles = [record for record in proxy.records if isinstance(record, Trouble)]
    assert [record.error for record in troubles] == ["timeout"]
