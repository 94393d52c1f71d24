"""Sessions that follow one another share connections, and none fails because one was closed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from mcptest.core.capture import AnyRecord, Note
from mcptest.core.limits import Deadline
from mcptest.transport.http.transports import StreamableHttp
from mcptest.transport.target import KeptAlive
from tests.rogues.http_script import (
    PING,
    PONG,
    WAIT,
    ScriptedServer,
    Wire,
    always,
    messages,
    reply,
    serving,
    statuses,
    troubles,
    until_end,
)


@contextlib.contextmanager
def sessions(server: ScriptedServer) -> Iterator[KeptAlive]:
    with contextlib.closing(KeptAlive()) as kept:
        yield kept


def exchange(server: ScriptedServer, kept: KeptAlive) -> list[AnyRecord]:
    """One session with one exchange; everything that it told its sink."""
    records: list[AnyRecord] = []
    transport = StreamableHttp(server.url, sink=records.append, kept=kept)
    try:
        transport.open(Deadline.after(WAIT))
        until_end(transport, transport.send(PING, Deadline.after(WAIT)))
    finally:
        transport.close(Deadline.after(WAIT))
    return records


def test_the_next_session_uses_the_connection_of_the_one_before() -> None:
    with serving(always(reply())) as server, sessions(server) as kept:
        told = [exchange(server, kept) for _ in range(3)]
        assert server.connections == 1
    kinds = [[type(record) for record in records] for records in told]
    assert kinds[0] == kinds[1] == kinds[2], "each capture has all of its own exchange"
    assert [messages(records) for records in told] == [[PONG]] * 3


def test_a_session_that_got_no_message_leaves_no_connection() -> None:
    empty = b"HTTP/1.1 204 No Content\r\n\r\n"
    with serving(always(empty)) as server, sessions(server) as kept:
        for _ in range(2):
            assert not messages(exchange(server, kept))
        assert server.connections == 2


def test_without_it_each_session_has_a_connection_of_its_own() -> None:
    with serving(always(reply())) as server:
        for _ in range(2):
            transport = StreamableHttp(server.url, sink=lambda record: None)
            until_end(transport, transport.send(PING, Deadline.after(WAIT)))
            transport.close(Deadline.after(WAIT))
        assert server.connections == 2


def test_a_connection_that_the_server_closed_between_two_sessions_is_replaced() -> None:
    with serving(always(reply())) as server, sessions(server) as kept:
        exchange(server, kept)
        server.hang_up()
        records = exchange(server, kept)
        assert server.connections == 2
    assert messages(records) == [PONG]
    assert not troubles(records)


def test_a_connection_that_breaks_under_the_first_request_costs_no_session() -> None:
    """The server was about to close it: it never read the request, which is sent once more."""

    def script(wire: Wire) -> None:
        wire.request()
        wire.send(reply())
        if wire.number == 1:
            wire.wait_unread()
            wire.reset()
            return
        always(reply())(wire)

    with serving(script) as server, sessions(server) as kept:
        exchange(server, kept)
        records = exchange(server, kept)
    assert messages(records) == [PONG]
    assert not troubles(records)
    (note,) = (record for record in records if isinstance(record, Note))
    assert "sent again on a new one" in note.text


@pytest.mark.parametrize("extra", ["Connection: close\r\n", ""])
def test_only_a_connection_that_may_carry_more_is_kept(extra: str) -> None:
    rest = "" if extra else "x"  # bytes after the response: nobody knows what comes next

    def script(wire: Wire) -> None:
        while wire.request() is not None:
            wire.send(reply(extra=extra) + rest.encode())

    with serving(script) as server, sessions(server) as kept:
        exchange(server, kept)
        exchange(server, kept)
        assert server.connections == 2


def test_an_exchange_that_is_under_way_at_the_end_takes_its_connection_with_it() -> None:
    def script(wire: Wire) -> None:
        wire.request()
        if wire.number > 1:
            wire.send(reply())
        wire.wait_for_hang_up()

    with serving(script) as server, sessions(server) as kept:
        transport = StreamableHttp(server.url, sink=lambda record: None, kept=kept)
        transport.send(PING, Deadline.after(WAIT))
        transport.close(Deadline.after(WAIT))
        assert statuses(exchange(server, kept)) == [200]
        assert server.connections == 2


def test_at_the_end_all_are_closed() -> None:
    ended: list[int] = []

    def script(wire: Wire) -> None:
        always(reply())(wire)
        ended.append(wire.number)

    with serving(script) as server:
        with sessions(server) as kept:
            exchange(server, kept)
        for thread in server.threads:
            thread.join(WAIT)
        assert ended == [1]


@pytest.mark.parametrize(("status", "known"), [(405, True), (404, False), (200, False)])
def test_only_a_405_says_that_there_is_no_stream(status: int, known: bool) -> None:
    with serving(always(reply(status=f"{status} X"))) as server, sessions(server) as kept:
        for expected in (False, known):
            transport = StreamableHttp(server.url, sink=lambda record: None, kept=kept)
            assert transport.is_without_stream is expected
            until_end(transport, transport.request("GET", Deadline.after(WAIT)))
            transport.close(Deadline.after(WAIT))


def test_a_post_that_is_not_allowed_says_nothing_of_streams() -> None:
    refusing = always(reply(status="405 Method Not Allowed"))
    with serving(refusing) as server, sessions(server) as kept:
        exchange(server, kept)
        assert not kept.without_stream
