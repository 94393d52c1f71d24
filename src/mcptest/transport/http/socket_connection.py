"""One non-blocking connection to an HTTP server, plain or TLS. It knows bytes, not messages."""

from __future__ import annotations

import errno
import functools
import os
import select
import socket
import sys
from typing import TYPE_CHECKING, cast

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.transport.egress import Address, Egress, Origin, start_connect
from mcptest.transport.loop import READ, WRITE, wait_for
from mcptest.wire.http1 import WireError

if TYPE_CHECKING:
    import ssl

    from mcptest.transport.http.exchanges import HttpExchange
    from mcptest.transport.target import KeptAlive

READ_SIZE = 64 * 1024
READ_WRITE = READ | WRITE
# of struct tcp_info (linux/tcp.h), whose first byte is the state
_CLOSE_WAIT = 8
_UNACKED = slice(24, 28)


class SocketConnection:
    """Connects, shakes hands, writes what it was given and reads what there is."""

    def __init__(
        self,
        origin: Origin,
        sock: socket.socket,
        *,
        connected: bool,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.sock = sock
        self.exchange: HttpExchange | None = None
        self.used = False
        """Has carried a whole exchange before: a server may close such a connection any time."""
        self.broken = False
        """The server takes no more bytes; what it has said may still be read."""
        self._unsent: bytes | memoryview = b""
        self._tls = tls is not None
        self.established = connected and not self._tls
        self.events = READ if self.established else READ_WRITE
        """What to wait for."""
        if tls is not None:
            try:
                self.sock = tls.wrap_socket(
                    sock, server_hostname=origin.host, do_handshake_on_connect=False
                )
            except (OSError, ValueError) as error:
                sock.close()
                raise PeerError(ErrorKind.TLS, f"TLS with {origin} can't start: {error}") from None

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def is_idle(self) -> bool:
        """Whether it has carried whole exchanges only, and could carry another."""
        is_free = self.exchange is None and not self.has_unsent
        return self.used and is_free and not self.broken

    def establish(self) -> bool:
        """Go on connecting. True once requests can be written; raises WireError."""
        if self.established:
            return True
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise _lost(OSError(code, os.strerror(code)), connecting=True)
        self.established = self._shake_hands()
        if self.established:
            self.events = READ
        return self.established

    def _shake_hands(self) -> bool:
        try:
            if not self._tls:
                self.sock.getpeername()
                return True
            import ssl

            try:
                cast("ssl.SSLSocket", self.sock).do_handshake()
            except ssl.SSLWantReadError:
                self.events = READ
                return False
            except ssl.SSLWantWriteError:
                self.events = READ_WRITE
                return False
            except ssl.SSLError as error:
                reason = getattr(error, "verify_message", None) or error.reason or str(error)
                raise WireError(ErrorKind.TLS, f"TLS failed: {show(str(reason), 120)}") from None
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                return False  # TCP itself is still on its way
            raise _lost(error, connecting=True) from None
        return True

    def write(self, data: bytes) -> None:
        """Queue bytes and send what the socket takes now."""
        self._unsent = data
        if self.established:
            self.flush()

    def flush(self) -> None:
        while self._unsent:
            try:
                sent = self.sock.send(self._unsent)
            except BlockingIOError:
                break
            except OSError as error:
                if not self._only_waits(error):
                    # Why is for the read side to say: an answer may be waiting there.
                    self.broken = True
                    self._unsent = b""
                break
            if sent == len(self._unsent):
                self._unsent = b""
                break
            self._unsent = memoryview(self._unsent)[sent:]
        self.events = READ_WRITE if self._unsent else READ

    def read(self) -> bytes | None:
        """What has arrived; b"" at the peer's end, None when there is nothing. Raises WireError."""
        try:
            return self.sock.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError as error:
            if self._only_waits(error):
                return None
            raise _lost(error) from None

    @property
    def was_taken(self) -> bool:
        """Whether the server read all that was sent before it closed; False where nobody knows.

        A socket that is closed before it has read everything is reset, and one that was closed
        already acknowledges nothing.
        """
        if self.has_unsent or self.broken or sys.platform != "linux":
            return False
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _UNACKED.stop)
        return info[0] == _CLOSE_WAIT and not any(info[_UNACKED])

    @property
    def buffers(self) -> bool:
        """TLS may hold decrypted bytes that `poll` does not see."""
        return self._tls and cast("ssl.SSLSocket", self.sock).pending() > 0

    def _only_waits(self, error: OSError) -> bool:
        """Did TLS only say that the socket is not ready yet?"""
        if not self._tls:
            return False
        import ssl

        return isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError)

    def close(self) -> None:
        self._unsent = b""
        self.sock.close()


def _lost(error: OSError, *, connecting: bool = False) -> WireError:
    why = error.strerror or str(error)
    if error.errno == errno.ECONNREFUSED:
        return WireError(ErrorKind.CONNECTION_REFUSED, f"the connection was refused: {why}")
    doing = "no connection" if connecting else "the connection broke"
    return WireError(ErrorKind.CONNECTION_LOST, f"{doing}: {show(why, 120)}")


