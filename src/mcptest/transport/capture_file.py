"""Opening stored captures: the only place that turns a path into sessions, in either form.

The form is recognised by content. Both are streamed: lines of the full form one at a time, the
public form through a memory map whose pages are given back as they are used up.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from mcptest.model.capture import AnyRecord, Opened
from mcptest.model.errors import UsageError
from mcptest.model.limits import DEFAULT_LIMITS, MEBIBYTE
from mcptest.model.show import show
from mcptest.wire.capture_codec import decode_records
from mcptest.wire.exchanges import EXPECTED, StoredSession, frames_of, stored_sessions
from mcptest.wire.session_source import SessionSource

LINE_LIMIT = 128 * MEBIBYTE
_GIVE_BACK_EVERY = 16 * MEBIBYTE
_FULL_FORM = re.compile(rb'\s*\{\s*"kind"\s*:')
_HINT = "record one with: mcptest record --server demo --out session.jsonl"


def open_capture(path: str) -> Iterator[SessionSource]:
    """The sessions of one file, to be read one after the other. UsageError when it is no capture.

    `-` is standard input. Each session must be read before the next one is asked for.
    """
    with _opened(path) as file:
        beginning = file.read(4096)
        file.seek(0)
        name = "standard input" if path == "-" else path
        if not beginning.strip():
            raise UsageError(f"{show(name)}: the file is empty", hint=_HINT)
        if _looks_full(beginning, file):
            yield from _full_sessions(file, name)
        elif beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            yield from _public_sessions(file, name)
        else:
            raise UsageError(
                f"{show(name)}: not a capture: it begins {show(beginning, 40)!r}", hint=EXPECTED
            )


def _opened(path: str) -> IO[bytes]:
    try:
        file = Path("/dev/stdin" if path == "-" else path).open("rb")  # noqa: SIM115 - given out
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            with file:
                return _copied_to_disk(file, path)
        return file
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read the capture {show(path)}: {reason}", hint=_HINT) from None
    except ValueError:
        raise UsageError(f"cannot read the capture {show(path)}: not a file name") from None


def _copied_to_disk(file: IO[bytes], path: str) -> IO[bytes]:
    """A pipe can't be mapped or read twice."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - given out
    size = 0
    while block := file.read(MEBIBYTE):
        size += len(block)
        if size > DEFAULT_LIMITS.capture_bytes:
            copy.close()
            raise UsageError(f"{show(path)}: more than {DEFAULT_LIMITS.capture_bytes} bytes")
        copy.write(block)
    copy.seek(0)
    return copy


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
    for number, line in enumerate(iter(partial(file.readline, LINE_LIMIT), b""), start=1):
        if len(line) >= LINE_LIMIT and not line.endswith(b"\n"):
            raise UsageError(f"{show(name)}:{number}: a line of more than {LINE_LIMIT} bytes")
        yield line


def _full_sessions(file: IO[bytes], name: str) -> Iterator[SessionSource]:
    records = decode_records(_lines(file, name), show(name))
    waiting: AnyRecord | None = next(records, None)
    if waiting is None:
        raise UsageError(f"{show(name)}: no whole record in the file", hint=_HINT)
    while waiting is not None:
        rest = _UntilNextSession(waiting, records)
        opened = waiting if type(waiting) is Opened else Opened(server_label=Path(name).name)
        yield SessionSource(
            label=opened.server_label,
            file=name,
            form="full",
            records=rest,
            transport=opened.transport,
            channel=opened.channel,
            spec_version=opened.spec_version,
            revision_reason=opened.revision_reason,
        )
        for _ in rest:
            pass  # whoever did not read to the end still gets the next session
        waiting = rest.next_session


class _UntilNextSession(Iterator[tuple[int, AnyRecord]]):
    """The records of one session with their places; `next_session` is what ended it."""

    def __init__(self, first: AnyRecord, records: Iterator[AnyRecord]) -> None:
        self.next_session: AnyRecord | None = None
        self._numbered = self._number(first, records)

    def __next__(self) -> tuple[int, AnyRecord]:
        return next(self._numbered)

    def _number(
        self, first: AnyRecord, records: Iterator[AnyRecord]
    ) -> Iterator[tuple[int, AnyRecord]]:
        yield 0, first
        for place, record in enumerate(records, start=1):
            if type(record) is Opened:
                self.next_session = record
                return
            yield place, record


def _public_sessions(file: IO[bytes], name: str) -> Iterator[SessionSource]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        found = False
        for stored in stored_sessions(buffer, show(name), _page_keeper(buffer)):
            found = True
            yield SessionSource(
                label=stored.label or Path(name).name,
                file=name,
                form="exchanges",
                records=_frames(stored, buffer, show(name)),
                server_capabilities=stored.capabilities,
            )
    if not found:
        raise UsageError(f"{show(name)}: an array without a session", hint=EXPECTED)


def _frames(stored: StoredSession, buffer: mmap.mmap, name: str) -> Iterator[tuple[int, AnyRecord]]:
    walked = _page_keeper(buffer)
    for number, frame in frames_of(stored, buffer, name):
        walked(stored.spans[2 * number])
        yield number, frame


def _page_keeper(buffer: mmap.mmap) -> Callable[[int], None]:
    """Pages that were read count as our memory until the system is told otherwise."""
    given_back = 0

    def walked(offset: int) -> None:
        nonlocal given_back
        if offset - given_back > _GIVE_BACK_EVERY and hasattr(mmap, "MADV_DONTNEED"):
            given_back = offset
            buffer.madvise(mmap.MADV_DONTNEED)

    return walked
