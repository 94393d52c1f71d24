"""How much a peer may send before we stop listening. Every limit has its own error kind."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

import msgspec

from mcptest.core.errors import UsageError

MEBIBYTE = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    message_bytes: int = 16 * MEBIBYTE
    """One stdio line, one SSE event or one decoded HTTP body."""
    header_bytes: int = 64 * 1024
    depth: int = 512
    values_bytes: int = 14 * MEBIBYTE
    """What the values of one message take once it is read, beside the text in them."""
    pages: int = 1_000
    items: int = 100_000
    findings: int = 1_000
    stderr_tail_bytes: int = 64 * 1024
    capture_bytes: int = 1024 * MEBIBYTE


DEFAULT_LIMITS = Limits()


# -- One deadline for one piece of work ----------------------------------------------------------

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DIGITS = "0123456789"
# Compiled when they are needed: hardly ever, and that takes longer than all else in here.
_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|us|µs|ns|s|m|h)"
_BARE = r"[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+"


class Deadline(msgspec.Struct, frozen=True):
    """A point on the monotonic clock. `limit` is the length it was made with, for messages."""

    at: float
    limit: float
    option: str = "--timeout"
    """What gives a peer more time that needs it."""

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds, seconds)

    @classmethod
    def for_start(cls, seconds: float, timeout: float) -> Deadline:
        """For a start and a handshake; it has an option of its own unless it is as the others."""
        option = "--timeout" if seconds == timeout else "--startup-timeout"
        return cls(time.monotonic() + seconds, seconds, option)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        return time.monotonic() >= self.at

    def within(self, seconds: float) -> Deadline:
        """A deadline for a part of the work: `seconds` from now, but never past this one."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at)


_TO_END = 2.0
_SHARE_TO_END = 0.1


def time_to_end(limit: float) -> float:
    """Seconds of the limit of a whole command that are kept for ending its peers and reporting."""
    return min(_TO_END, limit * _SHARE_TO_END)


def now() -> float:
    """The moment on the clock that deadlines are on."""
    return time.monotonic()


def parse_duration(text: str) -> float:
    """Read `500ms`, `30s`, `1m30s` or a bare number of seconds; the result is in seconds."""
    seconds = 0.0
    unit = text.lstrip(_DIGITS)
    if unit in _UNITS and unit != text:
        seconds = float(text.removesuffix(unit)) * _UNITS[unit]
    elif re.fullmatch(f"(?:{_PART})+", text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
    elif re.fullmatch(_BARE, text):
        seconds = float(text)
    if 0 < seconds < 1e9:
        return seconds
    raise UsageError(f"invalid duration: {text!r}", hint="write it like 500ms, 30s or 2m")


class Cancellation:
    """Whether the command is about to end, for work that waits for nobody and so is never woken.

    Who waits for a peer is told by its connection. A long search of our own has nothing of the
    kind: it asks here now and then, and gives up.
    """

    def __init__(self) -> None:
        self._reasons: list[Callable[[], bool]] = []

    @contextlib.contextmanager
    def heeding(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Within this, whoever asks gives up once `is_over` says so."""
        self._reasons.append(is_over)
        try:
            yield
        finally:
            self._reasons.remove(is_over)

    def is_over(self) -> bool:
        return any(is_over() for is_over in self._reasons)


cancellation = Cancellation()
"""Of this process: a signal, and the limits of what is under way."""
