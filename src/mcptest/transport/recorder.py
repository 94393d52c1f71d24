"""Writing a capture while it happens, so that a crash loses nothing that was seen.

The recorder is the sink of a transport. Records are gathered and written whenever someone is about
to wait, so a busy session costs few system calls and a killed process leaves a readable file.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    Leftover,
    Opened,
    Stderr,
    Step,
    TransportName,
    Trouble,
)
from mcptest.core.errors import ErrorKind, UsageError, was_interrupted
from mcptest.core.limits import DEFAULT_LIMITS, Limits
from mcptest.core.masking import Masker, mask_record
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.transport.files import is_special, open_special, write_whole
from mcptest.wire.capture_forms import encode_records
from mcptest.wire.json_text import Beginning, beginning_of

PARTIAL = ".partial"
"""Added to the name while a capture is being written; what a kill leaves behind is readable."""
_GATHERED = 512
_GATHERED_BYTES = 1024 * 1024
"""Records that are held back at the most, and what is in them."""
_EVIDENCE = frozenset({HttpRequest, Stderr, Exited})


class Recorder:
    """A capture file being written. Owner-readable only: it holds what both sides said."""

    _file = -1

    def __init__(
        self, path: Path, *, masker: Masker | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.path = path
        self.spare_older = False
        """Leave an older capture of this name alone, whatever happened in this session."""
        self.error: OSError | None = None
        """Set when the file could not be written any more; what was written stays good."""
        self._given_masker = masker
        self._room = limits.capture_bytes
        self._gathered: list[AnyRecord] = []
        self._gathered_bytes = 0
        self._records = 0
        self._last_t = 0.0
        self.dropped = 0
        """Records that did not fit under the size limit."""
        self.messages = 0
        self.kept = False
        """Whether there is anything worth keeping: something was sent, or the peer was heard."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # A device or a pipe is written as it is; a file is replaced only by a whole capture.
            special = is_special(path)
            # A link keeps pointing where it does: what it names is replaced.
            self._place = path.resolve()
            self._partial = None if special else self._place.with_name(self._place.name + PARTIAL)
            self._file = (
                open_special(self._place)
                if self._partial is None
                else _open_alone(self._partial, path)
            )
        except OSError as error:
            raise UsageError(f"can't write the capture {path}: {error.strerror}") from None

    def begin(
        self,
        *,
        label: str,
        transport: TransportName,
        peer: str,
        spec_version: str = "auto",
        revision_reason: str = "",
    ) -> None:
        """Write the record that opens a session. A file may hold several, one after the other."""
        self(
            Opened(
                server_label=label,
                transport=transport,
                channel=os.urandom(8).hex(),
                peer=peer.encode("utf-8", "backslashreplace").decode("utf-8"),
                spec_version=spec_version,
                revision_reason=revision_reason,
                tool=f"mcptest {__version__}",
                started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            )
        )

    def __call__(self, record: AnyRecord) -> None:
        if type(record) is Frame:
            self.messages += 1
            self.kept = True
            self._gathered_bytes += len(record.raw)
        else:
            self.kept = self.kept or type(record) in _EVIDENCE
        self._gathered.append(record)
        if len(self._gathered) >= _GATHERED or self._gathered_bytes > _GATHERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand everything gathered to the operating system."""
        if not self._gathered:
            return
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        try:
            pending = b"".join(self._lines_that_fit(gathered))
        except BaseException:  # an interrupt: what was seen is written when the capture is closed
            self._gathered[:0] = gathered
            raise
        if self.error is None:
            try:
                write_whole(self._file, pending)
            except OSError as error:
                self.error = error

    def _lines_that_fit(self, gathered: list[AnyRecord]) -> list[bytes]:
        masker, last_t = self._given_masker or redaction.masker, self._last_t
        if not all(type(record) is Frame for record in gathered) or not masker.idle:
            masked = []
            for record in gathered:
                # Whoever tells of something without a clock of the session means: now.
                timed = record if record.t or type(record) is Frame else replace(record, t=last_t)
                last_t = timed.t
                masked.append(mask_record(timed, masker))
            gathered = masked
        self._last_t = gathered[-1].t or last_t
        lines = encode_records(gathered)
        size = sum(map(len, lines))
        if size > self._room:
            room, kept = self._room, []
            for line in lines:
                if len(line) <= room:
                    room -= len(line)
                    kept.append(line)
            self.dropped += len(lines) - len(kept)
            lines = kept
            size = sum(map(len, lines))
        self._room -= size
        self._records += len(lines)
        return lines

    def close(self, *, interrupted: bool = False) -> None:
        """Write the closing record and put the capture in its place.

        A session in which nothing was sent or heard leaves no file, and an older capture of the
        same name stays. One that could not be completed says so in `error`, and keeps its
        partial name.
        """
        if self._file < 0:
            return
        self.flush()
        self._room = 1024  # the last record is always written
        records = self._records
        self(Closed(t=self._last_t, records=records, interrupted=interrupted, dropped=self.dropped))
        self.flush()
        if self.spare_older and self._partial is not None and self._place.exists():
            self.kept = False
        try:
            with contextlib.suppress(OSError):  # pipes and devices can't be synced
                os.fsync(self._file)
            if self._partial is not None and not self.kept:
                self._partial.unlink()
            elif self._partial is not None and self.error is None:
                self._partial.replace(self._place)
            os.close(self._file)  # and let go of the lock, now that the name is free
        except OSError as error:
            self.error = self.error or error
        self._file = -1

    def __del__(self) -> None:
        """An interrupt may come before whoever asked for us holds us in a `with`."""
        self.close(interrupted=True)

    @property
    def written_to(self) -> Path:
        """Where the capture is to be found: under its partial name if it is not complete."""
        return self._partial if self._partial is not None and self.error is not None else self.path

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close(interrupted=was_interrupted(kind))


def _open_alone(partial: Path, path: Path) -> int:
    """Open a file for ourselves only. The lock ends with us, however we end."""
    while True:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(partial, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), partial.stat()):
                os.ftruncate(file, 0)
                return file
        except FileNotFoundError:
            pass  # its last owner put it in its place a moment ago
        except BlockingIOError:
            os.close(file)
            raise UsageError(
                f"another mcptest is writing the capture {path}",
                hint="wait until it has ended, or choose another file",
            ) from None
        os.close(file)


# -- Captures of a process that was killed -------------------------------------------------------


def finish_captures(folder: Path) -> None:
    """Put what a process was writing below this folder in its place, where that process is gone.

    A line that was not written to its end is cut off; where nothing but the beginning of a
    session is left, so is the file.
    """
    for partial in folder.rglob(f"*.jsonl{PARTIAL}"):
        with contextlib.suppress(OSError), partial.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # whoever writes it, has it
            # Whether there is anything worth keeping.
            end = records = 0
            has_evidence = False
            for line in file:
                if line.endswith(b"\n"):
                    end, records = end + len(line), records + 1
                    has_evidence = has_evidence or not line.startswith(b'{"kind":"capture"')
            closed = Closed(t=0.0, records=records, interrupted=True)
            file.seek(end)
            file.truncate()
            file.writelines(encode_records([closed]))
            if has_evidence:
                partial.replace(partial.with_suffix(""))
            else:
                partial.unlink()


# -- What a server still says while it is being ended, and what that is worth --------------------

KEPT_BYTES = 4096


def leftover(
    raw: bytes, t: float, *, size: int | None = None, stream: int | None = None
) -> Leftover:
    text = raw[:KEPT_BYTES].decode("utf-8", "backslashreplace")
    return Leftover(t=t, text=text, size=len(raw) if size is None else size, stream=stream)


def last_line(rest: bytes, step: Step, t: float, detail: str) -> Iterator[AnyRecord]:
    """The records of a line of the server whose newline never came, at the end of its output.

    `detail` says so, for a server that is to blame for it.
    """
    if not rest:
        return
    kind = beginning_of(rest)
    if step and kind is Beginning.OF_A_MESSAGE:
        yield leftover(rest, t)
        return
    yield Frame(t=t, sender="server", raw=rest)
    if not step or kind is Beginning.WHOLE:
        yield Trouble(t=t, error=ErrorKind.TRUNCATED.value, detail=detail, excerpt=show(rest))


class LateOutput(msgspec.Struct):
    """What comes after the server was told to end by a signal: counted, its beginning kept."""

    head: bytes = b""
    size: int = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.head += chunk[: KEPT_BYTES - len(self.head)]

    def records(self, t: float) -> Iterator[AnyRecord]:
        if self.size:
            yield leftover(self.head, t, size=self.size)
        self.head, self.size = b"", 0
