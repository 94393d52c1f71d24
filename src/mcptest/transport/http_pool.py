"""Keep-alive connections to the servers of one transport, in one selector.

Knows which connections there are, which of them are idle, and what the selector waits for. What
is sent and read over them is the business of the exchanges.
"""

from __future__ import annotations

import errno
import os
import selectors
from typing import TYPE_CHECKING

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.transport.egress import Egress, start_connect
from mcptest.transport.http_connection import Connection, LostError
from mcptest.transport.url import Origin

if TYPE_CHECKING:
    import ssl


class ConnectionPool:
    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._selector = selectors.DefaultSelector()
        self._connections: set[Connection] = set()
        self._idle: dict[Origin, list[Connection]] = {}
        self._paused: list[Connection] = []
        self._tls: ssl.SSLContext | None = None

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._connections

    def select(self, seconds: float) -> list[tuple[Connection, int]]:
        """The connections on which something can be done now."""
        return [(key.data, events) for key, events in self._selector.select(seconds)]

    def has_established(self, origin: Origin) -> bool:
        return any(each.established and each.origin == origin for each in self._connections)

    def take_idle(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        return idle.pop() if idle else None

    def rest(self, connection: Connection) -> None:
        """Keep a connection for the next exchange."""
        connection.exchange = None
        self._idle.setdefault(connection.origin, []).append(connection)

    def first(self, origin: Origin, deadline: Deadline) -> Connection:
        """Connect and wait until requests can be written. Raises PeerError."""
        sock = self._egress.connect(origin, deadline)
        connection = Connection(origin, sock, connected=True, tls=self._tls_for(origin))
        try:
            while not connection.establish():
                if deadline.expired:
                    message = f"TLS with {origin} was not agreed within {deadline.limit:g} s"
                    raise PeerError(ErrorKind.TIMEOUT, message, hint=_TLS_HINT)
                _wait(connection, deadline)
        except LostError as lost:
            connection.close()
            hint = _TLS_HINT if lost.kind is ErrorKind.TLS else _HINT
            raise PeerError(lost.kind, f"{origin}: {lost.why}", hint=hint) from None
        except PeerError:
            connection.close()
            raise
        return self._adopt(connection)

    def another(self, origin: Origin) -> Connection:
        """A further connection, on its way to the address that the first one has pinned."""
        address = self._egress.address(origin)
        assert address is not None
        try:
            sock, code = start_connect(address)
        except OSError as error:
            raise _no_more(origin, error.errno or 0) from None
        if code not in {0, errno.EINPROGRESS}:
            sock.close()
            raise _no_more(origin, code)
        tls = self._tls_for(origin)
        return self._adopt(Connection(origin, sock, connected=code == 0, tls=tls))

    def watch(self, connection: Connection) -> None:
        """Bring the selector up to date with what the connection waits for."""
        if connection.watched != connection.events and connection not in self._paused:
            connection.watched = connection.events
            self._selector.modify(connection.sock, connection.events, connection)

    def discard(self, connection: Connection | None) -> None:
        if connection is None or connection not in self._connections:
            return
        self._connections.discard(connection)
        idle = self._idle.get(connection.origin, [])
        if connection in idle:
            idle.remove(connection)
        if connection in self._paused:
            self._paused.remove(connection)
        else:
            self._selector.unregister(connection.sock)
        connection.close()

    def pause(self, connection: Connection) -> None:
        """Leave what comes on a connection unread, so that the server has to wait."""
        self._selector.unregister(connection.sock)
        self._paused.append(connection)

    def resume(self) -> None:
        """Read on from all connections that were paused."""
        for connection in self._paused:
            connection.watched = connection.events
            self._selector.register(connection.sock, connection.events, connection)
        self._paused.clear()

    def close(self) -> None:
        for connection in list(self._connections):
            self.discard(connection)
        self._selector.close()

    def _adopt(self, connection: Connection) -> Connection:
        self._connections.add(connection)
        connection.watched = connection.events
        self._selector.register(connection.sock, connection.events, connection)
        return connection

    def _tls_for(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.scheme != "https":
            return None
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls


_HINT = "is the server running, and is the port right?"
_TLS_HINT = "does the server speak TLS on this port, with a certificate for this name?"


def _wait(connection: Connection, deadline: Deadline) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, connection.events)
        selector.select(deadline.remaining())


def _no_more(origin: Origin, code: int) -> PeerError:
    message = f"no further connection to {origin}: {os.strerror(code)}"
    return PeerError(ErrorKind.CONNECTION_REFUSED, message, hint=_HINT)
