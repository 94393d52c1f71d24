"""A session of a capture as rows of a sequence diagram: who sent what when, and what answers it.

Every record that was read is one row, and where some were left out, one says how many. The rows are
columns of small values that the page holds as a whole; the records themselves go to `Chunks`, from
which the page reads the ones that are looked at.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any

import msgspec

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Leftover,
    Note,
    Opened,
    SseEvent,
    Stderr,
    StreamEnd,
    Trouble,
)
from mcptest.core.limits import MEBIBYTE
from mcptest.core.message import ABSENT, Kind, Message, id_key
from mcptest.core.safe_text import show
from mcptest.report.html.embedded import Chunks
from mcptest.report.html.page_facts import Fact, shortened
from mcptest.transport.process import signal_name
from mcptest.wire.envelope import decode, is_meant_as_message

# -- How long answers took, by method and tool, from the times in a capture ----------------------

NAMES_KEPT = 200
"""A server may make up names without end; what is beyond goes into one line."""
OTHERS = "(others)"


class Latency(msgspec.Struct, frozen=True):
    """All results of one kind, in milliseconds."""

    server: str
    name: str
    count: int
    p50: float
    p95: float
    longest: float


class Latencies(msgspec.Struct):
    """Times of results, gathered while the records of all sessions pass by."""

    _results: dict[tuple[str, str], list[float]] = {}

    def note(self, server: str, name: str, ms: float) -> None:
        key = (server, name)
        if key not in self._results and len(self._results) >= NAMES_KEPT:
            key = (server, OTHERS)
        self._results.setdefault(key, []).append(ms)

    def measured(self) -> tuple[Latency, ...]:
        """The slowest first."""
        found = []
        for key, times in self._results.items():
            times.sort()
            shares = percentile(times, 50), percentile(times, 95), times[-1]
            found.append(Latency(*key, len(times), *shares))
        return tuple(sorted(found, key=lambda one: (-one.p95, one.server, one.name)))


def percentile(ordered: list[float], share: int) -> float:
    """The nearest rank: a time that was measured, never one in between."""
    rank = -(-share * len(ordered) // 100)
    return round(ordered[max(0, rank - 1)], 3)


# -- A session of a capture as rows of a sequence diagram ----------------------------------------

LABEL = 140
BEGINNING = 160
ROOM = 16 * MEBIBYTE
SHORTENED = 64 * 1024
"""Bytes of a message that a page holds in any case, and those of all for which it has room."""
NOBODY, CLIENT, SERVER = 0, 1, 2
SERVER_WORKS, CLIENT_WORKS = 1, 2
_SENDERS = {"client": CLIENT, "server": SERVER}
_NAMED_BY = ("name", "uri", "level", "requestId", "progressToken")
_TOLD_APART = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests of which each name has a time of its own."""


