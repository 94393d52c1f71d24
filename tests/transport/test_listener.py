"""A connection that was accepted, whatever is spoken on it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mcptest.transport import listener
from mcptest.transport.listener import AcceptedConnection
from mcptest.transport.loop import Loop

ANSWER = bytes(range(256)) * 4096


class Told(AcceptedConnection):
    """Keeps what came, and ends nothing by itself."""

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        self.heard = b""
        self.ends = 0
        self.busy = False
        super().__init__(loop, sock, lambda connection: None)

    @property
    def is_busy(self) -> bool:
        return self.busy

    def came(self, data: bytes) -> None:
        self.heard += data
        self._reader.feed(data)

    def gone(self) -> None:
        self.ends += 1


@pytest.fixture
def ends() -> Iterator[tuple[Loop, Told, socket.socket]]:
    loop = Loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    theirs.settimeout(0)
    with ours, theirs:
        connection = Told(loop, ours)
        yield loop, connection, theirs
        connection.close()


def read_on(loop: Loop, client: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    came = b""
    while True:
        loop.turn(0)
        try:
            piece = client.recv(65536)
        except BlockingIOError:
            continue
        if not piece:
            return came
        came += piece


def test_a_client_that_closes_its_side_gets_the_rest_of_its_answer(
    ends: tuple[Loop, Told, socket.socket],
) -> None:
    loop, connection, client = ends
    connection.write(ANSWER)
    client.shutdown(socket.SHUT_WR)
    assert read_on(loop, client) == ANSWER
    assert (connection.open, connection.ends) == (False, 1)


def test_a_client_that_leaves_while_it_is_answered_is_let_go(
    ends: tuple[Loop, Told, socket.socket],
) -> None:
    loop, connection, client = ends
    connection.busy = True
    connection.write(ANSWER)
    client.shutdown(socket.SHUT_WR)
    loop.turn(0)
    assert (connection.open, connection.ends) == (False, 1)


def test_the_time_for_an_answer_begins_when_it_can_not_be_sent(
    ends: tuple[Loop, Told, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, connection, _ = ends
    connection._since -= 10_000  # nothing was to be sent for long, and that was nobody's fault
    connection.write(ANSWER)
    connection._check_time()
    assert connection.open
    monkeypatch.setattr(connection, "stall_seconds", -1.0)
    connection._check_time()
    assert not connection.open


def test_a_client_that_says_half_of_a_request_has_its_time(
    ends: tuple[Loop, Told, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, connection, client = ends
    client.sendall(b"GET / HT")
    loop.turn(0)
    assert connection.heard == b"GET / HT"
    connection._check_time()
    fault_in_time = connection._reader.fault
    assert fault_in_time is None
    monkeypatch.setattr(listener, "REQUEST_SECONDS", -1.0)
    connection._check_time()
    assert connection._reader.fault is not None
    assert connection._reader.refusal_status == 408