# -- Keep-alive connections to the server of one transport, in one `poll` ------------------------


class ConnectionPool:
    def __init__(self, egress: Egress, kept: KeptAlive | None = None) -> None:
        """`kept`: where idle connections come from, and where they are left at the end."""
        self._egress = egress
        self._kept = kept
        self._poll = select.poll()
        self._connections: dict[int, SocketConnection] = {}
        """By the descriptors of their sockets."""
        self._paused: list[SocketConnection] = []

    def __contains__(self, connection: SocketConnection) -> bool:
        return self._connections.get(connection.sock.fileno()) is connection

    def select(self, seconds: float) -> list[tuple[SocketConnection, int]]:
        """The connections on which something can be done now."""
        ready = self._poll.poll(seconds * 1000)
        return [(self._connections[fd], events) for fd, events in ready]

    @property
    def has_established(self) -> bool:
        return any(each.established for each in self._connections.values())

    def find_idle(self) -> SocketConnection | None:
        """One that waits for its next exchange, the youngest first."""
        ours = reversed(self._connections.values())
        return next((each for each in ours if each.exchange is None and each.established), None)

    def first(self, deadline: Deadline) -> SocketConnection:
        """Connect and wait until requests can be written. Raises PeerError."""
        if (kept := self._kept_one()) is not None:
            return kept
        origin, sock = self._egress.origin, self._egress.connect(deadline)
        connection = SocketConnection(origin, sock, connected=True, tls=self._tls)
        try:
            while not connection.establish():
                if deadline.expired:
                    message = f"TLS with {origin} did not complete within {deadline.limit:g}s"
                    raise PeerError(ErrorKind.TIMEOUT, message, hint=_TLS_HINT)
                wait_for(connection.sock.fileno(), connection.events, deadline.remaining())
        except WireError as lost:
            connection.close()
            hint = _TLS_HINT if lost.kind is ErrorKind.TLS else _HINT
            raise PeerError(lost.kind, f"{origin}: {lost.detail}", hint=hint) from None
        except PeerError:
            connection.close()
            raise
        return self._adopt(connection)

    def another(self) -> SocketConnection:
        """A further connection, on its way to the address that the first one has pinned."""
        if (kept := self._kept_one()) is not None:
            return kept
        origin, address = self._egress.origin, self._egress.address
        assert address is not None
        try:
            sock, connected = start_connect(address)
        except OSError as error:
            message = f"no more connections to {origin}: {os.strerror(error.errno or 0)}"
            raise PeerError(ErrorKind.CONNECTION_REFUSED, message, hint=_HINT) from None
        return self._adopt(SocketConnection(origin, sock, connected=connected, tls=self._tls))

    def watch(self, connection: SocketConnection) -> None:
        """Wait for what the connection waits for now."""
        if connection not in self._paused:
            self._poll.register(connection.sock, connection.events)

    def discard(self, connection: SocketConnection | None) -> None:
        if connection is None or connection not in self:
            return
        del self._connections[connection.sock.fileno()]
        if connection in self._paused:
            self._paused.remove(connection)
        else:
            self._poll.unregister(connection.sock)
        connection.close()

    def pause(self, connection: SocketConnection) -> None:
        """Leave what comes on a connection unread, so that the server has to wait."""
        self._poll.unregister(connection.sock)
        self._paused.append(connection)

    def resume(self) -> None:
        """Read on from all connections that were paused."""
        paused, self._paused = self._paused, []
        for connection in paused:
            self.watch(connection)

    def close(self, *, keep: bool) -> None:
        self.resume()
        for connection in list(self._connections.values()):
            if keep and self._kept is not None and connection.is_idle:
                del self._connections[connection.sock.fileno()]
                self._poll.unregister(connection.sock)
                self._kept.give(self._egress.origin, connection)
            else:
                self.discard(connection)

    def _kept_one(self) -> SocketConnection | None:
        """A connection of an earlier session, if the server has not closed it meanwhile."""
        origin = self._egress.origin
        while self._kept is not None and (connection := self._kept.take(origin)) is not None:
            try:
                address = Address(connection.sock.family, connection.sock.getpeername())
                if connection.read() is None:
                    self._egress.address = address
                    return self._adopt(connection)
            except (OSError, WireError):
                pass  # it broke: another one will do
            connection.close()
        return None

    def _adopt(self, connection: SocketConnection) -> SocketConnection:
        self._connections[connection.sock.fileno()] = connection
        self.watch(connection)
        return connection

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext | None:
        return default_tls(self._egress.origin)


def default_tls(origin: Origin) -> ssl.SSLContext | None:
    if origin.scheme != "https":
        return None
    import ssl  # many milliseconds, which most peers don't need

    return ssl.create_default_context()


_HINT = "check that the server is running and the port is correct"
_TLS_HINT = "check that the server uses TLS on this port, with a certificate for this name"
