"""Listening on one address, who may talk to us there, and what is accepted: servers and proxies.

It accepts so many connections and no more, and never at the price of the whole server. A connection
reads requests of HTTP and sends what it is given as the client takes it; what a request means, and
what answers it, is for those who derive from it.
"""

from __future__ import annotations

import re
import socket
import time

from mcptest.transport.loop import GONE, READ, WRITE
from mcptest.wire.http1 import UNLIMITED, RequestReader

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcptest.transport.loop import Loop

    Forget = Callable[["AcceptedConnection"], None]

MAX_HEAD_BYTES = 64 * 1024
REQUEST_SECONDS = 15.0
"""For a request to become whole."""
IDLE_SECONDS = 75.0
LINGER_SECONDS = 2.0
TICK = 1.0
"""How often it is looked whether a client is late."""
_EARLY = 64 * 1024
"""How much of the next requests is read while one is still being answered."""
_SENT_BYTES = 256 * 1024


# -- Who may talk to us ----------------------------------------------------------------------------

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  compared with, never bound to
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:@/?#\s,]+))(?::[0-9]*)?")


def foreign_header(headers: Iterable[tuple[str, str]], bound_to: str) -> tuple[str, str] | None:
    """The first Host or Origin that is not ours: so a web page of another site gives itself away.

    It does by its own name, and where it got here by DNS rebinding. No user name may stand in
    either: to some readers `localhost@evil.example` is one host, and to others the other.
    """
    for name, value in headers:
        field, authority = name.capitalize(), value
        if field == "Origin":
            scheme, _, authority = value.partition("://")
            authority = authority if scheme in {"http", "https"} else ""
        if field in {"Host", "Origin"} and not _is_our_name(authority.lower(), bound_to):
            return field, value
    return None


def _is_our_name(authority: str, bound_to: str) -> bool:
    named = _AUTHORITY.fullmatch(authority)
    if named is None:
        return False
    host = named[1] or named[2]
    if host in LOOPBACK or host == bound_to.lower():
        return True
    # Rebinding needs a name: on a wildcard address any bare address is fine.
    for family in (socket.AF_INET, socket.AF_INET6) if bound_to in _WILDCARDS else ():
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False


# -- What is accepted ------------------------------------------------------------------------------


class AcceptedConnection:
    """One client: its requests, and the bytes that it has not taken yet."""

    stall_seconds = 30.0
    """How long it may take none of them."""
    read_bytes = 64 * 1024

    def __init__(
        self, loop: Loop, sock: socket.socket, closed: Forget, body_bytes: int = UNLIMITED
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._closed = closed
        self._reader = RequestReader(MAX_HEAD_BYTES, body_bytes)
        self._out = bytearray()
        self._events = 0
        self._closing = False
        """No further request is read: the connection ends with what is in `_out`."""
        self._half_closed = False
        """The client sends no more, and may still be reading an answer that was given."""
        self._lingering = False
        """The last answer was sent; what still comes is thrown away."""
        self._since = time.monotonic()
        """When there was progress last."""
        self._timer = loop.after(TICK, self._check_time)
        self.open = True
        self._rewatch()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or passed on."""
        raise NotImplementedError

    @property
    def waits_for_request(self) -> bool:
        """Whether it is the client who keeps us waiting for the rest of a request."""
        return not self.is_busy and not self._reader.is_between_requests

    def came(self, data: bytes) -> None:
        """Some more of the requests; nothing when the reader has given one up."""
        raise NotImplementedError

    def gone(self) -> None:
        """The connection has ended, whatever was still to be said."""
        raise NotImplementedError

    @property
    def waits_for_client(self) -> bool:
        """Nothing is being answered: closing it breaks no promise."""
        return not self.is_busy and not self._out

    @property
    def held(self) -> int:
        """Bytes that wait here, to be read by us or by the client."""
        return self._reader.held + len(self._out)

    def write(self, data: bytes) -> None:
        if not self._out:
            self._since = time.monotonic()
        self._out += data
        self._flush()

    def close(self) -> None:
        """End the connection at once."""
        if self.open:
            self.open = False
            self._timer.cancel()
            self._loop.ignore(self._socket.fileno())
            self._socket.close()
            self.gone()
            self._closed(self)

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if self.open and events & (READ | GONE):
            self._read()

    def _read(self) -> None:
        try:
            data = self._socket.recv(self.read_bytes)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data and self._out and not self.is_busy and not self._lingering:
            self._closing = self._half_closed = True
        elif not data:
            self.close()
        elif not self._closing:  # else it is thrown away
            if self._reader.is_between_requests:
                self._since = time.monotonic()
            self.came(data)
        self._rewatch()

    def _flush(self) -> None:
        if not self.open:
            return
        try:
            while self._out:
                sent = self._socket.send(memoryview(self._out)[:_SENT_BYTES])
                del self._out[:sent]
                self._since = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if self._closing and not self.is_busy:
            self._end_after_this()
        self._rewatch()

    def _end_after_this(self) -> None:
        """Let the client read the answer: closing on unread bytes would reset the connection."""
        self._closing = True
        if not self.open or self._out or self._lingering:
            return
        self._lingering = True
        self._since = time.monotonic()
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._half_closed = True
        if self._half_closed:
            self.close()

    def _rewatch(self) -> None:
        if not self.open:
            return
        full = self.is_busy and self._reader.held >= _EARLY
        events = (0 if full or self._half_closed else READ) | (WRITE if self._out else 0)
        if events != self._events:
            self._events = events
            self._loop.watch(self._socket.fileno(), events, self._ready)

    def _check_time(self) -> None:
        self._timer = self._loop.after(TICK, self._check_time)
        waited = time.monotonic() - self._since
        if self._lingering or self._out:
            if waited > (LINGER_SECONDS if self._lingering else self.stall_seconds):
                self.close()
        elif self.waits_for_request:
            if waited > REQUEST_SECONDS:
                self._reader.give_up()
                self.came(b"")
        elif not self.is_busy and waited > IDLE_SECONDS:
            self.close()


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
        connect: Callable[[socket.socket, Forget], AcceptedConnection],
        *,
        makes_room: bool = False,
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._makes_room = makes_room
        self._connections: dict[AcceptedConnection, None] = {}
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=128)
        self._socket.setblocking(False)
        self._listen()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def connections(self) -> tuple[AcceptedConnection, ...]:
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

    def _forget(self, connection: AcceptedConnection) -> None:
        self._connections.pop(connection, None)
