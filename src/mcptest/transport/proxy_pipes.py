"""Passing bytes from one descriptor to another: all of them, however slow the other side is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
from collections.abc import Iterator

_SMALL = 64 * 1024
_LARGE = 1024 * 1024
"""As much as a pipe holds after `widen`, and so what one read can give at the most."""


def widen(pipe: int) -> None:
    """Let a pipe hold more, so that a stream of data needs fewer turns. Others stay as they are."""
    # Not on every system, not for files and sockets, and not beyond what a user may have.
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGE)


def chunks_of(source: int, gone: int, *, drain: bool) -> Iterator[bytes]:
    """What can be read from `source`, until its end or until `gone` tells that the server is.

    With `drain` the rest that a dead server left in its pipe still comes, but no waiting: a
    descendant of the server may hold the pipe open for ever.
    """
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    waiting.register(gone, select.POLLIN)
    size = _SMALL
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if gone in ready and not drain:
            return
        try:
            chunk = os.read(source, size) if source in ready or drain else b""
        except BlockingIOError:
            if gone in ready:
                return
            continue
        except OSError:  # closed under our hands, or its terminal is gone: the same as its end
            return
        if not chunk:
            return
        # A large buffer for each small message would cost more than the message.
        size = _LARGE if len(chunk) == size else _SMALL
        yield chunk


def write_all(sink: int, chunk: bytes, gone: int | None = None) -> None:
    """Write it all, waiting as long as the reader needs, or until the server is gone."""
    rest: bytes | memoryview = chunk
    while rest:
        try:
            written = os.write(sink, rest)
        except BlockingIOError:
            _wait_until_writable(sink, gone)
        else:
            rest = memoryview(rest)[written:]


def _wait_until_writable(sink: int, gone: int | None) -> None:
    waiting = select.poll()
    waiting.register(sink, select.POLLOUT)
    if gone is not None:
        waiting.register(gone, select.POLLIN)
    if any(descriptor == gone for descriptor, _ in waiting.poll()):
        raise BrokenPipeError
