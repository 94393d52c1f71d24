"""What passes between a client and the scripted server, as records: kept and passed on.

The records are those of any capture, so they can be saved, judged by the rules and replayed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping

from mcptest import __version__
from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Frame,
    HttpRequest,
    HttpResponse,
    Note,
    Opened,
    Sender,
    Sse,
    SseEvent,
    StreamEnd,
    TransportName,
    Trouble,
)
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import MEBIBYTE
from mcptest.core.revision import Revision, revision_of_wire
from mcptest.core.safe_text import show
from mcptest.transport.base import Clock, Sink, discard
from mcptest.wire.json_text import Beginning, beginning_of

KEPT_BYTES = 32 * MEBIBYTE
"""How much of what both sides send is kept for the checks. The sink has a limit of its own."""
KEPT_RECORDS = 10_000
"""More than a hundred times what a scenario takes: judging them must not take seconds."""
_ORIGIN = "origin "
_BROKEN_OFF = "the client left in the middle of a line"
_SPOKEN = "the client chose revision "


class SiteTape:
    """Keeps the records of one client, up to a limit, and tells each of them to a sink."""

    def __init__(self, sink: Sink = discard, save: Callable[[], None] = lambda: None) -> None:
        self.save = save
        """Writes down what the sink still holds, if it does."""
        self.records: list[AnyRecord] = []
        self.dropped = 0
        """Records that were not kept because there were too many."""
        self._sink = sink
        self._clock = Clock()
        self._room = KEPT_BYTES
        self._streams = 0

    def opened(self, label: str, transport: TransportName, spec_version: str) -> None:
        self._add(
            Opened(
                server_label=label,
                transport=transport,
                channel=label,
                peer="",
                spec_version=spec_version,
                tool=f"mcptest {__version__}",
                started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            )
        )

    def origins(self, urls: Mapping[str, str]) -> None:
        """Write down which address is which, for whoever judges the capture later."""
        for name, url in urls.items():
            self.note(f"{_ORIGIN}{name} is {url}")

    def broken_off(self) -> None:
        """The last line of the client has no newline, and none can come."""
        self.note(_BROKEN_OFF)

    def new_stream(self) -> int:
        self._streams += 1
        return self._streams

    def request(
        self, stream: int, method: str, url: str, headers: tuple[tuple[str, str], ...]
    ) -> None:
        at = self._clock()
        self._add(HttpRequest(t=at, stream=stream, method=method, url=url, headers=headers))

    def response(self, stream: int, status: int, headers: Mapping[str, str]) -> None:
        pairs = tuple((name, str(value)) for name, value in headers.items())
        self._add(HttpResponse(t=self._clock(), stream=stream, status=status, headers=pairs))

    def frame(
        self, sender: Sender, raw: bytes, stream: int | None = None, sse: Sse | None = None
    ) -> None:
        at = self._clock()
        self._add(Frame(t=at, sender=sender, raw=raw, stream=stream, sse=sse), len(raw))

    def event(self, stream: int, sse: Sse, data: str, comment: str | None) -> None:
        at = self._clock()
        self._add(SseEvent(t=at, stream=stream, sse=sse, data=data, comment=comment), len(data))

    def end(self, stream: int, *, complete: bool) -> None:
        self._add(StreamEnd(t=self._clock(), stream=stream, complete=complete))

    def trouble(
        self, kind: ErrorKind, detail: str, excerpt: str = "", stream: int | None = None
    ) -> None:
        at, error = self._clock(), kind.value
        self._add(Trouble(t=at, error=error, detail=detail, stream=stream, excerpt=excerpt))

    def note(self, text: str) -> None:
        self._add(Note(t=self._clock(), text=text))

    def closed(self) -> None:
        """The end of what the checks see; a recorder writes its own last record."""
        kept = len(self.records)
        self.records.append(Closed(t=self._clock(), records=kept, dropped=self.dropped))

    def _add(self, record: AnyRecord, size: int = 0) -> None:
        self._sink(record)
        if size > self._room or len(self.records) >= KEPT_RECORDS:
            self.dropped += 1
            return
        self._room -= size
        self.records.append(record)


def spoken_note(revision: Revision) -> str:
    return f"{_SPOKEN}{revision.value}"


def without_broken_off(records: Iterable[AnyRecord]) -> list[AnyRecord]:
    """The records of a client that we ended: what it could not finish is no message of its own.

    A note stands in its place, so that all others keep theirs.
    """
    kept = list(records)
    for place, record in enumerate(kept[1:]):
        before = kept[place]
        broken_off = isinstance(record, Note) and record.text == _BROKEN_OFF
        if not broken_off or not isinstance(before, Frame):
            continue
        if beginning_of(before.raw) is Beginning.OF_A_MESSAGE:
            kept[place] = Note(t=before.t, text=f"not finished: {show(before.raw)}")
    return kept


def spoken_in(records: Iterable[AnyRecord]) -> Revision | None:
    """The revision that the client chose, the last if it chose several times; None if it never
    got that far."""
    chosen = [
        record.text.removeprefix(_SPOKEN)
        for record in records
        if isinstance(record, Note) and record.text.startswith(_SPOKEN)
    ]
    return revision_of_wire(chosen[-1]) if chosen else None


def origins_of(records: list[AnyRecord]) -> dict[str, str]:
    """The addresses that were written down with `Tape.origins`, by name."""
    found: dict[str, str] = {}
    for record in records:
        if isinstance(record, Note) and record.text.startswith(_ORIGIN):
            name, _, url = record.text.removeprefix(_ORIGIN).partition(" is ")
            found.setdefault(name, url)
    return found
