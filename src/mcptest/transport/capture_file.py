"""Opening stored captures: the only place that turns a path into sessions, in either form.

The form is recognised by content. Both are streamed: lines of the full form one at a time, the
public form through a memory map whose pages are given back as they are used up.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, cast

import msgspec

from mcptest.core.capture import AnyRecord, Opened
from mcptest.core.errors import UsageError
from mcptest.core.limits import DEFAULT_LIMITS, MEBIBYTE, Deadline
from mcptest.core.safe_text import show
from mcptest.transport.files import blocks_of, open_input, unreadable
from mcptest.wire.capture_forms import (
    EXPECTED,
    SessionSource,
    decode_records,
    frames_of,
    stored_sessions,
)

LINE_LIMIT = 128 * MEBIBYTE
_GIVE_BACK_EVERY = 16 * MEBIBYTE
_FULL_FORM = re.compile(rb'\s*\{\s*"kind"\s*:')
_HINT = "record one with mcptest record --server demo --out session.jsonl"


class Excerpt(msgspec.Struct, frozen=True):
    """How much of a file is read where a few thousand records have to stand for millions.

    The beginning of each session is read. Of what follows, requests of the client, answers and
    facts of the transport are read as far as they fit, and then the end. The places of the records
    tell where some were left out.
    """

    first: int = 1_000
    """Of all sessions together; `least` of each in any case."""
    least: int = 500
    first_bytes: int = 8 * MEBIBYTE
    """And as many again of what follows."""
    telling: int = 1_500
    """Requests, answers and facts of each session after its beginning."""
    last: int = 200
    last_bytes: int = MEBIBYTE
    searched: int = DEFAULT_LIMITS.capture_bytes
    """Bytes of the file in which requests, answers and facts are looked for."""
    until: Deadline | None = None
    """When it is no longer looked for them."""
    longest: int = 4 * MEBIBYTE
    """Bytes of a record; a longer one is left out."""
    wanted: Sequence[Collection[int]] = ()
    """For each session, places that are read whatever stands there."""


def open_capture(path: str, excerpt: Excerpt | None = None) -> Iterator[SessionSource]:
    """The sessions of one file, to be read one after the other. UsageError when it is no capture.

    `-` is standard input. Each session must be read before the next one is asked for. With
    `excerpt`, that much is read of a long one in the full form.
    """
    with _opened(path) as file:
        beginning = file.read(4096)
        file.seek(0)
        name = "standard input" if path == "-" else path
        if not beginning.strip():
            raise UsageError(f"{show(name)}: the file is empty", hint=_HINT)
        if _looks_full(beginning, file):
            yield from _full_sessions(file, name, excerpt)
        elif beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
                found = False
                for stored in stored_sessions(buffer, show(name), _page_keeper(buffer)):
                    found = True
                    yield SessionSource(
                        label=stored.label or Path(name).name,
                        file=name,
                        form="exchanges",
                        records=frames_of(stored, buffer, show(name), _page_keeper(buffer)),
                        server_capabilities=stored.capabilities,
                    )
            if not found:
                raise UsageError(f"{show(name)}: an array without a session", hint=EXPECTED)
        else:
            raise UsageError(
                f"{show(name)}: not a capture, it starts with {show(beginning, 40)!r}",
                hint=EXPECTED,
            )


def _opened(path: str) -> BinaryIO:
    try:
        file = open_input("/dev/stdin" if path == "-" else path)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        with file:
            # A pipe can't be mapped or read twice.
            with contextlib.ExitStack() as closing:
                copy = closing.enter_context(tempfile.TemporaryFile())
                for block in blocks_of(file, DEFAULT_LIMITS.capture_bytes):
                    copy.write(block)
                copy.seek(0)
                closing.pop_all()
            return cast("BinaryIO", copy)
    except (OSError, ValueError) as error:
        refused = unreadable(path, "the capture", error)
        refused.hint = refused.hint or _HINT
        raise refused from None


def _looks_full(beginning: bytes, file: IO[bytes]) -> bool:
    if _FULL_FORM.match(beginning):
        return True
    try:
        first = json.loads(file.readline(MEBIBYTE))
    except (ValueError, RecursionError):
        return False
    finally:
        file.seek(0)
    return isinstance(first, dict) and isinstance(first.get("kind"), str)


def _lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Those that were there when it was opened: whoever is still writing may never end."""
    left = os.fstat(file.fileno()).st_size
    for number, line in enumerate(iter(partial(file.readline, LINE_LIMIT), b""), start=1):
        left -= len(line)
        if left < 0:
            return
        if len(line) >= LINE_LIMIT and not line.endswith(b"\n"):
            raise UsageError(f"{show(name)}:{number}: a line of more than {LINE_LIMIT} bytes")
        yield line