class WireSession(msgspec.Struct, eq=False):
    """The rows of one session, filled while its records pass by."""

    label: str
    file: str
    transport: str | None
    form: str
    chunks: Chunks
    latencies: Latencies | None = None
    kinds: list[str] = []
    senders: list[int] = []
    times: list[float] = []
    labels: list[str] = []
    mates: dict[int, int] = {}
    working: list[int] = []
    first: int = -1
    """The number of the first record in the chunks."""
    left_out: int = 0
    """Records that the session has and the page does not show."""
    _places: list[int] = []
    _rows: list[int] = []
    """The rows of these places, in the same order."""
    _beginnings: dict[str, int] = {}
    _open: dict[tuple[int, Any], tuple[int, str, str]] = {}
    _pending: Counter[int] = msgspec.field(default_factory=Counter)
    _now: float = 0.0
    _is_started: bool = False
    """Whether the server has answered."""

    def watching(self, records: Iterator[tuple[int, AnyRecord]]) -> Iterator[tuple[int, AnyRecord]]:
        """The same records, each noted on its way, up to the first that was left out."""
        for place, record in records:
            self.note(place, record)
            if not self.left_out:  # a gap would make a session that never was
                yield place, record

    def note(self, place: int, record: AnyRecord) -> None:
        last = self._places[-1] if self._places else -1
        if self.form == "full" and place > last + 1:
            missing = place - last - 1
            self.left_out += missing
            more = f"… and {missing:,} more records"
            said = f"{more} in the capture, left out of this page"
            self._add(Note(t=record.t, text=said))
        if place != last:
            self._places.append(place)
            self._rows.append(len(self.kinds))
        self._add(record, place)

    def _add(self, record: AnyRecord, place: int | None = None) -> None:
        row = len(self.kinds)
        kept = _kept(record, max(SHORTENED, ROOM - self.chunks.written))
        if self.left_out and place is not None:
            kept["place"] = place
        number = self.chunks.add(kept)
        if self.first < 0:
            self.first = number
        self._now = record.t * 1000
        kind, sender, label = self._frame(row, record) if type(record) is Frame else _other(record)
        self.kinds.append(kind)
        self.senders.append(sender)
        self.times.append(round(record.t * 1000, 3))
        self.labels.append(shortened(label, LABEL))
        self.working.append(
            (SERVER_WORKS if self._pending[CLIENT] else 0)
            | (CLIENT_WORKS if self._pending[SERVER] else 0)
        )

    def row_of(self, place: int, sender: str | None = None) -> int:
        """The row of a record. An exchange of the public form has two: its request, its answer."""
        found = bisect_right(self._places, place) - 1
        if found < 0:
            return 0
        row = self._rows[found] + (self._places[found] != place)  # or the row of the gap behind it
        row = min(row, len(self.kinds) - 1)
        if self.form == "exchanges" and sender == "server":
            after = row + 1
            if after < len(self.senders) and self.senders[after] == SERVER:
                return after
        return row

    def row_showing(self, excerpt: str) -> int | None:
        """The first message that begins like an excerpt which `show` has made safe."""
        return self._beginnings.get(excerpt.removesuffix("…")[:BEGINNING])

    # -- messages --------------------------------------------------------------------------

    def _frame(self, row: int, frame: Frame) -> tuple[str, int, str]:
        sender = _SENDERS[frame.sender]
        self._beginnings.setdefault(show(frame.raw, BEGINNING + 1)[:BEGINNING], row)
        message = decode(frame.raw)
        if frame.stream is None and not is_meant_as_message(message):
            return "invalid", sender, f"not a JSON-RPC message: {show(frame.raw[:400], LABEL)}"
        if message.kind is Kind.BATCH:
            labels = [self._message(row, sender, item) for item in message.items]
            return "batch", sender, f"batch of {len(labels)}: {', '.join(labels[:5])}"
        if message.kind is Kind.INVALID:
            return "invalid", sender, f"not a JSON-RPC message: {show(frame.raw[:400], LABEL)}"
        return message.kind.value, sender, self._message(row, sender, message)

    def _message(self, row: int, sender: int, message: Message) -> str:
        if message.kind is Kind.REQUEST:
            key = (sender, id_key(message.id))
            if key not in self._open:
                self._pending[sender] += 1
            about = f"{message.method or '?'}{_subject(message)}"
            self._open[key] = (row, message.method or "?", about)
            return f"{about} #{_short(message.id)}"
        if message.is_answer:
            return self._answer(row, sender, message)
        return f"{message.method or '?'}{_subject(message)}"

    def _answer(self, row: int, sender: int, message: Message) -> str:
        other = SERVER if sender == CLIENT else CLIENT
        asked, method, about = self._open.pop((other, id_key(message.id)), (-1, "", ""))
        if asked >= 0:
            if sender == SERVER:
                self._time(asked, about, message)
            self._pending[other] -= 1
            self.mates[asked] = row
            self.mates[row] = asked
        name = f"{method or 'response without a request'} #{_short(message.id)}"
        if message.kind is Kind.RESULT:
            return f"{name} result{' isError' if _is_error(message) else ''}"
        error = message.error if isinstance(message.error, dict) else {}
        said = " ".join(_short(error[key]) for key in ("code", "message") if key in error)
        return f"{name} error {said}"

    def _time(self, asked: int, about: str, message: Message) -> None:
        """Of results only: an error is often one that was asked for. The first response has the
        start of the server in it, and the public form of a capture has no times."""
        first, self._is_started = not self._is_started, True
        if first or self.latencies is None or self.form != "full":
            return
        asking, _, subject = about.partition(" ")
        if asking == "initialize" or message.kind is Kind.ERROR or _is_error(message):
            return
        named = about if subject and asking in _TOLD_APART else asking
        self.latencies.note(self.label, named, max(0.0, self._now - self.times[asked]))


def _is_error(message: Message) -> bool:
    return type(message.result) is dict and message.result.get("isError") is True


def _subject(message: Message) -> str:
    """What the message is about, where one of its params names it."""
    for name in _NAMED_BY:
        value = message.params.get(name)
        if isinstance(value, str | int):
            return f" {_short(value)}"
    return ""


def _short(value: Any) -> str:
    if value is ABSENT:
        return "(no id)"
    return value[:80] if isinstance(value, str) else repr(value)[:80]


# -- everything else -------------------------------------------------------------------------


