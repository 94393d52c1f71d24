"""Which era does this server live in? Asked as the specification says.

First `server/discover`. A discovery, or an error that only a stateless server sends, settles it;
any other error, silence, or an HTTP answer without such a body means handshake. Silence is not
waited out: `initialize` is sent after a moment, and whichever answer comes first decides, so a slow
server of either era is found out without losing time.
"""

from __future__ import annotations

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.message import Kind
from mcptest.peer.connection import Connection
from mcptest.peer.handshake import HandshakeLifecycle
from mcptest.peer.lifecycle import Lifecycle
from mcptest.peer.pending import Pending
from mcptest.peer.stateless import StatelessLifecycle, is_modern

PATIENCE = 2.0
"""Seconds of silence after which `initialize` is tried beside `server/discover`."""

_FATAL = frozenset(
    {
        ErrorKind.EXITED,
        ErrorKind.CLOSED,
        ErrorKind.CONNECTION_REFUSED,
        ErrorKind.NAME_NOT_FOUND,
        ErrorKind.TLS,
        ErrorKind.REDIRECT_REFUSED,
        ErrorKind.ADDRESS_REFUSED,
        ErrorKind.SPAWN_FAILED,
    }
)


def settle_the_era(
    connection: Connection,
    modern: StatelessLifecycle,
    probe: Pending,
    legacy: HandshakeLifecycle,
    deadline: Deadline,
) -> Lifecycle:
    """`probe` is the modern lifecycle's first request: find out the era and begin the session."""
    # Half of a short deadline, so that either era gets its chance.
    connection.settle_any([probe], deadline.within(min(PATIENCE, deadline.remaining() / 2)))
    if _settles_for_modern(probe):
        modern.finish(probe, deadline)
        return modern
    handshake = legacy.begin(deadline)
    if not probe.done and _is_modern_after_all(connection, probe, handshake, deadline):
        connection.forget(handshake)
        modern.finish(probe, deadline)
        return modern
    connection.forget(probe)
    legacy.finish(handshake, deadline)
    return legacy


def _is_modern_after_all(
    connection: Connection, probe: Pending, handshake: Pending, deadline: Deadline
) -> bool:
    """Both questions are out: a result to either settles it, or an error to the first one."""
    waiting = [handshake, probe]
    while (first := connection.settle_any(waiting, deadline)) is not None:
        if first is probe:
            return _settles_for_modern(probe)
        if first.answer is not None and first.answer.kind is Kind.RESULT:
            return False
        waiting.remove(first)
    return False


def _settles_for_modern(probe: Pending) -> bool:
    if probe.failure is not None and probe.failure.kind in _FATAL:
        raise probe.failure
    return probe.answer is not None and is_modern(probe.answer)


def speaks_the_old_transport(error: PeerError, status: int | None) -> bool:
    """Whether a refused POST means that the server may still speak HTTP+SSE."""
    return error.kind in {ErrorKind.HTTP_STATUS, ErrorKind.PROTOCOL} and status in {400, 404, 405}
