"""HTTP requests of the client and their answers, as a script sees them; all of it is recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from mcptest.model.capture import Sse
from mcptest.peer.demo.http_connection import HttpConnection
from mcptest.peer.demo.http_requests import Request
from mcptest.peer.demo.protocol import encode
from mcptest.peer.scripted.performance import Performance
from mcptest.peer.scripted.script import Call, EventStream, Obj, Visit

WAITING = "waiting"
STREAMING = "streaming"
DONE = "done"
_UNSAFE = re.compile(r"[^\t -~]+")


class HttpVisit(Visit):
    """One request on one connection."""

    def __init__(
        self,
        performance: Performance,
        connection: HttpConnection,
        request: Request,
        origin: str,
        url: str,
    ) -> None:
        self.origin = origin
        self.method = request.method
        self.path = request.path
        self.query = dict(parse_qsl(request.query, keep_blank_values=True))
        self.headers = request.headers
        self.body = request.body
        self.state = WAITING
        self.performance = performance
        self.tape = performance.tape
        self.stream_number = self.tape.new_stream()
        self._connection = connection
        connection.on_head = self._head_was_sent
        connection.on_gone = self._client_hung_up
        self.tape.request(self.stream_number, request.method, url, request.header_lines)
        if self.body:
            self.tape.frame("client", self.body, self.stream_number)

    def respond(
        self,
        status: int,
        body: bytes | Obj = b"",
        *,
        headers: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> None:
        if self.state != WAITING:
            self.remark("answered already; a second answer was not sent")
            return
        data = body if isinstance(body, bytes) else encode(body)
        connection = self._leave()
        connection.respond(status, data, kind, _safe(headers))
        if data:
            self.tape.frame("server", data, self.stream_number)
        self.tape.end(self.stream_number, complete=connection.open)

    def stream(self, headers: Mapping[str, str] | None = None) -> EventStream:
        if self.state == WAITING:
            self.state = STREAMING
            self._connection.start_stream(_safe(headers))
        else:
            self.remark("answered already; no stream was begun")
        return HttpEvents(self)

    def cut(self) -> None:
        if self.state == DONE:
            return
        connection = self._leave()
        self.remark("the connection is closed on purpose")
        self.tape.end(self.stream_number, complete=False)
        connection.close()

    def write_event(self, data: bytes) -> bool:
        """False when there is nobody to write to any more."""
        if self.state != STREAMING or not self._connection.open:
            return False
        self._connection.stream(data)
        return True

    def end_stream(self) -> None:
        if self.state == STREAMING:
            connection = self._leave()
            connection.end_stream()
            self.tape.end(self.stream_number, complete=connection.open)

    def remark(self, text: str) -> None:
        self.tape.note(f"stream {self.stream_number}: {text}")

    def _leave(self) -> HttpConnection:
        """The answer is complete: what happens on the connection from here on is not ours."""
        self.state = DONE
        self._connection.on_gone = None
        return self._connection

    def _head_was_sent(self, status: int, fields: dict[str, Any]) -> None:
        self.tape.response(self.stream_number, status, fields)

    def _client_hung_up(self) -> None:
        if self.state == DONE or self.performance.over:
            return
        self.state = DONE
        self.remark("the client hung up before its answer was complete")
        self.tape.end(self.stream_number, complete=False)
        self.performance.play(self.performance.script.hung_up, self)


class HttpEvents(EventStream):
    """The events of one answer."""

    def __init__(self, visit: HttpVisit) -> None:
        self._visit = visit

    @property
    def is_open(self) -> bool:
        return self._visit.state == STREAMING

    def message(self, message: Obj | bytes, *, event_id: str | None = None) -> None:
        raw = message if isinstance(message, bytes) else encode(message)
        sse = Sse(event="message", id=event_id)
        if self._visit.write_event(written(sse, raw)):
            self._visit.tape.frame("server", raw, self._visit.stream_number, sse)
        else:
            self._visit.remark("a message could not be sent: the stream has ended")

    def event(
        self,
        data: str = "",
        *,
        event: str | None = None,
        event_id: str | None = None,
        retry: int | None = None,
        comment: str | None = None,
    ) -> None:
        sse = Sse(event=event, id=event_id, retry=retry)
        # Without a data line an event is never dispatched: a priming event has an empty one.
        raw = data.encode() if data or event is not None or event_id is not None else None
        if self._visit.write_event(written(sse, raw, comment)):
            self._visit.tape.event(self._visit.stream_number, sse, data, comment)
        else:
            self._visit.remark("an event could not be sent: the stream has ended")

    def end(self) -> None:
        self._visit.end_stream()

    def cut(self) -> None:
        self._visit.cut()


class HttpCall(Call):
    """One JSON-RPC request that came in a POST."""

    def __init__(self, visit: HttpVisit, message: Obj, batch: Batch | None = None) -> None:
        self.id = message["id"]
        self.method = message["method"]
        self.params = message.get("params", {})
        self.message = message
        self.visit: HttpVisit = visit
        self.answer_headers = {}
        self._batch = batch
        self._events: EventStream | None = batch.events if batch is not None else None
        self._stays_open = False

    def result(self, result: Obj) -> None:
        script = self.visit.performance.script
        self.reply({"jsonrpc": "2.0", "id": self.id, "result": script.finish(self, result)})

    def reply(self, message: Obj | bytes, *, status: int = 200) -> None:
        if self._events is None:
            data = message if isinstance(message, bytes) else encode(message)
            self.visit.respond(status, data, headers=self.answer_headers)
            return
        self._events.message(message)
        if self._batch is not None:
            self._batch.one_is_answered()
        elif not self._stays_open:
            self._events.end()

    def send(self, message: Obj | bytes) -> None:
        self._begun().message(message)

    def begin_stream(
        self, *, event_id: str | None = None, retry: int | None = None
    ) -> EventStream | None:
        events = self._begun()
        if event_id is not None or retry is not None:
            events.event(event_id=event_id, retry=retry)
        return events

    def keep_open(self) -> None:
        self._stays_open = True

    def cut(self) -> None:
        self.visit.cut()

    def _begun(self) -> EventStream:
        if self._events is None:
            self._events = self.visit.stream(self.answer_headers)
        return self._events


class Batch:
    """Several requests in one POST, as 2025-03-26 has them: answered one by one on a stream."""

    def __init__(self, visit: HttpVisit, requests: int) -> None:
        self.events = visit.stream()
        self._left = requests

    def one_is_answered(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.events.end()


def _safe(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Scripts give back what clients sent, as in a redirect: it must not end the header."""
    return {name: _UNSAFE.sub(_escaped, value) for name, value in (headers or {}).items()}


def _escaped(unsafe: re.Match[str]) -> str:
    return quote(unsafe.group().encode("utf-8", "backslashreplace"))


def written(sse: Sse, data: bytes | None, comment: str | None = None) -> bytes:
    """One server-sent event, as bytes."""
    lines: list[bytes] = []
    if comment is not None:
        lines.append(b": " + comment.encode())
    if sse.id is not None:
        lines.append(b"id: " + sse.id.encode())
    if sse.event is not None:
        lines.append(b"event: " + sse.event.encode())
    if sse.retry is not None:
        lines.append(b"retry: %d" % sse.retry)
    if data is not None:
        lines += [b"data: " + line for line in data.splitlines() or [b""]]
    return b"\n".join(lines) + b"\n\n"
