"""The public form of a capture: `server_label`, `server_capabilities` and `exchanges`.

One session object, or an array of them. A file may be larger than memory, so the places of the
exchanges are found by a scan over the bytes (which may be a memory map) and each exchange is
decoded on its own. Writing pairs the requests of a full capture with their answers.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec

from mcptest.model.capture import AnyRecord, Frame, Opened
from mcptest.model.errors import UsageError
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import ABSENT, Kind, Message, id_key
from mcptest.model.show import show
from mcptest.wire.envelope import decode, is_meant_as_message

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
_decode = msgspec.json.Decoder().decode
_DEPTH = DEFAULT_LIMITS.depth + 4  # session, exchanges, exchange and message come on top


class _Entry(msgspec.Struct, frozen=True):
    request: msgspec.Raw
    response: msgspec.Raw = msgspec.Raw(b"null")


_decode_entry = msgspec.json.Decoder(_Entry).decode


@dataclass(slots=True)
class StoredSession:
    """A session of the public form, found but not yet read."""

    label: str = ""
    capabilities: Any = ABSENT
    spans: array[int] = field(default_factory=lambda: array("Q"))
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


def frames_of(session: StoredSession, buffer: Any, source: str) -> Iterator[tuple[int, Frame]]:
    """The messages of a stored session. The exchange's number stands in for the stream."""
    spans = session.spans
    for number in range(len(spans) // 2):
        begin, end = spans[2 * number], spans[2 * number + 1]
        request, response = _read_entry(buffer[begin:end], number, begin, source)
        yield number, Frame(sender="client", raw=request, stream=number)
        if response != b"null":
            yield number, Frame(sender="server", raw=response, stream=number)


def _read_entry(text: bytes, number: int, begin: int, source: str) -> tuple[bytes, bytes]:
    try:
        entry = _decode_entry(text)
    except (ValueError, RecursionError) as error:
        raise _unfit(number, begin, source, show(str(error), 160)) from None
    request, response = bytes(entry.request), bytes(entry.response)
    if request[0] not in b"{[":
        raise _unfit(number, begin, source, f"request is {show(request, 40)}, not an object")
    if response[0] not in b"{[" and response != b"null":
        raise _unfit(number, begin, source, f"response is {show(response, 40)}, not an object")
    return request, response


def _unfit(number: int, begin: int, source: str, reason: str) -> UsageError:
    return UsageError(f"{source}: exchange {number} at offset {begin}: {reason}", hint=EXPECTED)


class _Scan:
    """Walks the top levels of the JSON text; `end` is where the last value walked over ended."""

    def __init__(self, buffer: Any, source: str, walked: Callable[[int], None]) -> None:
        self.buffer = buffer
        self.source = source
        self.walked = walked
        self.end = 0
        self.wrong_guesses = 0

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

    def elements(self, position: int, what: str) -> Iterator[int]:
        """The begin of each element of the array at `position`; the caller moves `end` on."""
        position = self.after_space(position + 1)
        if self.at(position) == b"]":
            self.end = position + 1
            return
        while True:
            if self.at(position) != b"{":
                self.wrong(position, what)
            yield position
            position = self.after_space(self.end)
            if self.at(position) == b"]":
                self.end = position + 1
                return
            if self.at(position) != b",":
                self.wrong(position, "a comma or the end of the array")
            position = self.after_space(position + 1)

    def members(self, position: int) -> Iterator[tuple[str, int]]:
        """Key and begin of value of each member of the object at `position`."""
        position = self.after_space(position + 1)
        if self.at(position) == b"}":
            self.end = position + 1
            return
        while True:
            match = _TEXT.match(self.buffer, position)
            if match is None:
                self.wrong(position, "a key in quotes")
            colon = self.after_space(match.end())
            if self.at(colon) != b":":
                self.wrong(colon, "a colon")
            yield self.value(match.start(), match.end()), self.after_space(colon + 1)
            position = self.after_space(self.end)
            if self.at(position) == b"}":
                self.end = position + 1
                return
            if self.at(position) != b",":
                self.wrong(position, "a comma or the end of the object")
            position = self.after_space(position + 1)

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
            self.use_member(session, key, value, begin)
        if "exchanges" not in seen:
            self.wrong(position, "the member exchanges in the session object")
        return session

    def use_member(self, session: StoredSession, key: str, value: Any, begin: int) -> None:
        if key == "server_label":
            if not isinstance(value, str):
                self.wrong(begin, "server_label to be a string")
            session.label = value
        elif key == "server_capabilities":
            if value is not None and not isinstance(value, dict):
                self.wrong(begin, "server_capabilities to be an object or null")
            session.capabilities = value

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
                capabilities = _capabilities_in(item, method) or capabilities
    return {"server_label": label, "server_capabilities": capabilities, "exchanges": entries}


def _capabilities_in(answer: Message, method: str | None) -> Any:
    if method in {"initialize", "server/discover"} and isinstance(answer.result, dict):
        found = answer.result.get("capabilities")
        return found if isinstance(found, dict) else None
    return None
