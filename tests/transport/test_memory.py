"""The in-memory transport."""

from __future__ import annotations

import time

import pytest

from mcptest.core.capture import AnyRecord, Frame
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.base import Transport, discard
from tests.support.memory import Memory


def test_answers_come_in_order_and_everything_is_recorded() -> None:
    records: list[AnyRecord] = []
    server: Transport = Memory(
        lambda payload: [payload + b"1", payload + b"2"], sink=records.append
    )
    deadline = Deadline.after(1)
    server.open(deadline)
    server.send(b"a", deadline)
    server.send(b"b", deadline)
    received = server.receive(deadline)
    assert [record.raw for record in received if isinstance(record, Frame)] == [
        b"a1",
        b"a2",
        b"b1",
        b"b2",
    ]
    assert [(record.sender, record.raw) for record in records if isinstance(record, Frame)] == [
        ("client", b"a"),
        ("server", b"a1"),
        ("server", b"a2"),
        ("client", b"b"),
        ("server", b"b1"),
        ("server", b"b2"),
    ]


def test_nobody_waits_for_what_can_not_come() -> None:
    server = Memory(lambda _: [], sink=discard)
    started = time.monotonic()
    assert server.receive(Deadline.after(600)) == []
    assert time.monotonic() - started < 300


def test_a_closed_server_refuses() -> None:
    server = Memory(lambda _: [], sink=discard)
    server.close(Deadline.after(1))
    with pytest.raises(PeerError) as sending:
        server.send(b"x", Deadline.after(1))
    with pytest.raises(PeerError) as receiving:
        server.receive(Deadline.after(1))
    assert sending.value.kind is receiving.value.kind is ErrorKind.CLOSED