def _blocks(file: IO[bytes], longest: int) -> Iterator[bytes]:
    """Whole lines, many at a time. An empty one stands for each that is longer than `longest`."""
    while block := file.read(MEBIBYTE):
        if block.endswith(b"\n"):
            yield block
            continue
        rest = file.readline(longest)
        if rest.endswith(b"\n") or len(rest) < longest:
            yield block + rest
            continue
        yield block[: block.rfind(b"\n") + 1] + b"\n"
        del block
        while len(rest) >= longest and not rest.endswith(b"\n"):
            rest = file.readline(longest)


def _full_sessions(file: IO[bytes], name: str, excerpt: Excerpt | None) -> Iterator[SessionSource]:
    lines = _ExcerptLines(_blocks(file, excerpt.longest), excerpt) if excerpt is not None else None
    records = decode_records(lines or _lines(file, name), show(name))
    waiting: AnyRecord | None = next(records, None)
    if waiting is None:
        raise UsageError(f"{show(name)}: no whole record in the file", hint=_HINT)

    def of_session(first: AnyRecord) -> Iterator[tuple[int, AnyRecord]]:
        nonlocal waiting
        yield 0, first
        for place, record in enumerate(records, start=1):
            if type(record) is Opened:
                waiting = record
                return
            yield place + (lines.left_out if lines is not None else 0), record

    while waiting is not None:
        first, waiting = waiting, None
        opened = first if type(first) is Opened else Opened(server_label=Path(name).name)
        yield SessionSource(
            label=opened.server_label,
            file=name,
            form="full",
            records=of_session(first),
            transport=opened.transport,
            channel=opened.channel,
            spec_version=opened.spec_version,
            revision_reason=opened.revision_reason,
        )
        # whoever did not read to the end still gets the next session
        while waiting is None and (record := next(records, None)) is not None:
            waiting = record if type(record) is Opened else None


_OPENED = b'{"kind":"capture"'
_MESSAGE = b'{"kind":"message"'
_OTHERS = (b'{"kind":"stderr"', b'{"kind":"sse"', b'{"kind":"exit"', b'{"kind":"end"')
"""Facts that come in floods, or at the end, which is read anyway."""
_TELLING = (b'"sender":"client"', b'"result":', b'"error":')
_LOOKED_AT = 400
"""Bytes of a line in which its sender and its method are found; reading all of it takes longer."""


