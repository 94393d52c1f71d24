"""The old HTTP+SSE transport: one stream, one endpoint, one ordered conversation."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator

import pytest

from mcptest.core.capture import AnyRecord, Frame, HttpRequest, SseEvent, StreamEnd
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.transport.http.transports import LegacySse
from tests.rogues.http_script import (
    LAST_CHUNK,
    SSE_HEAD,
    WAIT,
    ScriptedServer,
    SeenRequest,
    Wire,
    chunk,
    messages,
    reply,
    serving,
    statuses,
    troubles,
)


class OldServer:
    """Echoes each POST on the stream. `b"bye"` ends the stream."""

    def __init__(self, acknowledgement: bytes, endpoint: str = "messages?s=1") -> None:
        self.acknowledgement = acknowledgement
        self.endpoint = endpoint
        self.said: queue.Queue[bytes] = queue.Queue()
        self.seen: list[SeenRequest] = []

    def __call__(self, wire: Wire) -> None:
        while request := wire.request():
            self.seen.append(request)
            if request.method == "POST":
                wire.send(self.acknowledgement)
                self.said.put(request.body)
                continue
            wire.send(SSE_HEAD + chunk(f"event: endpoint\ndata: {self.endpoint}\n\n".encode()))
            while (said := self.said.get(timeout=WAIT)) != b"bye":
                wire.send(chunk(b"event: message\ndata: " + said + b"\n\n"))
            wire.send(LAST_CHUNK)


@contextlib.contextmanager
def running(old: OldServer) -> Iterator[ScriptedServer]:
    with serving(old) as server:
        try:
            yield server
        finally:
            old.said.put(b"bye")


ACCEPTED = reply(b"Accepted", "202 Accepted", None)


def soon() -> Deadline:
    return Deadline.after(WAIT)


def opened(url: str, records: list[AnyRecord]) -> LegacySse:
    transport = LegacySse(url, sink=records.append)
    transport.open(soon())
    return transport


@pytest.mark.parametrize("acknowledgement", [ACCEPTED, reply(b"", "200 OK", None), reply(b'"ok"')])
def test_messages_are_posted_to_the_endpoint_and_answers_come_on_the_stream(
    acknowledgement: bytes,
) -> None:
    old = OldServer(acknowledgement)
    records: list[AnyRecord] = []
    sent = [b"%d" % number for number in range(20)]
    with running(old) as server:
        transport = opened(server.url, records)
        assert [transport.send(each, soon()) for each in sent] == [None] * 20
        while len(messages(records)) < 20:
            assert transport.receive(soon())
        transport.close(soon())
    assert messages(records) == sent  # in the order in which they were sent
    assert {
        each.stream for each in records if isinstance(each, Frame) and each.sender == "server"
    } == {1}
    assert [each.target for each in old.seen[:2]] == ["/mcp", "/messages?s=1"]
    assert troubles(records) == []


def test_the_endpoint_event_is_recorded() -> None:
    records: list[AnyRecord] = []
    with running(OldServer(ACCEPTED)) as server:
        opened(server.url, records).close(soon())
    (event,) = [each for each in records if isinstance(each, SseEvent)]
    assert (event.sse.event, event.data) == ("endpoint", "messages?s=1")


def test_the_end_of_the_stream_is_raised_once_all_is_handed_out() -> None:
    records: list[AnyRecord] = []
    handed: list[AnyRecord] = []
    with running(OldServer(ACCEPTED)) as server:
        transport = opened(server.url, records)
        transport.send(b"1", soon())
        transport.send(b"bye", soon())
        while not any(isinstance(each, StreamEnd) and each.stream == 1 for each in handed):
            came = transport.receive(soon())
            assert came
            handed += came
        with pytest.raises(PeerError, match=r"the event stream of .* ended") as caught:
            transport.receive(soon())
        transport.close(soon())
    assert caught.value.kind is ErrorKind.CLOSED
    assert messages(handed) == [b"1"]


def test_a_stream_that_is_refused_in_json_is_told_with_its_body() -> None:
    refusal = reply(b'{"error":"invalid_token"}', "401 Unauthorized", "application/json")

    def refuse(wire: Wire) -> None:
        wire.request()
        wire.send(refusal)

    with serving(refuse) as server:
        transport = LegacySse(server.url, sink=lambda record: None)
        with pytest.raises(PeerError) as caught:
            transport.open(soon())
        transport.close(soon())
    assert caught.value.kind is ErrorKind.HTTP_STATUS
    assert caught.value.message == f"""{server.url}: HTTP 401: '{{"error":"invalid_token"}}'"""


def test_a_refused_post_is_told() -> None:
    records: list[AnyRecord] = []
    with running(OldServer(reply(b"bad session", "404 Not Found", "text/plain"))) as server:
        transport = opened(server.url, records)
        transport.send(b"1", soon())
        while not troubles(records):
            assert transport.receive(soon())
        transport.close(soon())
    (trouble,) = troubles(records)
    assert (trouble.error, trouble.excerpt) == (ErrorKind.HTTP_STATUS.value, "bad session")
    assert 404 in statuses(records)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_server_gets_neither_a_message_nor_the_users_headers(scheme: str) -> None:
    """The endpoint is on another port of ours, or in TLS: that is another server all the same."""
    elsewhere = OldServer(ACCEPTED)
    with serving(elsewhere) as second:
        old = OldServer(ACCEPTED, endpoint=f"{scheme}://127.0.0.1:{second.port}/messages")
        with running(old) as server:
            if scheme == "https":
                old.endpoint = f"https://127.0.0.1:{server.port}/messages"
            records: list[AnyRecord] = []
            headers = {"Authorization": "Bearer secret"}
            transport = LegacySse(server.url, sink=records.append, headers=headers)
            with pytest.raises(PeerError, match="is on another server") as caught:
                transport.open(soon())
            with pytest.raises(PeerError, match="no endpoint"):
                transport.send(b"1", soon())
            transport.close(soon())
    assert caught.value.kind is ErrorKind.ADDRESS_REFUSED
    assert old.seen[0].headers["authorization"] == "Bearer secret"
    assert not elsewhere.seen
    assert [each.url for each in records if isinstance(each, HttpRequest)] == [server.url]


def test_sending_before_opening_is_an_error_and_not_a_crash() -> None:
    with running(OldServer(ACCEPTED)) as server:
        transport = LegacySse(server.url, sink=lambda record: None)
        with pytest.raises(PeerError, match="no endpoint"):
            transport.send(b"1", soon())
        transport.close(soon())
