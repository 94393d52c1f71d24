"""What went over one session: how it began, and what belongs to the example that is being played.

It is the sink of the session's transport. Earlier examples are let go, so a session may serve any
number of them; the beginning is kept, because most rules need to know what was agreed then. A
server that floods one is cut off: what is kept then ends in the middle.
"""

from __future__ import annotations

from collections import deque
from itertools import chain

from mcptest.model.capture import AnyRecord, Closed, Exited, Frame, Stderr, TransportName, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import MEBIBYTE
from mcptest.model.message import Message
from mcptest.wire.envelope import decode
from mcptest.wire.session_source import SessionSource

_STDERR_KEPT = 20
_ROOM = 24 * MEBIBYTE
_RECORD_COST = 6_000
"""What any record counts for: four thousand small ones are kept, which are judged in a moment."""
_LARGEST_READ = MEBIBYTE
"""Of what is larger the last one only is kept as read: its value is as large as its bytes."""
_OUR_OWN = frozenset({ErrorKind.TIMEOUT.value, ErrorKind.HTTP_STATUS.value})
"""Troubles that are no message of the server's gone wrong."""


class Reel:
    """The records of one session, as far as they still matter."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.transport: TransportName | None = None
        self.beginning: list[AnyRecord] = []
        self.example: list[AnyRecord] = []
        self.stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        self.exited: Exited | None = None
        self.troubled = 0
        """Things of the server that were no messages to the transport, since it began."""
        self.dropped = 0
        """Records for which there was no room. What comes after a gap would be misread."""
        self._taken = 0
        self._into = self.beginning
        self._read: dict[int, Message] = {}
        self._large: Message | None = None

    def __call__(self, record: AnyRecord) -> None:
        kind = type(record)
        size = _RECORD_COST
        if kind is Frame:
            size += len(record.raw)  # type: ignore[union-attr]  # it is a Frame
        elif kind is Stderr:
            self.stderr.append(record.text)  # type: ignore[union-attr]  # it is a Stderr
        elif kind is Exited:
            self.exited = record  # type: ignore[assignment]  # it is an Exited
        elif kind is Trouble:
            self.troubled += record.error not in _OUR_OWN  # type: ignore[union-attr]  # a Trouble
        if self.dropped or (self._taken and self._taken + size > _ROOM):
            self.dropped += 1
            return
        self._taken += size
        self._into.append(record)

    def has_begun(self) -> None:
        """What comes from now on belongs to examples."""
        self._into = self.example

    def next_example(self) -> None:
        self.example.clear()
        self._read.clear()
        self._large = None
        self._taken = 0

    def read(self, raw: bytes) -> Message:
        """The message of a frame of this example. A small one is read once."""
        if len(raw) > _LARGEST_READ:
            if self._large is None or self._large.raw is not raw:
                self._large = decode(raw)
            return self._large
        found = self._read.get(id(raw))
        if found is None or found.raw is not raw:
            found = self._read[id(raw)] = decode(raw)
        return found

    def has_read(self, message: Message) -> None:
        """Somebody has read this frame already. A message of a batch is no frame by itself."""
        if 0 < len(message.raw) <= _LARGEST_READ:
            self._read[id(message.raw)] = message

    def of_example(self, spec_version: str, *, ended: bool) -> SessionSource:
        """The beginning and this example, as if nothing had been between them."""
        records: list[AnyRecord] = [*self.beginning, *self.example]
        if ended:
            last = records[-1].t if records else 0.0
            records.append(Closed(t=last, records=len(records), dropped=self.dropped))
        return self.source(records, spec_version)

    def source(self, records: list[AnyRecord], spec_version: str, first: int = 0) -> SessionSource:
        return SessionSource(
            label=self.label,
            file="",
            form="full",
            records=iter(enumerate(records, first)),
            transport=self.transport,
            channel="",
            spec_version=spec_version,
        )

    @property
    def records(self) -> list[AnyRecord]:
        return list(chain(self.beginning, self.example))
