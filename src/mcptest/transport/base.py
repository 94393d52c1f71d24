"""What every transport offers, and how it tells what happened.

A transport is made with a sink and reports every record to it, in order, before anyone else can
act on it: there is no way to talk to a peer without being recorded. All of it is synchronous:
whoever waits passes a deadline, and waiting is one `select` inside the transport.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from mcptest.core.capture import AnyRecord, TransportName
from mcptest.core.limits import MEBIBYTE, Deadline

if TYPE_CHECKING:
    from mcptest.transport.http.transports import StreamableHttp

Sink: TypeAlias = Callable[[AnyRecord], None]
NO_HEADERS: Mapping[str, str] = {}


def discard(record: AnyRecord) -> None:
    """The sink of someone who does not want a capture."""


class Clock:
    """Seconds since this clock was made, on the monotonic clock."""

    __slots__ = ("_start",)

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self) -> float:
        return round(time.monotonic() - self._start, 6)


class Transport(Protocol):
    """One connection to one server."""

    @property
    def name(self) -> TransportName: ...

    def open(self, deadline: Deadline) -> None:
        """Start the process, or make ready to connect. Raises PeerError."""

    def send(
        self, payload: bytes, deadline: Deadline, headers: Mapping[str, str] = NO_HEADERS
    ) -> int | None:
        """Send one message: a line, or the body of a POST with these extra headers.

        Returns the stream that will carry the answer, or None where there is only one. Never
        blocks past the deadline, and keeps reading while a full pipe makes it wait. Raises
        PeerError when the peer is gone or does not take the bytes in time.
        """

    def receive(self, deadline: Deadline) -> list[AnyRecord]:
        """What came from the peer, in order: waits for at least one record.

        An empty list means that the deadline passed. Once the peer is gone for good and all that
        it sent has been handed out, PeerError is raised, with the exit code and the tail of stderr.
        """

    def close(self, deadline: Deadline) -> None:
        """End it in the politest way that works in time. Never raises for what the peer does."""


def condition_of(transport: Transport) -> str:
    """What else a transport knows of a silent peer, as lines to append to a message."""
    condition = getattr(transport, "condition", None)
    return str(condition()) if condition is not None else ""


def partial_of(transport: Transport) -> str:
    """What has come of a message that is not complete, as a clause; empty if nothing has."""
    partial = getattr(transport, "partial", None)
    return str(partial()) if partial is not None else ""


def is_clogged(transport: Transport) -> bool:
    """Whether the peer does not take what was sent, so that nothing more can reach it."""
    return bool(getattr(transport, "is_clogged", False))


def http_streams(transport: Transport) -> StreamableHttp | None:
    """The transport as one that numbers its streams, where it does."""
    return cast("StreamableHttp", transport) if transport.name == "http" else None


# -- Large messages take memory ------------------------------------------------------------------

LARGE_BYTES = MEBIBYTE
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
            # Connections that were closed may hold large messages until somebody looks for them.
            late = time.monotonic() - self._collected_at > _COLLECT_SECONDS
            if self._reader is not reader and late:
                gc.collect()
                self._collected_at = time.monotonic()
            self._reader, self._read_at = reader, time.monotonic()
            return True

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
