"""A server inside this process, for tests: a function from one message to its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from mcptest.core.capture import AnyRecord, Frame, TransportName
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.base import NO_HEADERS, Clock, Sink

Handler: TypeAlias = Callable[[bytes], Iterable[bytes]]


class Memory:
    """A transport whose server answers while we send."""

    name: TransportName = "memory"

    def __init__(
        self, handler: Handler, *, sink: Sink, clock: Callable[[], float] | None = None
    ) -> None:
        self._handler = handler
        self._sink = sink
        self._clock = clock or Clock()
        self._inbox: list[AnyRecord] = []
        self._closed = False

    def open(self, deadline: Deadline) -> None:
        """There is nothing to start."""

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int | None:
        if self._closed:
            raise PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        self._sink(Frame(t=self._clock(), sender="client", raw=payload))
        for answer in self._handler(payload):
            record = Frame(t=self._clock(), sender="server", raw=answer)
            self._sink(record)
            self._inbox.append(record)
        return None

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """What was answered so far. With nothing there nothing can come, so nobody waits."""
        if self._closed and not self._inbox:
            raise PeerError(ErrorKind.CLOSED, "the connection to the server is not open")
        inbox, self._inbox = self._inbox, []
        return inbox

    def close(self, deadline: Deadline) -> None:
        self._closed = True
