"""Streamable HTTP, both eras: each message is a POST, answers come as JSON or as an event stream.

The transport opens what it is asked to open and nothing else: it never reconnects, resumes or
polls by itself. What the peer did is told as records; what to do about it is the client's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.transport.base import NO_HEADERS, Clock, Sink
from mcptest.transport.http_channel import HttpChannel
from mcptest.transport.url import parse_url


class StreamableHttp:
    """One MCP endpoint. Many exchanges may be under way at once, each with its stream number."""

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
        self._channel = HttpChannel(self._url, sink, Clock(), limits, headers, allow_hosts)

    @property
    def name(self) -> TransportName:
        return "http"

    @property
    def peer(self) -> str:
        return str(self._url)

    def open(self, deadline: Deadline) -> None:
        """Connect, so that a server that is not there is known before anything is sent."""
        self._channel.open(deadline)

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int:
        """POST one message. A header given as "" is left out; every other one can be replaced."""
        return self._channel.send("POST", self._url, deadline, headers, payload)

    def open_stream(
        self,
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
        last_event_id: str | None = None,
    ) -> int:
        """GET the server's own stream, or take up a broken one after its last event."""
        if last_event_id is not None:
            headers = {**headers, "Last-Event-ID": last_event_id}
        return self._channel.send("GET", self._url, deadline, headers)

    def delete_session(self, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS) -> int:
        return self._channel.send("DELETE", self._url, deadline, headers)

    def request(
        self,
        method: str,
        deadline: Deadline,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
        path: str = "",
    ) -> int:
        """Make any request, to the endpoint or to another path of the same server."""
        url = self._url.join(path) if path else self._url
        return self._channel.send(method, url, deadline, headers, body)

    def abandon(self, stream: int) -> None:
        self._channel.abandon(stream)

    def partial(self) -> str:
        """What has come of an answer that is not complete, as a clause."""
        return self._channel.partial()

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """Waits out the deadline also when nothing is under way: no loop can spin on it."""
        return self._channel.receive(deadline)

    def close(self, deadline: Deadline) -> None:
        self._channel.close()
