"""One request on its way to the server, and its answer on its way back.

Bodies pass piece by piece as they come; whoever is slower makes the other wait. Each request has a
connection of its own, so that no idle one can be found closed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.transport.egress import Address, start_connect
from mcptest.transport.http_connection import READ, Connection, LostError
from mcptest.transport.proxy_answer import AnswerWriter, Downstream
from mcptest.transport.proxy_guard import upstream_head
from mcptest.transport.proxy_record import ExchangeRecord
from mcptest.transport.proxy_requests import RequestHead
from mcptest.transport.url import Origin
from mcptest.wire.fault import WireError
from mcptest.wire.http1 import Head, ResponseReader

if TYPE_CHECKING:
    import socket
    import ssl

CONNECT_SECONDS = 10.0
_HELD_BACK = 64 * 1024


class Watch(Protocol):
    """The part of the loop that an exchange needs."""

    def __call__(
        self, sock: socket.socket, events: int, ready: Callable[[int], None] | None
    ) -> None: ...


class Route(msgspec.Struct, frozen=True):
    """Where requests go, and how they get there."""

    server: Origin
    ours: Origin
    addresses: tuple[Address, ...]
    extra: Mapping[str, str]
    watch: Watch
    tls: ssl.SSLContext | None = None


class Exchange:
    """Alive until the client was answered, refused or cut off, or `close` was called."""

    def __init__(
        self, head: RequestHead, client: Downstream, route: Route, record: ExchangeRecord
    ) -> None:
        self._client = client
        self._route = route
        self._record = record
        self._answer = AnswerWriter(head, client, route.server)
        self._chunked = head.header("transfer-encoding") is not None
        self._wire = bytearray(upstream_head(head, route.server, route.ours, route.extra))
        self._reader = ResponseReader(head.method)
        self._request_done = False
        self._addresses = list(route.addresses)
        self._connection: Connection | None = None
        self._began = time.monotonic()

    def start(self) -> None:
        self._connect(LostError(ErrorKind.CONNECTION_REFUSED, "it has no address"))

    # -- towards the server ----------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether the client has seen the beginning of an answer."""
        return self._answer.began

    @property
    def wants_more(self) -> bool:
        """Whether the server keeps up with the body."""
        unsent = self._connection is not None and self._connection.has_unsent
        return not unsent and len(self._wire) < _HELD_BACK

    def body(self, piece: bytes) -> None:
        self._record.body(piece)
        self._wire += b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
        self._push()

    def finish_request(self) -> None:
        self._record.sent()
        self._request_done = True
        if self._chunked:
            self._wire += b"0\r\n\r\n"
        self._push()

    def _connect(self, why: LostError) -> None:
        while self._addresses:
            try:
                sock, code = start_connect(self._addresses.pop(0))
            except OSError as error:  # out of descriptors, or a family that is not there
                why = LostError(ErrorKind.CONNECTION_REFUSED, error.strerror or str(error))
                continue
            if code in {0, errno.EINPROGRESS}:
                try:
                    self._connection = Connection(
                        self._route.server, sock, connected=code == 0, tls=self._route.tls
                    )
                except PeerError as error:
                    why = LostError(error.kind, error.message)
                    continue
                self._push()
                return
            sock.close()
            why = LostError(ErrorKind.CONNECTION_REFUSED, os.strerror(code))
        self._lost(LostError(why.kind, f"can't connect to {self._route.server}: {why.why}"))

    def _push(self) -> None:
        connection = self._connection
        if connection is None:
            return
        if connection.established and self._wire and not connection.has_unsent:
            data = bytes(self._wire)
            self._wire.clear()
            connection.write(data)
        self.rewatch()

    def rewatch(self) -> None:
        """Wait for what can be used now; called when the client took some of its answer, too."""
        connection = self._connection
        if connection is None:
            return
        paused = connection.established and self._client.is_full
        events = connection.events & ~READ if paused else connection.events
        self._route.watch(connection.sock, events, self._ready)

    def check_time(self, now: float) -> None:
        connection = self._connection
        late = now - self._began > CONNECT_SECONDS
        if connection is not None and not connection.established and late:
            self._drop()
            why = f"no connection to {self._route.server} within {CONNECT_SECONDS:g} s"
            self._lost(LostError(ErrorKind.TIMEOUT, why))

    def close(self, why: str) -> None:
        """The client is not there any more, or we are about to leave."""
        if self._connection is not None:
            self._drop()
            self._record.cut(why)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._route.watch(connection.sock, 0, None)
            connection.close()

    # -- from the server -------------------------------------------------------------------

    def _ready(self, events: int) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if not connection.establish():
                self.rewatch()
                return
            if connection.has_unsent:
                connection.flush()
            self._push()
            if events & READ:
                self._read(connection)
        except LostError as lost:
            connecting = not connection.established
            self._drop()
            if connecting:
                self._connect(lost)
            else:
                self._lost(lost)
            return
        if self._connection is not None:
            self.rewatch()
            if self.wants_more:
                self._client.go_on()

    def _read(self, connection: Connection) -> None:
        while True:
            data = connection.read()
            if data is None:
                return
            if not data:
                self._server_closed()
                return
            self._take(data)
            # What TLS has decrypted already would not wake us up again.
            if self._connection is None or not connection.buffers:
                return

    def _take(self, data: bytes) -> None:
        for event in self._reader.feed(data):
            if isinstance(event, Head):
                self._record.head(event)
                self._answer.head(event, request_done=self._request_done)
            elif isinstance(event, bytes):
                self._record.data(event)
                self._answer.data(event)
            else:
                self._finish()
        if self._reader.fault is not None and self._connection is not None:
            fault = self._reader.fault
            self._drop()
            self._broken(fault)

    def _server_closed(self) -> None:
        try:
            self._reader.finish()
        except WireError as fault:
            self._drop()
            self._broken(fault)
        else:
            self._finish()

    def _finish(self) -> None:
        self._drop()
        self._record.end(self._reader.rest)
        self._answer.finish()

    def _lost(self, lost: LostError) -> None:
        self._broken(WireError(lost.kind, lost.why))

    def _broken(self, fault: WireError) -> None:
        self._record.fail(fault.kind, fault.detail, fault.excerpt)
        if self.is_answering:
            self._client.cut()
        else:
            self._client.refuse(502, f"{self._route.server}: {fault.detail}")
