"""One non-blocking connection to an HTTP server, plain or TLS. It knows bytes, not messages."""

from __future__ import annotations

import errno
import os
import selectors
import socket
from typing import TYPE_CHECKING, cast

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import show
from mcptest.transport.url import Origin

if TYPE_CHECKING:
    import ssl

    from mcptest.transport.http_exchanges import Exchange

READ_SIZE = 64 * 1024
READ = selectors.EVENT_READ
READ_WRITE = selectors.EVENT_READ | selectors.EVENT_WRITE


class LostError(Exception):
    """The connection failed: why, for people."""

    def __init__(self, kind: ErrorKind, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = why


class Connection:
    """Connects, shakes hands, writes what it was given and reads what there is."""

    __slots__ = (
        "_tls",
        "_unsent",
        "broken",
        "established",
        "events",
        "exchange",
        "origin",
        "sock",
        "used",
        "watched",
    )

    def __init__(
        self,
        origin: Origin,
        sock: socket.socket,
        *,
        connected: bool,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.origin = origin
        self.sock = sock
        self.exchange: Exchange | None = None
        self.used = False
        """Has carried a whole exchange before: a server may close such a connection any time."""
        self.broken = False
        """The server takes no more bytes; what it has said may still be read."""
        self._unsent: bytes | memoryview = b""
        self._tls = tls is not None
        self.established = connected and not self._tls
        self.events = READ if self.established else READ_WRITE
        """What to wait for; `watched` is what the selector was last told."""
        self.watched = 0
        if tls is not None:
            self.sock = _wrap(sock, tls, origin)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def establish(self) -> bool:
        """Go on connecting. True once requests can be written; raises LostError."""
        if self.established:
            return True
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise _lost(OSError(code, os.strerror(code)), connecting=True)
        self.established = self._shake_hands() if self._tls else self._is_connected()
        if self.established:
            self.events = READ
        return self.established

    def _is_connected(self) -> bool:
        try:
            self.sock.getpeername()
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                return False
            raise _lost(error, connecting=True) from None
        return True

    def _shake_hands(self) -> bool:
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
            raise LostError(ErrorKind.TLS, _why_tls(error)) from None
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
        """What has arrived; b"" at the peer's end, None when there is nothing. Raises LostError."""
        try:
            return self.sock.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError as error:
            if self._only_waits(error):
                return None
            raise _lost(error) from None

    @property
    def buffers(self) -> bool:
        """TLS may hold decrypted bytes that the selector does not see."""
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


def _wrap(sock: socket.socket, tls: ssl.SSLContext, origin: Origin) -> socket.socket:
    try:
        return tls.wrap_socket(sock, server_hostname=origin.host, do_handshake_on_connect=False)
    except (OSError, ValueError) as error:
        sock.close()
        raise PeerError(ErrorKind.TLS, f"TLS with {origin} can't start: {error}") from None


def _why_tls(error: ssl.SSLError) -> str:
    reason = getattr(error, "verify_message", None) or error.reason or str(error)
    return f"TLS failed: {show(str(reason), 120)}"


def _lost(error: OSError, *, connecting: bool = False) -> LostError:
    why = error.strerror or str(error)
    if error.errno == errno.ECONNREFUSED:
        return LostError(ErrorKind.CONNECTION_REFUSED, f"the connection was refused: {why}")
    doing = "no connection" if connecting else "the connection broke"
    return LostError(ErrorKind.CONNECTION_LOST, f"{doing}: {show(why, 120)}")
