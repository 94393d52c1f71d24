"""The two HTTP transports of MCP; the old one is carried by the new one's exchanges.

Streamable HTTP, both eras: each message is a POST, answers come as JSON or as an event stream.
HTTP+SSE of 2024-11-05: one GET stream from the server, whose first event names the URL for the
POSTs; it has to be on the server that the user named. A transport opens what it is asked to open
and nothing else: it never reconnects, resumes or polls by itself. What the peer did is told as
records; what to do about it is the client's.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcptest.core.capture import (
    AnyRecord,
    Frame,
    HttpRequest,
    HttpResponse,
    Leftover,
    Note,
    SseEvent,
    StreamEnd,
    TransportName,
    Trouble,
)
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import DEFAULT_LIMITS, Deadline, Limits
from mcptest.core.safe_text import show
from mcptest.transport.base import NO_HEADERS, Clock, Sink
from mcptest.transport.egress import Egress, Url, parse_url
from mcptest.transport.http.exchanges import AT_ONCE, Exchanges, HttpExchange, RequestWriter
from mcptest.transport.http.response import Answer
from mcptest.transport.http.socket_connection import ConnectionPool
from mcptest.transport.target import KeptAlive
from mcptest.wire.http1 import EXCERPT
from mcptest.wire.mcp_headers import hint_for_status, refusal_in_words

_RECORD_OVERHEAD = 200


class StreamableHttp:
    """One MCP endpoint. Many exchanges may be under way at once, each with its stream number."""

    name: TransportName = "http"

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        headers: Mapping[str, str] = NO_HEADERS,
        limits: Limits = DEFAULT_LIMITS,
        at_once: int = AT_ONCE,
        kept: KeptAlive | None = None,
    ) -> None:
        """`kept`: what earlier sessions left, and where this one leaves its connections."""
        self.url = parse_url(url)
        self._sink = sink
        self._clock = Clock()
        self._limits = limits
        self._writer = RequestWriter(headers)
        self._kept = kept
        pool = ConnectionPool(Egress(self.url.origin), kept)
        self._exchanges = Exchanges(pool, self._take, self._clock, limits, at_once)
        self._waiting: list[AnyRecord] = []
        """Records that wait to be handed out."""
        self._waiting_bytes = 0
        self._streams = 0
        self._standing = 0
        """The stream of the last GET of the endpoint."""
        self._closed = False
        self._was_answered = False
        """A message has come, so a connection to this server is worth keeping."""

    def open(self, deadline: Deadline) -> None:
        """Connect, so that a server that is not there is known before anything is sent."""
        self._check_open()
        self._exchanges.warm_up(deadline)

    # -- sending ---------------------------------------------------------------------------

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int:
        """POST one message. A header given as "" is left out; every other one can be replaced."""
        return self.request("POST", deadline, headers, payload)

    def request(
        self,
        method: str,
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
        *,
        target: str = "",
        only_acknowledged: bool = False,
    ) -> int:
        """Send any request and return its stream, without waiting for the response.

        A GET asks for the server's own stream, or takes up a broken one after its last event; a
        DELETE says that the session is over. It goes to the endpoint or another path of the same
        server, and there is no way to any other: the user's own headers may be secrets.
        """
        self._check_open()
        while self._exchanges.is_backlogged and not deadline.expired:
            self._exchanges.poll(deadline.remaining())
        url = Url(self.url.origin, target) if target else self.url
        request = self._writer.write(method, url, headers, body)
        self._streams += 1
        if method == "GET" and not target:
            self._standing = self._streams
        answer = Answer(
            self._streams, method, self._take, self._clock, self._limits, only_acknowledged
        )
        exchange = HttpExchange(self._streams, request, answer)
        self._exchanges.submit(exchange, deadline)
        while self._exchanges.is_writing(exchange):  # a sender never waits without reading
            if deadline.expired:
                self._exchanges.abandon(
                    exchange.stream, "the server did not accept the request in time"
                )
                message = f"{self.url} did not accept the request within {deadline.limit:g}s"
                raise PeerError(ErrorKind.TIMEOUT, message, hint="the server does not read")
            # A flood on other streams must not fill the memory while this one is written.
            if self._waiting_bytes > self._limits.message_bytes:
                self._exchanges.wait_until_writable(exchange, deadline.remaining())
            else:
                self._exchanges.poll(deadline.remaining())
        return exchange.stream

    def _check_open(self) -> None:
        if self._closed:
            raise PeerError(ErrorKind.CLOSED, "the transport was closed")

    @property
    def is_without_stream(self) -> bool:
        """Whether an earlier session has learned that a GET of this URL gets no stream."""
        return self._kept is not None and str(self.url) in self._kept.without_stream

    # -- receiving -------------------------------------------------------------------------

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """Records of all streams in order; empty when the deadline passed first.

        It is waited out also when nothing is under way: no loop can spin on it.
        """
        while not self._waiting:
            remaining = deadline.remaining()
            self._exchanges.poll(remaining)
            if not remaining:
                break
        records, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return records

    def _take(self, record: AnyRecord) -> None:
        """Every record passes here: to the capture first, then to whoever receives."""
        self._sink(record)
        if isinstance(record, Frame):
            if record.sender == "client":
                return
            self._was_answered = True
            self._waiting_bytes += len(record.raw)
        elif isinstance(record, SseEvent):
            self._waiting_bytes += len(record.data)
        elif isinstance(record, HttpRequest | Leftover | Note):
            return  # ours; only what came from the peer is handed out
        elif isinstance(record, HttpResponse) and self._kept and record.stream == self._standing:
            self._kept.learn(str(self.url), record.status)
        self._waiting_bytes += _RECORD_OVERHEAD
        self._waiting.append(record)

    @property
    def is_clogged(self) -> bool:
        """Whether very many requests wait for the server to take the ones before them."""
        return self._exchanges.is_backlogged

    def partial(self) -> str:
        """What has come of an answer that is not complete, as a clause."""
        held = self._exchanges.held
        return f"the server sent {held} bytes of an unfinished response" if held else ""

    def abandon(self, stream: int) -> None:
        """Close one stream at once; in the stateless era that cancels its request."""
        self._exchanges.abandon(stream, "abandoned by the client")

    def close(self, deadline: Deadline) -> None:
        if not self._closed:
            self._closed = True
            self._exchanges.close(keep=self._was_answered)
            self._waiting = []  # nobody will ask for it; the sink has it


class LegacySse:
    """One SSE stream with its POST endpoint. All messages of the server come on that stream."""

    name: TransportName = "sse"

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        headers: Mapping[str, str] = NO_HEADERS,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        # One POST at a time: over several connections the messages could overtake each other,
        # and here, unlike in streamable HTTP, they are one ordered conversation.
        self._http = StreamableHttp(url, sink=sink, headers=headers, limits=limits, at_once=1)
        self._url = self._http.url
        self.partial = self._http.partial
        self.close = self._http.close
        self._stream = 0
        self._endpoint: Url | None = None
        self._refused = self._hint = ""
        """How the GET of the stream was refused; the body, if it is JSON, comes as a frame."""
        self._ready: list[AnyRecord] = []
        self._ended: PeerError | None = None

    def open(self, deadline: Deadline) -> None:
        """GET the stream and wait for the event that says where to POST."""
        self._http.open(deadline)
        self._stream = self._http.request("GET", deadline)
        while self._endpoint is None:
            records = self._receive(deadline)
            self._ready += records
            if self._endpoint is None and self._ended is not None:
                raise self._ended
            if not records:
                kinds = (HttpResponse, SseEvent)
                answered = any(isinstance(record, kinds) for record in self._ready)
                what = (
                    "the server sent a response but no endpoint event"
                    if answered
                    else "the server sent no response"
                )
                message = f"{self._url} sent no endpoint within {deadline.limit:g}s: {what}"
                hint = "check that this is the URL of an SSE stream"
                raise PeerError(ErrorKind.TIMEOUT, message, hint=hint)

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """POST one message; the answer comes on the one stream, so there is no number to return."""
        if self._endpoint is None:
            raise PeerError(ErrorKind.CLOSED, "no endpoint to POST to: the stream is not open")
        self._http.request(
            "POST", deadline, headers, payload, target=self._endpoint.target, only_acknowledged=True
        )

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """As everywhere; once the stream has ended and is drained, PeerError is raised."""
        if self._ready:
            ready, self._ready = self._ready, []
            return ready
        if self._ended is not None:
            raise self._ended
        return self._receive(deadline)

    def _receive(self, deadline: Deadline) -> list[AnyRecord]:
        records = self._http.receive(deadline)
        for record in records:
            self._note(record)
        return records

    def _note(self, record: AnyRecord) -> None:
        """Follow what happens on the one stream that everything depends on."""
        if getattr(record, "stream", None) != self._stream:
            return
        if isinstance(record, SseEvent) and record.sse.event == "endpoint":
            self._take_endpoint(record.data)
        elif isinstance(record, HttpResponse) and record.status >= 400:
            self._refused = refusal_in_words(record.status, record.headers)
            self._hint = hint_for_status(record.status)
        elif isinstance(record, Frame) and self._refused:
            words = f"{self._url}: {self._refused}: {show(record.raw, EXCERPT)!r}"
            self._ended = PeerError(ErrorKind.HTTP_STATUS, words, hint=self._hint)
        elif isinstance(record, Trouble):
            words = f"{self._url}: {record.in_words}"
            self._ended = PeerError(ErrorKind(record.error), words, hint=self._hint)
        elif isinstance(record, StreamEnd):
            how = "ended" if record.complete else "was cut off"
            before = "" if self._endpoint else " before it sent an endpoint"
            self._ended = self._ended or PeerError(
                ErrorKind.CLOSED, f"the event stream of {self._url} {how}{before}"
            )

    def _take_endpoint(self, reference: str) -> None:
        if self._endpoint is not None:
            return  # recorded; a second one changes nothing
        try:
            endpoint = self._url.join(reference)
        except ValueError as error:
            why = f"the endpoint {show(reference, 120)!r} is not a valid URL: {error}"
            raise PeerError(ErrorKind.ADDRESS_REFUSED, why) from None
        if endpoint.origin != self._url.origin:
            where = show(str(endpoint), 120)
            why = f"the endpoint {where} is on another server than {self._url.origin}"
            raise PeerError(ErrorKind.ADDRESS_REFUSED, why)
        self._endpoint = endpoint