def _other(record: AnyRecord) -> tuple[str, int, str]:
    if isinstance(record, HttpRequest):
        return "http-request", CLIENT, f"{record.method} {record.url}"
    if isinstance(record, HttpResponse):
        return "http-response", SERVER, f"{record.status} {record.header('content-type') or ''}"
    if isinstance(record, SseEvent):
        said = record.data if record.comment is None else f": {record.comment}"
        return "sse", SERVER, f"event {record.sse.event or ''} {said}"
    if isinstance(record, StreamEnd):
        return "stream-end", SERVER, "stream ended" if record.complete else "stream ended early"
    if isinstance(record, Leftover):
        return "note", SERVER, f"left over at shutdown, {record.size} bytes: {record.text}"
    if isinstance(record, Stderr):
        return "stderr", SERVER, record.text
    if isinstance(record, Exited):
        return ("exit" if _ended_as_asked(record) else "exit-badly"), SERVER, _end_in_words(record)
    if isinstance(record, Trouble):
        return "trouble", NOBODY, f"{record.error}: {record.detail}"
    if isinstance(record, Note):
        return "note", NOBODY, record.text
    if isinstance(record, Opened):
        parts = (record.server_label, record.transport or "", record.spec_version)
        return "opened", NOBODY, "session " + " · ".join(filter(None, parts))
    assert isinstance(record, Closed)
    words = ["end of the capture"]
    words += ["interrupted"] if record.interrupted else []
    words += [f"{record.dropped} records not kept"] if record.dropped else []
    return "closed", NOBODY, ", ".join(words)


_SIGTERM = 15
_ASKED_TO_END = {
    "stdin-closed": "after stdin was closed",
    "terminate": "after our SIGTERM",
    "kill": "after our SIGKILL",
}


def _ended_as_asked(record: Exited) -> bool:
    """With 0, or by the SIGTERM that we sent; shells and Node make an exit code of a signal."""
    if record.after == "terminate":
        return record.signal == _SIGTERM or record.code in (0, 128 + _SIGTERM)
    return bool(record.after) and record.code == 0


def _end_in_words(record: Exited) -> str:
    how = f"exit code {record.code}"
    if record.signal is not None:
        how = f"ended by {signal_name(record.signal)}"
    return " ".join(filter(None, (how, _ASKED_TO_END.get(record.after, record.after))))


def _kept(record: AnyRecord, most: int) -> dict[str, Any]:
    """Everything that the record says, up to so many bytes. Those that are no text are base64.

    `bytes` says how many there were.
    """
    if type(record) is not Frame:
        kept: dict[str, Any] = msgspec.to_builtins(record)
        return kept
    kept = {"bytes": len(record.raw)}
    raw = record.raw[:most]
    try:
        kept["raw"] = raw.decode("utf-8", "strict" if raw is record.raw else "ignore")
    except UnicodeDecodeError:
        kept["base64"] = base64.b64encode(raw).decode("ascii")
    if record.stream is not None:
        kept["stream"] = record.stream
    if record.sse is not None:
        kept["sse"] = msgspec.to_builtins(record.sse)
    return kept


# -- Where in the wire view something is ---------------------------------------------------------


class Places:
    def __init__(self, sessions: Sequence[WireSession] = ()) -> None:
        self._sessions = sessions
        self._by_file: dict[str, list[int]] = {}
        self._by_name: dict[str, set[str]] = {}
        for number, session in enumerate(sessions):
            self._by_file.setdefault(session.file, []).append(number)
            self._by_name.setdefault(PurePath(session.file).name, set()).add(session.file)

    def sessions_in(self, file: str) -> list[int]:
        """By the path, else by the file's name where it names one file only: artifacts move."""
        if file in self._by_file:
            return self._by_file[file]
        files = self._by_name.get(PurePath(file).name, set()) if file else set()
        return self._by_file[next(iter(files))] if len(files) == 1 else []

    def of_excerpts(self, *excerpts: str, files: Sequence[str] | None = None) -> Iterator[Fact]:
        """Where the first of them that is found stands: in some files, or in any of them."""
        among = list(self._by_file) if files is None else files
        found = filter(None, (self.showing(among, one) for one in excerpts if one))
        yield from (Fact("On the wire", "wire", session=s, row=r) for s, r in islice(found, 1))

    def of_capture(
        self, file: str, record: int | None = None, excerpt: str = "", said: str = ""
    ) -> Iterator[Fact]:
        """The capture that holds everything: a link into it if it is at hand, else its name.

        The message is found by the record's place, or by its beginning; `said` is what it shows.
        """
        found = self.sessions_in(file)
        if not found:
            yield from (Fact("Capture", "code", name) for name in (file,) if name)
            return
        number, row = found[0], 0
        if record is not None and len(found) == 1:
            row = self._sessions[number].row_of(record)
        elif excerpt:
            number, row = self.showing([file], excerpt) or (number, row)
        yield Fact("On the wire", "wire", said, session=number, row=row)

    def showing(self, files: Sequence[str], excerpt: str) -> tuple[int, int] | None:
        """Session and row of the first message that begins with these bytes, among some files."""
        for file in files:
            for number in self.sessions_in(file):
                row = self._sessions[number].row_showing(excerpt)
                if row is not None:
                    return number, row
        return None
