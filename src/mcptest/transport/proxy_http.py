"""Sitting on loopback between HTTP clients and a server: one loop, many connections.

Everything is passed on the moment it comes, and recorded. Only who is on this machine is served.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcptest.model.deadline import Deadline
from mcptest.model.errors import UsageError
from mcptest.transport.base import NO_HEADERS
from mcptest.transport.egress import usable_addresses
from mcptest.transport.proxy_client import READ, Client
from mcptest.transport.proxy_exchange import Exchange, Route
from mcptest.transport.proxy_guard import LOOPBACK
from mcptest.transport.proxy_record import Copies, ExchangeRecord
from mcptest.transport.proxy_requests import RequestHead
from mcptest.transport.url import Origin, Url

if TYPE_CHECKING:
    import ssl

MAX_CLIENTS = 256
_TICK = 1.0
"""How often it is looked whether somebody is late."""
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class HttpProxy:
    """Listens from the moment it is made; serves while `run` runs."""

    def __init__(
        self,
        url: Url,
        copies: Copies,
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        headers: Mapping[str, str] = NO_HEADERS,
        flush: Callable[[], None] = lambda: None,
        startup: float = 10.0,
    ) -> None:
        self._copies = copies
        self._flush = flush
        self._clients: dict[Client, None] = {}
        addresses = tuple(usable_addresses(url.origin, Deadline.after(startup)))
        self._socket = _listening(listen)
        port = self._socket.getsockname()[1]
        self.origin = Origin("http", listen[0], port)
        self.url = f"{self.origin}{url.target}"
        if url.origin.port == port and url.origin.host in LOOPBACK:
            self._socket.close()
            raise UsageError(f"the proxy would be its own server: {url.origin}")
        self._selector = selectors.DefaultSelector()
        self._wake, self._stop = os.pipe()
        self._stopped = False
        tls = _tls_context() if url.origin.scheme == "https" else None
        self._route = Route(url.origin, self.origin, addresses, headers, self._watch, tls)
        self._listen()
        self._selector.register(self._wake, READ, self._woken)

    def run(self, until: Deadline | None = None) -> bool:
        """Serve until `stop` is called; True when `until` has passed instead."""
        last_look = time.monotonic()
        while not self._stopped and not (until is not None and until.expired):
            self._flush()
            for key, events in self._selector.select(self._longest_wait(until)):
                key.data(events)
            now = time.monotonic()
            if now - last_look >= _TICK:
                last_look = now
                self._look_at_the_clock(now)
        return not self._stopped

    def stop(self) -> None:
        """May be called from a signal handler or another thread."""
        with contextlib.suppress(OSError):  # gone already
            os.write(self._stop, b".")

    def close(self) -> None:
        """Cut off whoever is still there, and let go of the port."""
        for client in tuple(self._clients):
            client.close("still open when the proxy was stopped")
        self._flush()
        self._selector.close()
        self._socket.close()
        os.close(self._wake)
        os.close(self._stop)

    # -- the loop --------------------------------------------------------------------------

    def _longest_wait(self, until: Deadline | None) -> float | None:
        waits = [_TICK] if self._clients or not self._is_listening() else []
        waits += [until.remaining()] if until is not None else []
        return min(waits, default=None)

    def _look_at_the_clock(self, now: float) -> None:
        for client in tuple(self._clients):
            client.check_time(now)
        if not self._is_listening():
            self._listen()

    def _watch(self, sock: socket.socket, events: int, ready: Callable[[int], None] | None) -> None:
        known = self._selector.get_map().get(sock)
        if not events:
            if known is not None:
                self._selector.unregister(sock)
        elif known is None:
            self._selector.register(sock, events, ready)
        elif known.events != events or known.data != ready:
            self._selector.modify(sock, events, ready)

    def _woken(self, events: int) -> None:
        os.read(self._wake, 1)
        self._stopped = True

    # -- who comes -------------------------------------------------------------------------

    def _is_listening(self) -> bool:
        return self._selector.get_map().get(self._socket) is not None

    def _listen(self) -> None:
        self._selector.register(self._socket, READ, self._accept)

    def _accept(self, events: int) -> None:
        try:
            sock, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:
            # The client left again, or we are out of descriptors: asking at once would spin.
            self._selector.unregister(self._socket)
            return
        if len(self._clients) >= MAX_CLIENTS:
            with sock, contextlib.suppress(OSError):
                sock.send(_BUSY)
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client = Client(
            sock,
            self._watch,
            self._begin,
            refused=self._refused,
            closed=self._forget,
        )
        self._clients[client] = None

    def _forget(self, client: Client) -> None:
        self._clients.pop(client, None)

    def _begin(self, head: RequestHead, client: Client) -> Exchange:
        record = ExchangeRecord(self._copies, head, self._route.server)
        return Exchange(head, client, self._route, record)

    def _refused(self, text: str) -> None:
        self._copies.book.note(text, self._copies.clock())


def _listening(address: tuple[str, int]) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"can't listen on {host}, port {port}: {reason}") from None
    listener.setblocking(False)
    return listener


def _tls_context() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()
