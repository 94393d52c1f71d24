"""Standard output and standard error that outlive whoever reads them.

A full disk, a closed stream or a reader that left costs the output, and nothing else: the command
goes on and writes its other reports. What got lost is said at the end, and is no success.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from mcptest.model.errors import ExitCode

_REMEDY = "  the results are not complete there; give the output a place that can hold it"


class Output(io.FileIO):
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
                if self._refusal is None:
                    return self._written(data)
                raise self._refusal
            except OSError as error:
                self.lost = error
                self.when_lost()
        return memoryview(data).nbytes

    def _written(self, data: Any) -> int:
        while (count := super().write(data)) is None:  # somebody shares it and made it non-blocking
            import select

            select.select([], [self], [])
        return count


def take_over_streams() -> None:
    """Whoever started us may have closed them, or chosen an encoding that lacks our letters."""
    closed = {number: _refusal_of(number) for number in (0, 1, 2)}
    if any(closed.values()):
        for number in (0, 1, 2):
            if closed[number] is not None:  # the next file that is opened would become our stdout
                os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, closed[1], sys.stdout, errors="backslashreplace")
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, closed[2], sys.stderr, errors="backslashreplace")


def _refusal_of(number: int) -> OSError | None:
    try:
        os.fstat(number)
    except OSError:
        return OSError(errno.EBADF, "it is closed")
    return None


def _stream(
    number: int, closed: OSError | None, before: io.TextIOWrapper | None, *, errors: str
) -> io.TextIOWrapper:
    raw = Output(number, closed)
    at_once = number == 2 or (before is not None and before.line_buffering)
    encoding = before.encoding if before is not None else "utf-8"
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, encoding, errors=errors, line_buffering=at_once)


def standard_output() -> Output | None:
    """Ours, unless somebody put another stream in its place."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, Output) else None


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
    what = "the reader of the output left before its end" if left else "can't write the output"
    sys.stderr.write(f"mcptest: {what}: {error.strerror}\n{_REMEDY}\n")
