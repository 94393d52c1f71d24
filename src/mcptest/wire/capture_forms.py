"""The full form of a capture: one record per line of JSON, in the order in which things happened.

The bytes of a message that is JSON on one line are written as they are, as member `message`, so
white space, key order and duplicate keys survive. Anything else is kept as `text`, or as `base64`
when it is not UTF-8. No file is opened here.
"""

from __future__ import annotations

import base64
import binascii
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NoReturn, TypeAlias

import msgspec

from mcptest.core.capture import (
    CAPTURE_FORMAT,
    AnyRecord,
    FactRecord,
    Frame,
    Opened,
    Record,
    Sender,
    Sse,
    TransportName,
)
from mcptest.core.errors import UsageError
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.core.message import ABSENT, Kind, id_key
from mcptest.core.safe_text import show
from mcptest.wire.envelope import decode, is_meant_as_message
from mcptest.wire.json_text import costs_too_much, write_json

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_MESSAGE_FROM = {"client": b',"sender":"client",', "server": b',"sender":"server",'}


class _FrameLine(Record, tag="message", frozen=True, kw_only=True):
    """A Frame as it stands in the file: exactly one of the last three members."""

    sender: Sender
    stream: int | None = None
    sse: Sse | None = None
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | None = None
    base64: str | None = None


Line: TypeAlias = Opened | _FrameLine | FactRecord
_decode_line = msgspec.json.Decoder(Line).decode


def encode_records(records: Iterable[AnyRecord]) -> list[bytes]:
    """Many records, each as its line. Those of one moment share the work on its time."""
    lines: list[bytes] = []
    keep = lines.append
    moment, begin = -1.0, b""
    for record in records:
        if type(record) is not Frame:
            keep(_encode(record) + b"\n")
            continue
        if record.t != moment:
            moment = record.t
            begin = b'{"kind":"message","t":%r' % moment
        raw = record.raw
        sender = _MESSAGE_FROM[record.sender]
        if record.stream is not None or record.sse is not None:
            place = b"" if record.stream is None else b'"stream":%d,' % record.stream
            event = b"" if record.sse is None else b'"sse":' + _encode(record.sse) + b","
            sender += place + event
        if raw[:1] == b"{" and raw[-1:] == b"}" and b"\n" not in raw and _is_json(raw):
            # Half the time of formatting it, and one copy of what may be large.
            keep(b"".join((begin, sender, b'"message":', raw, b"}\n")))
        else:
            keep(b"%b%b%b}\n" % (begin, sender, _other_than_object(raw)))
    return lines


