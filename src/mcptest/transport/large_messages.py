"""Large messages take memory: one connection at a time takes one in, and what is freed is freed.

A process may talk to its servers on many connections side by side. A message of 15 MB is there
several times while it is read, decoded and recorded; so are all of them, if each connection
reads its own. What has to wait stays in the pipe or the socket, where it is the server that waits.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from functools import cache

from mcptest.model.limits import MEBIBYTE

LARGE_BYTES = 2 * MEBIBYTE
_WAIT_SECONDS = 0.02
_COLLECT_SECONDS = 1.0
"""The least time between two searches for garbage."""
LARGE_IDLE_SECONDS = 0.25
"""Whoever reads no further for so long does not keep the others waiting."""
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


class LargeMessages:
    """Whose large message is taken in now."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._reader: object = None
        self._read_at = 0.0
        self._collected_at = 0.0

    def may_read(self, reader: object) -> bool:
        """Whether `reader`, in the middle of a large message, may read on; waits a moment first."""
        return_large_blocks()
        with self._turn:
            if not self._is_free_for(reader):
                self._turn.wait(_WAIT_SECONDS)
            if not self._is_free_for(reader):
                return False
            if self._reader is not reader:
                self._collect_garbage()
            self._reader, self._read_at = reader, time.monotonic()
            return True

    def _collect_garbage(self) -> None:
        """Connections that were closed may hold large messages until somebody looks for them."""
        if time.monotonic() - self._collected_at > _COLLECT_SECONDS:
            gc.collect()
            self._collected_at = time.monotonic()

    def _is_free_for(self, reader: object) -> bool:
        if self._reader is None or self._reader is reader:
            return True
        return time.monotonic() - self._read_at > LARGE_IDLE_SECONDS

    def leave(self, reader: object) -> None:
        """What `reader` had read is done with."""
        with self._turn:
            if self._reader is reader:
                self._reader = None
                self._turn.notify_all()


large_messages = LargeMessages()
"""Of the whole process: its memory is one."""


@cache
def return_large_blocks() -> None:
    """Have large blocks returned to the system when they are freed (glibc).

    By default glibc raises its idea of a large block to the largest that was ever freed, up to
    32 MB, and keeps the smaller ones in every thread: of a flood of messages of 15 MB on three
    connections 60 MB were in use, and 180 MB more were kept.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # a libc without it
        return
    mallopt(_M_MMAP_THRESHOLD, MEBIBYTE)
    mallopt(_M_TRIM_THRESHOLD, 4 * MEBIBYTE)
