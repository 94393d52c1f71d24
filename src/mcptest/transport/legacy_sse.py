"""The HTTP+SSE transport of 2024-11-05: one GET stream from the server, POSTs towards it.

The first event names the URL for the POSTs. It has to be on the server that the user named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcptest.model.capture import (
    AnyRecord,
    HttpResponse,
    SseEvent,
    StreamEnd,
    TransportName,
    Trouble,
)
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.model.show import show
from mcptest.transport.base import NO_HEADERS, Clock, Sink
from mcptest.transport.http_channel import HttpChannel
from mcptest.transport.url import Url, parse_url


class LegacySse:
    """One SSE stream with its POST endpoint. All messages of the server come on that stream."""

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        headers: Mapping[str, str] = NO_HEADERS,
        limits: Limits = DEFAULT_LIMITS,
        allow_hosts: Collection[str] = (),
    ) -> None:
        self._url = parse_url(url)
        # One POST at a time: over several connections the messages could overtake each other,
        # and here, unlike in streamable HTTP, they are one ordered conversation.
        self._channel = HttpChannel(self._url, sink, Clock(), limits, headers, allow_hosts, 1)
        self._stream = 0
        self._endpoint: Url | None = None
        self._ready: list[AnyRecord] = []
        self._ended: PeerError | None = None

    @property
    def name(self) -> TransportName:
        return "sse"

    @property
    def peer(self) -> str:
        return str(self._url)

    def open(self, deadline: Deadline) -> None:
        """GET the stream and wait for the event that says where to POST."""
        self._channel.open(deadline)
        self._stream = self._channel.send("GET", self._url, deadline, NO_HEADERS)
        while self._endpoint is None:
            records = self._channel.receive(deadline)
            self._ready += records
            for record in records:
                self._note(record)
            if self._endpoint is None and self._ended is not None:
                raise self._ended
            if not records:
                raise self._no_endpoint(deadline)

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """POST one message; the answer comes on the one stream, so there is no number to return."""
        if self._endpoint is None:
            raise PeerError(ErrorKind.CLOSED, "no endpoint to POST to: the stream is not open")
        self._channel.send(
            "POST", self._endpoint, deadline, headers, payload, only_acknowledged=True
        )

    def partial(self) -> str:
        """What has come of an answer that is not complete, as a clause."""
        return self._channel.partial()

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """As everywhere; once the stream has ended and is drained, PeerError is raised."""
        if self._ready:
            ready, self._ready = self._ready, []
            return ready
        if self._ended is not None:
            raise self._ended
        records = self._channel.receive(deadline)
        for record in records:
            self._note(record)
        return records

    def close(self, deadline: Deadline) -> None:
        self._channel.close()

    def _note(self, record: AnyRecord) -> None:
        """Follow what happens on the one stream that everything depends on."""
        if isinstance(record, SseEvent):
            if record.stream == self._stream and record.sse.event == "endpoint":
                self._take_endpoint(record.data)
        elif isinstance(record, Trouble):
            if record.stream == self._stream:
                self._ended = PeerError(ErrorKind(record.error), self._say(record))
        elif isinstance(record, StreamEnd) and record.stream == self._stream:
            how = "ended" if record.complete else "was cut off"
            before = "" if self._endpoint else " before it named an endpoint"
            self._ended = self._ended or PeerError(
                ErrorKind.CLOSED, f"the event stream of {self._url} {how}{before}"
            )

    def _take_endpoint(self, reference: str) -> None:
        if self._endpoint is not None:
            return  # recorded; a second one changes nothing
        try:
            endpoint = self._url.join(reference)
        except ValueError as error:
            why = f"the endpoint {show(reference, 120)!r} is no URL to POST to: {error}"
            raise PeerError(ErrorKind.ADDRESS_REFUSED, why) from None
        if not self._channel.egress.permits(endpoint.origin):
            where = show(str(endpoint), 120)
            why = f"the endpoint {where} is on another server than {self._url.origin}"
            raise PeerError(ErrorKind.ADDRESS_REFUSED, why, hint="allow the host if you trust it")
        self._endpoint = endpoint

    def _say(self, trouble: Trouble) -> str:
        return f"{self._url}: {trouble.in_words}"

    def _no_endpoint(self, deadline: Deadline) -> PeerError:
        came = [record for record in self._ready if isinstance(record, HttpResponse | SseEvent)]
        what = "no response came" if not came else "a response came, but no endpoint event"
        message = f"{self._url} named no endpoint within {deadline.limit:g} s: {what}"
        return PeerError(ErrorKind.TIMEOUT, message, hint="is this the URL of an SSE stream?")
