"""Accepting connections: so many and no more, and never at the price of the whole server."""

from __future__ import annotations

import socket

from mcptest.peer.demo.http_connection import HttpConnection
from mcptest.peer.demo.loop import READ

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcptest.peer.demo.http_requests import Request
    from mcptest.peer.demo.loop import Loop

MAX_CONNECTIONS = 256
ACCEPT_PAUSE_SECONDS = 0.1
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n"


class Listener:
    """Listens on one address.

    `greet` sees every connection before anything is read from it. When there are as many as may be,
    the next is turned away; or, with `makes_room`, an older one that says nothing is closed.
    """

    def __init__(
        self,
        loop: Loop,
        handle: Callable[[Request, HttpConnection], None],
        host: str,
        port: int,
        greet: Callable[[HttpConnection], None] | None = None,
        makes_room: bool = False,
    ) -> None:
        self._loop = loop
        self._handle = handle
        self._greet = greet
        self._makes_room = makes_room
        self._connections: dict[HttpConnection, None] = {}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=128)
        self._socket.setblocking(False)
        self._listen()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def connections(self) -> tuple[HttpConnection, ...]:
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
        except OSError:
            # The client left again, or we are out of descriptors: asking at once would spin.
            self._loop.ignore(self._socket.fileno())
            self._loop.after(ACCEPT_PAUSE_SECONDS, self._listen)
            return
        if len(self._connections) >= MAX_CONNECTIONS and not self._make_room():
            _turn_away(sock)
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = HttpConnection(self._loop, sock, self._handle, self._forget)
        self._connections[connection] = None
        if self._greet is not None:
            self._greet(connection)

    def _make_room(self) -> bool:
        """A flood of connections that say nothing is to cost only those who say nothing."""
        for connection in self._connections if self._makes_room else ():
            if connection.waits_for_client:
                connection.close()
                return True
        return False

    def _forget(self, connection: HttpConnection) -> None:
        self._connections.pop(connection, None)


def _turn_away(sock: Any) -> None:
    with sock:
        try:
            sock.send(_FULL)
        except OSError:
            return  # it left before it could be told