class _ExcerptLines(Iterator[bytes]):
    """The lines of a capture that are worth reading. `left_out` counts the others.

    They are looked at in blocks: most of a flood is passed over without taking it to pieces.
    """

    def __init__(self, blocks: Iterator[bytes], excerpt: Excerpt) -> None:
        self.left_out = 0
        self._excerpt = excerpt
        self._room, self._room_bytes = excerpt.first, excerpt.first_bytes
        self._session = -1
        self._place = 0
        self._telling = self._telling_bytes = 0
        self._left_to_search = excerpt.searched
        self._wanted: Collection[int] = ()
        self._end: deque[bytes] = deque()
        self._end_bytes = 0
        self._chosen = self._choose(blocks)

    def __next__(self) -> bytes:
        return next(self._chosen)

    def _choose(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._left_to_search -= len(block)
            self._heed_time()
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            if self._is_flood(block, count):
                self._pass_over(block, count)
                continue
            for line in BytesIO(block).readlines():  # at newlines only, unlike `splitlines`
                if self._session < 0 or line.startswith(_OPENED):
                    yield from self._end
                    self._begin_session()
                if line == b"\n":
                    self._leave_out_end()
                    self.left_out += 1
                elif self._is_chosen(line):
                    self._leave_out_end()
                    yield line
                    self._heed_time()  # whoever took it may have taken long
                else:
                    self._put_off(line)
                self._place += 1
        yield from self._end

    def _heed_time(self) -> None:
        """Once it is late, nothing more is looked for."""
        if self._excerpt.until is not None and self._excerpt.until.expired:
            self._left_to_search = 0

    def _pass_over(self, block: bytes, count: int) -> None:
        """Only what may turn out to be the end is taken to pieces."""
        start = len(block)
        for _ in range(self._excerpt.last + 1):
            start = block.rfind(b"\n", 0, max(0, start))
        kept = BytesIO(block[start + 1 :]).readlines()
        self.left_out += count - len(kept)
        self._place += count
        for line in kept:
            self._put_off(line)

    def _begin_session(self) -> None:
        excerpt = self._excerpt
        self._session += 1
        self._end.clear()
        self._end_bytes = self._place = self.left_out = 0
        self._telling = self._telling_bytes = 0
        self._room = max(excerpt.least, self._room)
        self._room_bytes = max(excerpt.last_bytes, self._room_bytes)
        wanted = excerpt.wanted
        self._wanted = wanted[self._session] if self._session < len(wanted) else ()

    @property
    def _has_room(self) -> bool:
        return self._room > 0 and self._room_bytes > 0

    @property
    def _has_room_to_tell(self) -> bool:
        most = self._excerpt
        has_room = self._telling < most.telling and self._telling_bytes < most.first_bytes
        return has_room and self._left_to_search > 0

    def _is_flood(self, block: bytes, lines: int) -> bool:
        """Whether no line of a block would be chosen, by the look of all of it."""
        if self._session < 0 or self._has_room or _OPENED in block:
            return False
        if any(self._place <= place < self._place + lines for place in self._wanted):
            return False
        if not self._has_room_to_tell:
            return True
        if any(mark in block for mark in _TELLING):
            return False
        missing = lines - block.count(_MESSAGE)
        return missing <= 0 or sum(map(block.count, _OTHERS)) >= missing

    def _is_chosen(self, line: bytes) -> bool:
        if self._has_room:
            self._room -= 1
            self._room_bytes -= len(line)
            return True
        if self._place in self._wanted:
            return True
        tells = self._has_room_to_tell and _tells(line)
        if tells:
            self._telling += 1
            self._telling_bytes += len(line)
        return tells

    def _put_off(self, line: bytes) -> None:
        """It is read if nothing but some more comes after it."""
        end, most = self._end, self._excerpt
        end.append(line)
        self._end_bytes += len(line)
        while len(end) > most.last or (self._end_bytes > most.last_bytes and len(end) > 1):
            self._end_bytes -= len(end.popleft())
            self.left_out += 1

    def _leave_out_end(self) -> None:
        self.left_out += len(self._end)
        self._end.clear()
        self._end_bytes = 0


def _tells(line: bytes) -> bool:
    """Whether a line is about what the client asked for, by the look of it."""
    if not line.startswith(_MESSAGE):
        return not line.startswith(_OTHERS)
    beginning = line[:_LOOKED_AT]
    if b'"sender":"client"' in beginning:
        return b'"method":' in beginning
    return b'"result":' in beginning or b'"error":' in beginning


def _page_keeper(buffer: mmap.mmap) -> Callable[[int], None]:
    """Pages that were read count as our memory until the system is told otherwise."""
    given_back = 0

    def walked(offset: int) -> None:
        nonlocal given_back
        if offset - given_back > _GIVE_BACK_EVERY and hasattr(mmap, "MADV_DONTNEED"):
            given_back = offset
            buffer.madvise(mmap.MADV_DONTNEED)

    return walked
