"""Our own stdout and stderr: nothing that is written to them holds a secret.

They take the places of `sys.stdout` and `sys.stderr` while a command runs, so whoever writes there
needs to know nothing of it. Servers of ours and proxies speak to their client through the
descriptor, and every byte of that stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, ClassVar, TextIO, cast

from mcptest.core.errors import ExitCode
from mcptest.core.redaction import redaction


class Meanwhile:
    """A display for as long as the command itself writes nothing: never both at once."""

    current: ClassVar[Meanwhile | None] = None
    shown_since: ClassVar[float | None] = None
    """When the wait began that a terminal shows."""

    def __init__(self, show: Callable[[Meanwhile], None]) -> None:
        """`show` runs in a thread of its own, until `lasts` says that it is over."""
        self._running = allocate_lock()
        self._running.acquire()
        self._drawing = allocate_lock()
        self._clear: Callable[[], None] | None = None
        Meanwhile.current = self
        start_new_thread(show, (self,))

    def lasts(self, seconds: float) -> bool:
        """Wait for so long; whether it still goes on."""
        return not self._running.acquire(timeout=seconds)

    def draw(self, draw: Callable[[], None], clear: Callable[[], None]) -> None:
        """`clear` takes away what was drawn, when it is over."""
        with self._drawing:
            if Meanwhile.current is self:
                self._clear = clear
                draw()

    def clear(self) -> None:
        with self._drawing:
            self._running.release()
            if self._clear is not None:
                self._clear()

    @classmethod
    def end(cls) -> None:
        """The command has something to say, or has ended."""
        this, cls.current = cls.current, None
        if this is not None:
            this.clear()


class MaskedStream:
    """A stream for text that hides secrets, also one that comes in several pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        """The end of what was written, as long as it may be the beginning of a secret."""
        self._flushed = ""
        """What had to be shown of such a beginning: too little to tell anything."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def unmasked(self) -> TextIO:
        return self._stream

    @property
    def buffer(self) -> BinaryIO:
        Meanwhile.end()
        self.release()
        return cast("BinaryIO", MaskedBytes(self._stream.buffer))

    def write(self, text: str) -> int:
        if Meanwhile.current is not None:
            Meanwhile.end()
        if redaction.idle:
            return self._stream.write(text)
        masker = redaction.masker
        whole = masker.text(self._flushed + self._held + text)
        fresh = whole.removeprefix(self._flushed)
        unfinished = masker.unfinished(whole)
        if unfinished <= len(fresh):
            self._flushed = ""
        held = min(unfinished, len(fresh))
        self._held = fresh[len(fresh) - held :]
        self._stream.write(fresh[: len(fresh) - held])
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Whoever looks sees it all, but for what looks like half a secret."""
        if self._held and not redaction.masker.is_telling(self._flushed + self._held):
            self._flushed += self._held
            self.release()
        self._stream.flush()

    def release(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._stream.write(held)


class MaskedBytes:
    """The same for bytes, which are written as whole documents."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, content: bytes) -> int:
        self._stream.write(redaction.document(bytes(content)))
        return len(content)


@contextlib.contextmanager
def masked_streams() -> Iterator[None]:
    """Everything that is printed meanwhile is masked."""
    before = sys.stdout, sys.stderr
    ours = MaskedStream(sys.stdout), MaskedStream(sys.stderr)
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", ours)
    try:
        yield
    finally:
        Meanwhile.end()
        sys.stdout, sys.stderr = before
        for stream in ours:
            with contextlib.suppress(OSError, ValueError):  # closed; what matters was flushed
                stream.release()


# -- Standard output and standard error that outlive whoever reads them --------------------------

_REMEDY = "  the output is incomplete; write it where it fits, and let its reader finish"


class StandardStream(io.FileIO):
    """A standard stream that notes the first write that failed, and takes no more from then on."""

    def __init__(self, descriptor: int, closed: OSError | None = None) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.lost: OSError | None = None
        """Why something that was written did not get there."""
        self.when_lost: Callable[[], None] = lambda: None
        """For commands without an end of their own."""
        self._refusal = closed

    def write(self, data: Any, /) -> int:
        if self.lost is None:
            try:
                if self._refusal is not None:
                    raise self._refusal
                while (count := super().write(data)) is None:  # somebody made it non-blocking
                    import select

                    select.select([], [self], [])
                return count
            except OSError as error:
                self.lost = error
                self.when_lost()
        return memoryview(data).nbytes


def take_over_streams() -> None:
    """Whoever started us may have closed them, or chosen an encoding that lacks our letters."""
    closed: dict[int, OSError] = {}
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            closed[number] = OSError(errno.EBADF, "it is closed")
    for _ in closed:  # the next file that is opened would become our stdout
        os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, closed.get(1), sys.stdout)
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, closed.get(2), sys.stderr)


def _stream(
    number: int, closed: OSError | None, before: io.TextIOWrapper | None
) -> io.TextIOWrapper:
    at_once = number == 2 or (before is not None and before.line_buffering)
    encoding = before.encoding if before is not None else "utf-8"
    buffered = io.BufferedWriter(StandardStream(number, closed))
    return io.TextIOWrapper(buffered, encoding, errors="backslashreplace", line_buffering=at_once)


def standard_output() -> StandardStream | None:
    """Ours, unless somebody put another stream in its place."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, StandardStream) else None


def code_with_output(code: int) -> int:
    """The exit code, when it is known what got lost. What is worse stays."""
    sys.stdout.flush()
    output = standard_output()
    if output is None or output.lost is None:
        return code
    say_lost(output.lost)
    return code or ExitCode.FAILED


def say_lost(error: OSError) -> None:
    left = error.errno == errno.EPIPE
    what = "the output was closed before its end" if left else "cannot write the output"
    sys.stderr.write(f"mcptest: {what}: {error.strerror}\n{_REMEDY}\n")
