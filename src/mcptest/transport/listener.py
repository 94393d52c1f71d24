"""Listening on one address: the one place that accepts connections, for servers and proxies.

It accepts so many connections and no more, and never at the price of the whole server.
"""

from __future__ import annotations

import socket

from mcptest.transport.loop import READ

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mcptest.transport.loop import Loop

    class Accepted(Protocol):
        """One connection, as the listener sees it."""

        @property
        def waits_for_client(self) -> bool:
            """Nothing is being answered: closing it breaks no promise."""

        @property
        def held(self) -> int:
            """Bytes that wait here, to be read by us or by the client."""

        def close(self) -> None: ...

    Forget = Callable[[Accepted], None]


MAX_CONNECTIONS = 256
ACCEPT_PAUSE_SECONDS = 0.1
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Listener:
    """Listens on one address. `connect` makes a connection of what was accepted.

    When there are as many connections as may be, the next is turned away; or, with `makes_room`, an
    older one that says nothing is closed.
    """

    def __init__(
        self,
        loop: Loop,
        address: tuple[str, int],
        connect: Callable[[socket.socket, Forget], Accepted],
        *,
        makes_room: bool = False,
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._makes_room = makes_room
        self._connections: dict[Accepted, None] = {}
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=128)
        self._socket.setblocking(False)
        self._listen()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def connections(self) -> tuple[Accepted, ...]:
        """Those that are open, the longest first."""
        return tuple(self._connections)

    def close(self) -> None:
        self._loop.ignore(self._socket.fileno())
        self._socket.close()
        for connection in self.connections:
            connection.close()

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.watch(self._socket.fileno(), READ, self._accept)

    def _accept(self, events: int) -> None:
        try:
            sock, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:
            # The client left again, or we are out of descriptors: asking at once would spin.
            self._loop.ignore(self._socket.fileno())
            self._loop.after(ACCEPT_PAUSE_SECONDS, self._listen)
            return
        if len(self._connections) >= MAX_CONNECTIONS and not self._make_room():
            with sock:
                try:
                    sock.send(_FULL)
                except OSError:
                    return  # it left before it could be told
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._connections[self._connect(sock, self._forget)] = None

    def _make_room(self) -> bool:
        """A flood of connections that say nothing is to cost only those who say nothing."""
        for connection in self._connections if self._makes_room else ():
            if connection.waits_for_client:
                connection.close()
                return True
        return False

    def _forget(self, connection: Accepted) -> None:
        self._connections.pop(connection, None)
