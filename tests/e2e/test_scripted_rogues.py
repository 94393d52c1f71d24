"""Rogue clients do not bring the scripted server down: a good session works right after each."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from mcptest.core.capture import Trouble
from mcptest.servers.scripted import script
from mcptest.transport import listener
from tests.support.playing import (
    BOUND,
    Adder,
    D,
    Http,
    Play,
    good_session,
    playing,
    raw,
    read_until,
)

HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def shared() -> Iterator[Play]:
    """One server for all of them: each finds it as the one before left it."""
    with playing(Adder(), D) as play:
        yield play


@contextlib.contextmanager
def connected(play: Play, count: int = 1) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection(("127.0.0.1", play.port), timeout=BOUND))
            for _ in range(count)
        ]


def abort(connection: socket.socket) -> None:
    """Close it with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


WRONG_BYTES: dict[str, bytes] = {
    "another host": b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
    "another origin": HEAD + b"Origin: https://evil.example\r\nContent-Length: 0\r\n\r\n",
    "an origin of null": HEAD + b"Origin: null\r\nContent-Length: 0\r\n\r\n",
    "a preflight": b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",
    "noise": bytes(range(256)) * 300,
    "no version": b"POST /mcp\r\n\r\n",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a bare newline": b"POST /mcp HTTP/1.1\nHost: localhost\n\n" + bytes(70_000),
    "no host": b"POST /mcp HTTP/1.1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": HEAD
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": HEAD + b"Content-Length: -5\r\n\r\n",
    "a length of letters": HEAD + b"Content-Length: many\r\n\r\n",
    "a huge length": HEAD + b"Content-Length: 99999999999\r\n\r\n",
    "a bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "a huge chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    "an endless header": HEAD + b"X: " + b"x" * 100_000,
    "a folded header": HEAD + b" folded: yes\r\nContent-Length: 0\r\n\r\n",
    "a header with a nul": HEAD + b"X: \x00\r\nContent-Length: 0\r\n\r\n",
    "an absolute target": b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path outside": b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", WRONG_BYTES)
def test_wrong_bytes_are_answered_with_an_error(shared: Play, name: str) -> None:
    with connected(shared) as [connection]:
        with contextlib.suppress(ConnectionError):
            connection.sendall(WRONG_BYTES[name])
        status = read_until(connection, b"\r\n").split()[1]
    assert 400 <= int(status) < 600
    good_session(shared.port)


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no json": b"hello",
    "half of it": b'{"jsonrpc":"2.0","id":1,"method":"tools/li',
    "invalid utf-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "deep": b"[" * 100_000,
    "a huge number": b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b',"method":"x"}',
    "not a number": b'{"jsonrpc":"2.0","id":NaN,"method":"x"}',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":"\\ud800","method":"x"}',
    "an array": b"[1,2,3]",
    "a null id": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "params that are no object": b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}',
    "a method that is no text": b'{"jsonrpc":"2.0","id":1,"method":{}}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_message_is_refused(shared: Play, name: str) -> None:
    answer = Http(shared.port).send("POST", body=BODIES[name])
    assert answer.status == 400
    good_session(shared.port)


ODD_PARAMS: list[dict[str, Any]] = [
    {"name": None},
    {"name": "add", "arguments": []},
    {"name": ["add"]},
    {"_meta": 5, "name": "x" * 10_000},
]


@pytest.mark.parametrize("params", ODD_PARAMS)
def test_odd_parameters_are_the_clients_fault(shared: Play, params: dict[str, Any]) -> None:
    client = Http(shared.port)
    client.initialize()
    assert client.ask("tools/call", params).message["error"]["code"] == -32602
    assert shared.site.defect == ""


def test_a_client_that_leaves_in_the_middle_costs_nothing(shared: Play) -> None:
    for sent in (b"", b"POST", HEAD, HEAD + b"Content-Length: 100\r\n\r\nhalf"):
        with connected(shared) as [connection]:
            connection.sendall(sent)
            abort(connection)
        good_session(shared.port)


def test_requests_that_follow_each_other_unasked_are_all_answered(shared: Play) -> None:
    one = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw(shared.port, one * 500 + last).count(b"HTTP/1.1 404") == 501
    good_session(shared.port)


def test_a_slow_request_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.2)
    with playing(Adder(), D) as play:
        with connected(play, 20) as slow:
            for connection in slow:
                connection.sendall(HEAD[:30])
            good_session(play.port)
            for connection in slow:
                assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 408")
        good_session(play.port)
        assert [trouble.error for trouble in play.of(Trouble)] == ["timeout"] * 20


def test_a_flood_of_silent_connections_does_not_keep_others_out(shared: Play) -> None:
    with connected(shared, 400) as flood:
        flood[-1].sendall(b"POST /mcp HTTP/1.1\r\n")
        good_session(shared.port)
    good_session(shared.port)


def test_a_flood_of_large_bodies_is_held_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "HELD_BYTES", 8 * MEGABYTE)
    part = HEAD + b"Content-Length: 4000000\r\n\r\n" + bytes(MEGABYTE)
    with playing(Adder(), D) as play:
        with connected(play, 40) as flood:
            for connection in flood:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(part)
            good_session(play.port)
        cut = [trouble for trouble in play.of(Trouble) if "hold more than" in trouble.detail]
        assert len(cut) >= 30


def test_a_client_that_does_not_read_its_answers_is_left(shared: Play) -> None:
    ask = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(shared) as [connection]:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            for _ in range(30):
                connection.send(ask * 100)
        good_session(shared.port)
    good_session(shared.port)


def test_many_short_connections_are_served(shared: Play) -> None:
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=BOUND)
        connection.request("GET", "/nowhere")
        assert connection.getresponse().status == 404
        connection.close()
    good_session(shared.port)


def test_after_all_of_that_the_script_has_no_defect(shared: Play) -> None:
    assert shared.site.defect == ""
