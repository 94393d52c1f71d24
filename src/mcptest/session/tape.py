"""What went over one session: the last of everything, and the records as far as there is room.

A tape is the sink of a session's transport. Some facts are always kept, whatever a server sends:
the last lines of stderr, how the process ended, our last requests and the beginning of the last
answer. Records are kept only where there is `Room` for them, and what does not fit is counted. A
file is written beside it where one is wanted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

import msgspec

from mcptest.core.capture import (
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
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import MEBIBYTE
from mcptest.core.message import Kind, Message, id_key
from mcptest.wire.envelope import decode, is_meant_as_message
from mcptest.wire.mcp_headers import may_say_anything

if TYPE_CHECKING:
    from mcptest.transport.recorder import Recorder
    from mcptest.wire.capture_forms import SessionSource

_ROOM = 16 * MEBIBYTE
_RECORD_COST = 300
_HEADERS_COST = 1_500
"""What a record takes beside its bytes, and one with headers: as measured, in round numbers."""
_STDERR_KEPT = 20
_STDERR_ON_TAPE = 1_000
"""Lines on a tape, on which no rule looks at them: a server that floods stderr costs no verdict."""
_REQUESTS_KEPT = 1_000
_SHOWN_OF_AN_ANSWER = 64 * 1024
_HEAD = 80
"""Where the method stands in a message of ours."""
_LATE_BYTES = MEBIBYTE
_LATE_COST = 10_240
"""What a small line counts for: of those a hundred are kept."""
_LARGEST_READ = 128 * 1024
"""Of what is larger the last one only is kept as read: its value may be ten times its bytes."""
_MOST_READ = 2_000
"""Small messages that are kept as read, which is more than a session has that is no flood."""
_OUR_OWN = frozenset({ErrorKind.TIMEOUT.value, ErrorKind.HTTP_STATUS.value})
"""Troubles that are no message of the server's gone wrong."""


class Room(msgspec.Struct):
    """What a tape may hold, or all tapes of one run together, in bytes."""

    size: int = _ROOM
    record_cost: int = _RECORD_COST
    """What each record counts for beside its bytes."""
    taken: int = 0

    def take(self, record: AnyRecord) -> int:
        """What the record takes; 0 when there is no room for it. One of any size fits alone."""
        cost = self.record_cost
        if type(record) is Frame:
            cost += len(record.raw)
        elif type(record) is HttpRequest or type(record) is HttpResponse:
            cost += _HEADERS_COST
        return cost if self.take_bytes(cost) else 0

    def take_bytes(self, cost: int) -> bool:
        """Whether there was room for so many bytes; they are taken then."""
        if self.taken and self.taken + cost > self.size:
            return False
        self.taken += cost
        return True


