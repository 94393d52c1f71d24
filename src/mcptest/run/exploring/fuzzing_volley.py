"""Many calls under way at once. Where an answer is missing, who is to blame is found out alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mcptest.model.deadline import Deadline
from mcptest.model.errors import PeerError
from mcptest.peer.client import Client, Reply
from mcptest.peer.pending import Pending
from mcptest.run.exploring.subject import Subject

_PATIENCE = 3.0
"""A volley that takes longer is broken off: one at a time each gets all the time that is due."""
_CLOSING = 0.3


class Volley(msgspec.Struct, frozen=True):
    """What came of many calls."""

    replies: tuple[Reply | None, ...]
    """None: no answer came. Then the session was ended."""
    died: bool = False
    """Whether the server is gone; else it was only slow, or silent."""


def fire(subject: Subject, params: Sequence[Mapping[str, Any]], timeout: float) -> Volley:
    """Send all, then collect. Never raises for what the server does."""
    if subject.is_gone:
        subject.drop()
    nothing: tuple[Reply | None, ...] = (None,) * len(params)
    try:
        client = subject.client
    except PeerError:
        return Volley(nothing, died=True)
    deadline = Deadline.after(min(timeout, _PATIENCE))
    try:
        started = _start(client, params, deadline)
    except PeerError:
        died = subject.is_gone
        subject.drop(_CLOSING)
        return Volley(nothing, died)
    replies = tuple(
        _collected(client, pending, sent, deadline)
        for pending, sent in zip(started, params, strict=True)
    )
    if None not in replies:
        return Volley(replies)
    died = subject.is_gone
    subject.drop(_CLOSING)
    return Volley(replies, died)


def _start(
    client: Client, params: Sequence[Mapping[str, Any]], deadline: Deadline
) -> list[Pending]:
    if client.connection.transport.name != "stdio":
        return [client.start("tools/call", one, deadline) for one in params]
    prepare = client.lifecycle.prepare
    return client.connection.burst([("tools/call", prepare(one), {}) for one in params], deadline)


def _collected(
    client: Client, pending: Pending, params: Mapping[str, Any], deadline: Deadline
) -> Reply | None:
    try:
        answer = client.connection.settle(pending, deadline)
        return client.complete_call(Reply(pending.method, answer, pending.status), params, deadline)
    except PeerError:
        return None
