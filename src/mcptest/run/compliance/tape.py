"""What went over one connection, kept in memory as far as there is room for it.

It is the sink of the conversation's transport. A file is written beside it where one is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Stderr,
    StreamEnd,
    TransportName,
    Trouble,
)
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import MEBIBYTE
from mcptest.model.message import Kind
from mcptest.transport.recorder import Recorder
from mcptest.wire.envelope import decode, is_meant_as_message
from mcptest.wire.http_rules import may_say_anything
from mcptest.wire.session_source import SessionSource

_ROOM = 24 * MEBIBYTE
_RECORD_COST = 300
_HEADERS_COST = 1_500
"""What a record takes beside its bytes, and one with headers: as measured, in round numbers."""
_STDERR_KEPT = 20
_STDERR_ON_TAPE = 1_000
"""Lines on a tape, on which no rule looks at them: a server that floods stderr costs no verdict."""
_OUR_OWN = frozenset({ErrorKind.TIMEOUT.value, ErrorKind.HTTP_STATUS.value})
"""Troubles that are no message of the server's gone wrong."""


class Room:
    """What all tapes of one run may hold together, in bytes."""

    __slots__ = ("left",)

    def __init__(self, left: int = _ROOM) -> None:
        self.left = left


class Tape:
    """The records of one connection in order."""

    def __init__(
        self, label: str, recorder: Recorder | None = None, room: Room | None = None
    ) -> None:
        self.label = label
        self.recorder = recorder
        self.records: list[AnyRecord] = []
        self.transport: TransportName | None = None
        self.channel = ""
        self.dropped = 0
        """Records for which there was no room; rules over the session can't be judged then."""
        self.requests = 0
        self.stderr: list[str] = []
        """The last lines."""
        self.exited: Exited | None = None
        self.responses: dict[int, HttpResponse] = {}
        self.posted: dict[int, HttpRequest] = {}
        self.bodies: dict[int, list[Frame]] = {}
        self.troubles: dict[int, Trouble] = {}
        self.ended: set[int] = set()
        self._room = room or Room()
        self._stderr_lines = 0
        self._looked_at = 0
        self._unusable: list[bytes] = []

    def __call__(self, record: AnyRecord) -> None:
        if self.recorder is not None:
            self.recorder(record)
        has_room = self._take_room(record)
        self._index(record)
        if has_room:
            self.records.append(record)

    def _take_room(self, record: AnyRecord) -> bool:
        if type(record) is Stderr:
            self._stderr_lines += 1
            if self._stderr_lines > _STDERR_ON_TAPE:
                return False
        size = _RECORD_COST
        if type(record) is Frame:
            size += len(record.raw)
        elif type(record) is HttpRequest or type(record) is HttpResponse:
            size += _HEADERS_COST
        if self.dropped or size > self._room.left:  # a gap would make a session that never was
            self.dropped += 1
            return False
        self._room.left -= size
        return True

    def _index(self, record: AnyRecord) -> None:
        kind = type(record)
        if kind is Frame:
            self.requests += record.sender == "client"  # type: ignore[union-attr]  # it is a Frame
            if record.stream is not None and record.sender == "server" and not self.dropped:  # type: ignore[union-attr]  # as above
                self.bodies.setdefault(record.stream, []).append(record)  # type: ignore[union-attr, arg-type]  # as above
        elif isinstance(record, HttpRequest):
            self.posted[record.stream] = record
        elif isinstance(record, HttpResponse):
            self.responses[record.stream] = record
        elif isinstance(record, StreamEnd):
            self.ended.add(record.stream)
        elif isinstance(record, Trouble):
            if record.stream is not None:
                self.troubles[record.stream] = record
        elif isinstance(record, Stderr):
            self.stderr = [*self.stderr[1 - _STDERR_KEPT :], record.text]
        elif isinstance(record, Exited):
            self.exited = record

    def begin_again(self, way: TransportName) -> None:
        """Another process, or another transport, takes the place of the first."""
        self.records.clear()
        self._looked_at = 0
        self._unusable.clear()
        for found in (self.responses, self.posted, self.bodies, self.troubles, self.ended):
            found.clear()
        self.stderr.clear()
        self.exited = None
        self.transport = way

    def end(self) -> None:
        """Nothing more will come: a session that has its end can be judged to the end."""
        last = self.records[-1].t if self.records else 0.0
        self.records.append(Closed(t=last, records=len(self.records), dropped=self.dropped))
        if self.recorder is not None:
            self.recorder.close()

    @property
    def ended_wordless(self) -> bool:
        """Whether the process ended by itself, and had said nothing."""
        if self.exited is None or self.exited.after:
            return False
        return not any(isinstance(one, Frame) and one.sender == "server" for one in self.records)

    def flush(self) -> None:
        if self.recorder is not None:
            self.recorder.flush()

    @property
    def unusable(self) -> list[bytes]:
        """Whatever the server sent that is no message: lines that are none, broken streams."""
        for record in self.records[self._looked_at :]:
            if isinstance(record, Frame) and record.sender == "server":
                if self._is_unusable(record):
                    self._unusable.append(record.raw)
            elif isinstance(record, Trouble) and record.error not in _OUR_OWN:
                if record.stream is not None and self._may_say_anything(record.stream):
                    continue
                self._unusable.append(record.detail.encode("utf-8", "backslashreplace"))
        self._looked_at = len(self.records)
        return self._unusable

    def _is_unusable(self, frame: Frame) -> bool:
        message = decode(frame.raw)
        if frame.stream is None:
            return message.kind is Kind.INVALID or not is_meant_as_message(message)
        return message.kind is Kind.INVALID and not self._may_say_anything(frame.stream)

    def _may_say_anything(self, stream: int) -> bool:
        asked, answered = self.posted.get(stream), self.responses.get(stream)
        if asked is None or answered is None:
            return False
        return may_say_anything(asked.method, answered.status, answered.headers)

    def stream_of(self, sent: bytes, place: int) -> int | None:
        """The HTTP exchange that carried these bytes of ours, after that many records."""
        for record in self.records[place:]:
            if isinstance(record, Frame) and record.sender == "client" and record.raw == sent:
                return record.stream
        return None

    def as_session(self, spec_version: str) -> SessionSource:
        """All of it, to be judged by the rules over whole sessions."""
        return SessionSource(
            label=self.label,
            file="",
            form="full",
            records=_placed(self.records),
            transport=self.transport,
            channel=self.channel,
            spec_version=spec_version,
        )


def _placed(records: list[AnyRecord]) -> Iterator[tuple[int, AnyRecord]]:
    return iter(enumerate(records))