class Tape:
    """The records of one session in order."""

    _large: ClassVar[Message | None] = None
    """The large message that was read last: one for all tapes, of which a run has many."""

    def __init__(
        self, label: str = "", recorder: Recorder | None = None, room: Room | None = None
    ) -> None:
        """Without `room` no records are kept."""
        self.label = label
        self.recorder = recorder
        self.records: list[AnyRecord] = []
        self.transport: TransportName | None = None
        self.channel = ""
        self.dropped = 0
        """Records for which there was no room; rules over the session can't be judged then."""
        self.messages_sent = 0
        self.bytes_seen = 0
        """Of all messages, whether or not there was room for them."""
        self.largest = 0
        """Bytes of the largest message of the server's."""
        self.stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        """The last lines."""
        self.exited: Exited | None = None
        self.last_answer = b""
        """The beginning of what the server sent last."""
        self.has_spoken = False
        """Whether the server sent anything since the session began."""
        self.is_closing = False
        self.late: list[bytes] = []
        """What the server still sent when nobody took it in any more."""
        self.responses: dict[int, HttpResponse] = {}
        self.posted: dict[int, HttpRequest] = {}
        self.bodies: dict[int, list[Frame]] = {}
        self.troubles: dict[int, Trouble] = {}
        self.ended: set[int] = set()
        self.marked = 0
        """How many records stood before the mark."""
        self._room = room
        self._taken = 0
        self._late_bytes = 0
        self._stderr_lines = 0
        self._requests: deque[bytes] = deque(maxlen=_REQUESTS_KEPT)
        self._looked_at = 0
        self._unusable: list[bytes] = []
        self._read: dict[int, Message] = {}

    # -- listening -------------------------------------------------------------------------

    def __call__(self, record: AnyRecord) -> None:
        if self.recorder is not None:
            self.recorder(record)
        self._note(record)
        if self._room is not None:
            has_room = self._take_room(record, self._room)
            if type(record) is Frame:
                if record.stream is not None and record.sender == "server" and not self.dropped:
                    self.bodies.setdefault(record.stream, []).append(record)
            elif isinstance(record, HttpRequest):
                self.posted[record.stream] = record
            elif isinstance(record, HttpResponse):
                self.responses[record.stream] = record
            elif isinstance(record, StreamEnd):
                self.ended.add(record.stream)
            elif isinstance(record, Trouble) and record.stream is not None:
                self.troubles[record.stream] = record
            if has_room:
                self.records.append(record)

    def _note(self, record: AnyRecord) -> None:
        """The facts that are always kept."""
        if type(record) is Frame:
            self.bytes_seen += len(record.raw)
            if len(record.raw) > _LARGEST_READ:
                self.forget_large()  # before this one is read, which then takes its place
            if record.sender == "server":
                self.has_spoken = True
                self.largest = max(self.largest, len(record.raw))
                self.last_answer = record.raw[:_SHOWN_OF_AN_ANSWER]
                if self.is_closing and self._late_bytes < _LATE_BYTES:
                    self._late_bytes += len(record.raw) + _LATE_COST
                    self.late.append(record.raw)
                return
            self.messages_sent += 1
            if b'"method":' in record.raw[:_HEAD]:  # no answers of ours, of which many may come
                self._requests.append(record.raw)
        elif type(record) is Stderr:
            self.stderr.append(record.text)
        elif type(record) is Exited:
            self.exited = record

    def _take_room(self, record: AnyRecord, room: Room) -> bool:
        if type(record) is Stderr:
            self._stderr_lines += 1
            if self._stderr_lines > _STDERR_ON_TAPE:
                return False
        taken = 0 if self.dropped else room.take(record)
        if not taken:  # a gap would make a session that never was
            self.dropped += 1
            return False
        self._taken += taken
        return True

    # -- beginnings and ends ---------------------------------------------------------------

    def begin_again(self, way: TransportName) -> None:
        """Another process, or another transport, takes the place of the first."""
        self.marked = 0
        self._forget_records()
        self.stderr.clear()
        self.exited = None
        self.has_spoken = False
        self.transport = way

    def mark(self) -> None:
        """What was said so far stays, and takes no room any more."""
        self.marked = len(self.records)
        self._give_back_room()

    def rewind(self) -> None:
        """Forget what was said since the mark; the last lines of stderr stay."""
        self._forget_records()
        self._requests.clear()
        self.last_answer = b""

    def forget_records(self) -> None:
        """What was said is judged, and nobody looks at it again. The facts stay."""
        self.marked = 0
        self._forget_records()

    def _forget_records(self) -> None:
        del self.records[self.marked :]
        self._give_back_room()
        self._stderr_lines = 0
        self._looked_at = min(self._looked_at, self.marked)
        self._unusable.clear()
        self._read.clear()
        Tape._large = None
        for found in (self.responses, self.posted, self.bodies, self.troubles, self.ended):
            found.clear()

    def _give_back_room(self) -> None:
        if self._room is not None:
            self._room.taken -= self._taken
        self._taken = 0

    def end(self) -> None:
        """Nothing more will come: a session that has its end can be judged to the end."""
        last = self.records[-1].t if self.records else 0.0
        self.records.append(Closed(t=last, records=len(self.records), dropped=self.dropped))
        self.late.clear()  # nobody asks for it any more

    # -- what was said ---------------------------------------------------------------------

    @property
    def since_mark(self) -> list[AnyRecord]:
        return self.records[self.marked :]

    @property
    def first_request(self) -> bytes:
        """Our first request since the tape was rewound."""
        return self._requests[0] if self._requests else b""

    @property
    def last_request(self) -> bytes:
        return self._requests[-1] if self._requests else b""

    def request_with(self, identifier: object) -> bytes:
        """The bytes of a request of ours, by its id."""
        wanted = id_key(identifier)
        for raw in reversed(self._requests):
            if id_key(decode(raw).id) == wanted:
                return raw
        return b""

    def read(self, raw: bytes) -> Message:
        """The message of a frame. A small one is read once."""
        if len(raw) > _LARGEST_READ:
            large = Tape._large
            if large is None or large.raw is not raw:
                large = Tape._large = decode(raw)
            return large
        found = self._read.get(id(raw))
        if found is None or found.raw is not raw:
            found = decode(raw)
            self.has_read(found)
        return found

    @staticmethod
    def forget_large() -> None:
        """The large message that was read last is not asked for again soon."""
        Tape._large = None

    def has_read(self, message: Message) -> None:
        """Somebody has read this frame already. A message of a batch is no frame by itself."""
        if len(message.raw) > _LARGEST_READ:
            Tape._large = message
        elif message.raw and len(self._read) < _MOST_READ:
            self._read[id(message.raw)] = message

    @property
    def ended_wordless(self) -> bool:
        """Whether the process ended by itself, and had said nothing."""
        return self.exited is not None and not self.exited.after and not self.has_spoken

    @property
    def unusable(self) -> list[bytes]:
        """Whatever the server sent that is no message: lines that are none, broken streams."""
        for record in self.records[self._looked_at :]:
            if isinstance(record, Frame) and record.sender == "server":
                message, stream = self.read(record.raw), record.stream
                bad = message.kind is Kind.INVALID
                if stream is None:
                    bad = bad or not is_meant_as_message(message)
                if bad and not self._may_say_anything(stream):
                    self._unusable.append(record.raw)
            elif (
                isinstance(record, Trouble)
                and record.error not in _OUR_OWN
                and not self._may_say_anything(record.stream)
            ):
                self._unusable.append(record.detail.encode("utf-8", "backslashreplace"))
        self._looked_at = len(self.records)
        return self._unusable

    def _may_say_anything(self, stream: int | None) -> bool:
        if stream not in self.posted or stream not in self.responses:
            return False
        answered = self.responses[stream]
        return may_say_anything(self.posted[stream].method, answered.status, answered.headers)

    def stream_of(self, sent: bytes, place: int) -> int | None:
        """The HTTP exchange that carried these bytes of ours, after that many records."""
        for record in self.records[place:]:
            if isinstance(record, Frame) and record.sender == "client" and record.raw == sent:
                return record.stream
        return None

    def as_session(
        self, spec_version: str, records: Iterable[AnyRecord] | None = None
    ) -> SessionSource:
        """All of it, or the given records, to be judged by the rules over whole sessions."""
        from mcptest.wire.capture_forms import SessionSource  # most sessions are judged by nobody

        return SessionSource(
            label=self.label,
            file="",
            form="full",
            records=iter(enumerate(self.records if records is None else records)),
            transport=self.transport,
            channel=self.channel,
            spec_version=spec_version,
        )


def answered_requests(records: Iterable[AnyRecord]) -> Iterator[tuple[Message, Message]]:
    """Every request of ours with its answer, in the order of the answers."""
    asked: dict[object, Message] = {}
    for record in records:
        if isinstance(record, Frame):
            message = decode(record.raw)
            if record.sender == "client" and message.kind is Kind.REQUEST:
                asked[id_key(message.id)] = message
            elif record.sender == "server" and message.is_answer:
                request = asked.pop(id_key(message.id), None)
                if request is not None:
                    yield request, message
            del message  # the next one may be as large