def decode_records(lines: Iterable[bytes], source: str = "capture") -> Iterator[AnyRecord]:
    """The records of a full capture. Only a last line without its newline may be torn.

    A writer that was killed leaves such a line behind; everything before it is still good. Any
    other line that can't be read raises UsageError with its number.
    """
    for number, line in enumerate(lines, start=1):
        try:
            record = _decode_line(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n") and not _is_whole_json(line):
                return  # torn by a crash of the writer
            if not line.strip():
                continue
            reason = (
                "nested too deeply" if isinstance(error, RecursionError) else show(str(error), 160)
            )
            raise UsageError(
                f"{source}:{number}: not a record of a capture: {reason}",
                hint=f"the line starts with {show(line, 80)!r}; see docs/capture-format.md",
            ) from None
        if type(record) is _FrameLine:
            yield _frame_of(record, source, number)
        else:
            if type(record) is Opened and record.format > CAPTURE_FORMAT:
                raise UsageError(
                    f"{source}:{number}: capture format {record.format} is newer than this mcptest",
                    hint=f"this version reads format {CAPTURE_FORMAT} and older",
                )
            yield record


def _is_json(raw: bytes) -> bool:
    """Whether a reader of the line will find exactly these bytes again."""
    if costs_too_much(raw):
        return False
    try:
        _check_json(raw)  # looks at every byte, builds nothing
        return raw.isascii() or bool(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return False


def _other_than_object(raw: bytes) -> bytes:
    """A batch is embedded too; what is no JSON on one line is quoted."""
    if raw[:1] == b"[" and raw[-1:] == b"]" and b"\n" not in raw and _is_json(raw):
        return b'"message":' + raw
    try:
        return b'"text":' + _encode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return b'"base64":"' + base64.b64encode(raw) + b'"'


def _frame_of(line: _FrameLine, source: str, number: int) -> Frame:
    raw = line.message
    if raw is not msgspec.UNSET:
        content = bytes(raw)
    elif line.text is not None:
        content = line.text.encode("utf-8")
    elif line.base64 is not None:
        try:
            content = base64.b64decode(line.base64, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{source}:{number}: the member base64 is not base64") from None
    else:
        raise UsageError(
            f"{source}:{number}: a message record without its message",
            hint="expected one of the members message, text and base64",
        )
    return Frame(t=line.t, sender=line.sender, raw=content, stream=line.stream, sse=line.sse)


def _is_whole_json(line: bytes) -> bool:
    try:
        _decode(line)
    except (ValueError, RecursionError):
        return False
    return True


# -- One session of a capture, whichever form it was stored in -----------------------------------

CaptureForm: TypeAlias = Literal["full", "exchanges"]


class SessionSource(msgspec.Struct, frozen=True):
    """`records` can be read once. In the public form the place is that of the exchange."""

    label: str
    file: str
    form: CaptureForm
    records: Iterator[tuple[int, AnyRecord]]
    transport: TransportName | None = None
    channel: str | None = None
    spec_version: str = ""
    revision_reason: str = ""
    """Why the client that recorded it spoke the revision that it did."""
    server_capabilities: Any = ABSENT
    """What the public form says beside its exchanges; ABSENT in the full form."""

    @property
    def unit(self) -> str:
        """What a place in this session counts, for people."""
        return "exchange" if self.form == "exchanges" else "record"


# -- The public form of a capture ----------------------------------------------------------------

EXPECTED = (
    "expected a session object with server_label, server_capabilities and exchanges, "
    "or an array of such objects; see docs/capture-format.md"
)
# Strings are consumed whole and possessively, so one match costs one bracket and stays linear.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NEXT_BRACKET = re.compile(
    rb'[^"\[\]{}]*+(?:' + _STRING + rb'[^"\[\]{}]*+)*+([\[{]|[\]}])', re.DOTALL
)
_NEXT_EXCHANGE = re.compile(rb'\}[ \t\r\n]*+,[ \t\r\n]*+(\{)[ \t\r\n]*+"request"')
_GUESS_WITHIN = 1024 * 1024
_WRONG_GUESSES = 100
_WORD = re.compile(rb"[^\s,\]}]+")
_TEXT = re.compile(_STRING, re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")
_DEPTH = DEFAULT_LIMITS.depth + 4  # session, exchanges, exchange and message come on top


class _Entry(msgspec.Struct, frozen=True):
    request: msgspec.Raw
    response: msgspec.Raw = msgspec.Raw(b"null")


_decode_entry = msgspec.json.Decoder(_Entry).decode


class StoredSession(msgspec.Struct):
    """A session of the public form, found but not yet read."""

    label: str = ""
    capabilities: Any = ABSENT
    spans: array[int] = msgspec.field(default_factory=lambda: array("Q"))
    """Begin and end of each exchange, one after the other."""


def stored_sessions(
    buffer: Any, source: str, walked: Callable[[int], None] = lambda offset: None
) -> Iterator[StoredSession]:
    """Find the sessions of a public capture, one at a time.

    `walked` is told where each exchange ended, so that the owner of a memory map can let go of it.
    """
    scan = _Scan(buffer, source, walked)
    position = scan.after_space(3 if buffer[:3] == b"\xef\xbb\xbf" else 0)
    if scan.at(position) == b"[":
        for begin in scan.elements(position, "a session"):
            yield scan.session(begin)
        position = scan.end
    else:
        yield scan.session(position)
        position = scan.end
    rest = scan.after_space(position)
    if rest < len(buffer):
        scan.wrong(rest, "the end of the file")


def frames_of(
    session: StoredSession, buffer: Any, source: str, walked: Callable[[int], None]
) -> Iterator[tuple[int, Frame]]:
    """The messages of a stored session. The exchange's number stands in for the stream."""
    spans = session.spans
    for number in range(len(spans) // 2):
        begin, end = spans[2 * number], spans[2 * number + 1]
        walked(begin)
        try:
            entry = _decode_entry(buffer[begin:end])
            request, response = bytes(entry.request), bytes(entry.response)
            if request[0] not in b"{[":
                raise ValueError(f"request is {show(request, 40)}, not an object")
            if response[0] not in b"{[" and response != b"null":
                raise ValueError(f"response is {show(response, 40)}, not an object")
        except (ValueError, RecursionError) as error:
            where = f"{source}: exchange {number} at offset {begin}"
            raise UsageError(f"{where}: {show(str(error), 160)}", hint=EXPECTED) from None
        yield number, Frame(sender="client", raw=request, stream=number)
        if response != b"null":
            yield number, Frame(sender="server", raw=response, stream=number)


class _Scan(msgspec.Struct):
    """Walks the top levels of the JSON text; `end` is where the last value walked over ended."""

    buffer: Any
    source: str
    walked: Callable[[int], None] = lambda offset: None
    end: int = 0
    wrong_guesses: int = 0

    def at(self, position: int) -> bytes:
        character: bytes = self.buffer[position : position + 1]
        return character

    def after_space(self, position: int) -> int:
        match = _SPACE.match(self.buffer, position)
        return match.end() if match else position

    def wrong(self, position: int, expected: str) -> NoReturn:
        if position >= len(self.buffer):
            raise UsageError(
                f"{self.source}: the file ends at offset {position}, expected {expected}",
                hint="the file is truncated; " + EXPECTED,
            )
        found = show(bytes(self.buffer[position : position + 40]), 30)
        raise UsageError(
            f"{self.source}: offset {position}: expected {expected}, found {found!r}", hint=EXPECTED
        )

    def items(self, position: int, closing: bytes, what: str) -> Iterator[int]:
        """The begin of each item of the array or object; the caller moves `end` on."""
        position = self.after_space(position + 1)
        is_empty = self.at(position) == closing
        while not is_empty:
            yield position
            position = self.after_space(self.end)
            if self.at(position) == closing:
                break
            if self.at(position) != b",":
                self.wrong(position, f"a comma or the end of the {what}")
            position = self.after_space(position + 1)
        self.end = position + 1

    def elements(self, position: int, what: str) -> Iterator[int]:
        """The begin of each element of the array at `position`, which are objects."""
        for begin in self.items(position, b"]", "array"):
            if self.at(begin) != b"{":
                self.wrong(begin, what)
            yield begin

    def members(self, position: int) -> Iterator[tuple[str, int]]:
        """Key and begin of value of each member of the object at `position`."""
        for begin in self.items(position, b"}", "object"):
            match = _TEXT.match(self.buffer, begin)
            if match is None:
                self.wrong(begin, "a key in quotes")
            colon = self.after_space(match.end())
            if self.at(colon) != b":":
                self.wrong(colon, "a colon")
            yield self.value(match.start(), match.end()), self.after_space(colon + 1)

    def session(self, position: int) -> StoredSession:
        if self.at(position) != b"{":
            self.wrong(position, "a session object")
        session = StoredSession()
        seen: set[str] = set()
        for key, begin in self.members(position):
            if key in seen:
                self.wrong(begin, f"each member once, but {show(key, 40)!r} is there twice")
            seen.add(key)
            if key == "exchanges":
                self.exchanges(begin, session)
                continue
            end = self.skip(begin)
            value = self.value(begin, end)
            if key == "server_label":
                if not isinstance(value, str):
                    self.wrong(begin, "server_label to be a string")
                session.label = value
            elif key == "server_capabilities":
                if value is not None and not isinstance(value, dict):
                    self.wrong(begin, "server_capabilities to be an object or null")
                session.capabilities = value
        if "exchanges" not in seen:
            self.wrong(position, "the member exchanges in the session object")
        return session

    def exchanges(self, position: int, session: StoredSession) -> None:
        if self.at(position) != b"[":
            self.wrong(position, "exchanges to be an array")
        spans = session.spans
        for begin in self.elements(position, "an exchange object"):
            counted = self.guess(begin, spans)
            spans.append(counted)
            spans.append(self.skip(counted))
            self.walked(self.end)

    def guess(self, begin: int, spans: array[int]) -> int:
        """Walk over exchanges by where the next one seems to begin; where that ends, count.

        A guess that reads as a whole object is right: no object is the beginning of another. A
        file that is written differently makes guessing costly, so it is given up after a while.
        """
        while self.wrong_guesses < _WRONG_GUESSES:
            match = _NEXT_EXCHANGE.search(self.buffer, begin, begin + _GUESS_WITHIN)
            if match is None:
                break
            end = match.start() + 1
            try:
                _decode_entry(self.buffer[begin:end])
            except (ValueError, RecursionError):
                break  # those words stood inside a string, or it is malformed: counting will tell
            spans.append(begin)
            spans.append(end)
            self.walked(end)
            begin = match.start(1)
        self.wrong_guesses += 1
        return begin

    def skip(self, position: int) -> int:
        """Where the value at `position` ends; brackets are counted, nothing is decoded."""
        first = self.at(position)
        if first not in (b"{", b"["):
            match = (_TEXT if first == b'"' else _WORD).match(self.buffer, position)
            if match is None:
                self.wrong(position if first != b'"' else len(self.buffer), "a value")
            self.end = match.end()
            return self.end
        depth = 0
        find = _NEXT_BRACKET.match
        while True:
            match = find(self.buffer, position)
            if match is None:
                self.wrong(len(self.buffer), "the end of an object or array")
            position = match.end()
            depth += 1 if match.group(1) in b"[{" else -1
            if depth == 0:
                self.end = position
                return position
            if depth > _DEPTH:
                self.wrong(position, f"at most {DEFAULT_LIMITS.depth} levels of nesting")

    def value(self, begin: int, end: int) -> Any:
        self.end = end
        try:
            return _decode(self.buffer[begin:end])
        except (ValueError, RecursionError):
            self.wrong(begin, "valid JSON")


# -- Replacing one value inside JSON text while every other byte stays as it was -----------------

_Changes: TypeAlias = Mapping[tuple[str | int, ...], Any]
"""Values by the names of members, and the places of items, that lead to them."""


def replace_members(raw: bytes, changes: _Changes) -> bytes:
    """The text with the values at these places replaced, where they are present.

    Raises UsageError when an object or an array on the way can't be read.
    """
    scan = _Scan(raw, "a message")
    pieces, last = [], 0
    for start, end, written in sorted(_edits(scan, scan.after_space(0), changes)):
        pieces += [raw[last:start], written]
        last = end
    return b"".join((*pieces, raw[last:]))


def _edits(scan: _Scan, at: int, changes: _Changes) -> Iterator[tuple[int, int, bytes]]:
    wanted: dict[str | int, dict[tuple[str | int, ...], Any]] = {}
    for (name, *rest), value in changes.items():
        wanted.setdefault(name, {})[tuple(rest)] = value
    # of two members with one name the last one counts
    spans = {name: (start, end) for name, start, end in _parts(scan, at) if name in wanted}
    for name, (start, end) in spans.items():
        if () in wanted[name]:
            yield start, end, write_json(wanted[name][()])
        else:
            yield from _edits(scan, start, wanted[name])


def _parts(scan: _Scan, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Each member of the object or item of the array that begins here; of other values none."""
    begins: Iterable[tuple[str | int, int]] = ()
    if scan.at(at) == b"{":
        begins = scan.members(at)
    elif scan.at(at) == b"[":
        begins = enumerate(scan.items(at, b"]", "array"))
    for name, begin in begins:
        yield name, begin, scan.skip(begin)


# -- From the full form to the public one --------------------------------------------------------


def exchanges_of(records: Iterable[AnyRecord]) -> dict[str, Any]:
    """The public form of one full session: requests in order, each with its answer if it came.

    Messages that only the server sends have no place in that form. Values are `msgspec.Raw`, so
    what was sent is written as it was sent.
    """
    label = ""
    capabilities: Any = None
    entries: list[dict[str, Any]] = []
    open_requests: dict[Any, tuple[dict[str, Any], str | None]] = {}
    for record in records:
        if type(record) is Opened:
            label = record.server_label
        if type(record) is not Frame:
            continue
        message = decode(record.raw)
        if record.stream is None and not is_meant_as_message(message):
            continue  # noise
        for item in message.items or (message,):
            raw = msgspec.Raw(item.raw or msgspec.json.encode(item.value))
            if record.sender == "client" and item.method is not None:
                entry = {"request": raw}
                entries.append(entry)
                if item.kind is Kind.REQUEST:
                    open_requests[id_key(item.id)] = (entry, item.method)
            elif record.sender == "server" and item.is_answer:
                entry, method = open_requests.pop(id_key(item.id), ({}, None))
                entry["response"] = raw
                if method in {"initialize", "server/discover"} and isinstance(item.result, dict):
                    found = item.result.get("capabilities")
                    capabilities = found if isinstance(found, dict) else capabilities
    return {"server_label": label, "server_capabilities": capabilities, "exchanges": entries}
