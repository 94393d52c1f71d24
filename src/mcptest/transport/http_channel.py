"""Sending HTTP requests and collecting the records of all that comes back, for one server.

What the two HTTP transports share: stream numbers, the records that wait to be handed out, and
the rule that a sender never waits without reading.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcptest.model.capture import AnyRecord, Frame, HttpRequest, Leftover, Note, SseEvent
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.limits import Limits
from mcptest.transport.base import Clock, Sink
from mcptest.transport.egress import Egress
from mcptest.transport.http_answer import Answer
from mcptest.transport.http_exchanges import AT_ONCE, Exchange, Exchanges
from mcptest.transport.http_request import RequestWriter
from mcptest.transport.url import Url

_RECORD_OVERHEAD = 200


class HttpChannel:
    def __init__(
        self,
        url: Url,
        sink: Sink,
        clock: Clock,
        limits: Limits,
        headers: Mapping[str, str],
        allow_hosts: Collection[str],
        at_once: int = AT_ONCE,
    ) -> None:
        self._home = url
        self._sink = sink
        self._clock = clock
        self._limits = limits
        self._writer = RequestWriter(headers)
        self._foreign_writer = RequestWriter({})
        self.egress = Egress(url, allow_hosts)
        self._exchanges = Exchanges(self.egress, self._take, clock, limits, at_once)
        self._waiting: list[AnyRecord] = []
        self._waiting_bytes = 0
        self._streams = 0
        self._closed = False

    def open(self, deadline: Deadline) -> None:
        self._check_open()
        self._exchanges.warm_up(self._home.origin, deadline)

    def send(
        self,
        method: str,
        url: Url,
        deadline: Deadline,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        only_acknowledged: bool = False,
    ) -> int:
        """Send a request and return its stream, without waiting for the response."""
        self._check_open()
        while self._exchanges.is_backlogged and not deadline.expired:
            self._exchanges.poll(deadline.remaining())
        # The user's own headers may be secrets: they are for the server that was named only.
        writer = self._writer if url.origin == self._home.origin else self._foreign_writer
        request = writer.write(method, url, headers, body)
        self._streams += 1
        answer = Answer(self._streams, method, self._take, self._clock, self._limits)
        answer.only_acknowledges = only_acknowledged
        exchange = Exchange(self._streams, request, answer)
        self._exchanges.submit(exchange, deadline)
        if self._exchanges.is_writing(exchange):
            self._wait_for_write(exchange, deadline)
        return exchange.stream

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """Records of all streams in order; empty when the deadline passed first."""
        while not self._waiting:
            remaining = deadline.remaining()
            self._exchanges.poll(remaining)
            if not remaining:
                break
        records, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return records

    def partial(self) -> str:
        """What has come of an answer that is not complete, as a clause."""
        held = self._exchanges.held
        return f"{held} bytes of an unfinished response came" if held else ""

    def abandon(self, stream: int) -> None:
        self._exchanges.abandon(stream, "abandoned by the client")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._exchanges.close()
            self._waiting = []  # nobody will ask for it; the sink has it

    def _take(self, record: AnyRecord) -> None:
        """Every record passes here: to the capture first, then to whoever receives."""
        self._sink(record)
        if isinstance(record, Frame):
            if record.sender == "client":
                return
            self._waiting_bytes += len(record.raw)
        elif isinstance(record, SseEvent):
            self._waiting_bytes += len(record.data)
        elif isinstance(record, HttpRequest | Leftover | Note):
            return  # ours; only what came from the peer is handed out
        self._waiting_bytes += _RECORD_OVERHEAD
        self._waiting.append(record)

    def _wait_for_write(self, exchange: Exchange, deadline: Deadline) -> None:
        while self._exchanges.is_writing(exchange):
            if deadline.expired:
                self._exchanges.abandon(exchange.stream, "the request was not taken in time")
                message = f"{self._home} did not take the request within {deadline.limit:g} s"
                raise PeerError(ErrorKind.TIMEOUT, message, hint="the server does not read")
            # A flood on other streams must not fill the memory while this one is written.
            if self._waiting_bytes > self._limits.message_bytes:
                self._exchanges.wait_until_writable(exchange, deadline.remaining())
            else:
                self._exchanges.poll(deadline.remaining())

    def _check_open(self) -> None:
        if self._closed:
            raise PeerError(ErrorKind.CLOSED, "the transport was closed")
