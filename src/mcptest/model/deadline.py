"""One deadline for one piece of work: connecting, writing, reading and closing take from it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mcptest.model.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock. `limit` is the length it was made with, for messages."""

    at: float
    limit: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds, seconds)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        return time.monotonic() >= self.at

    def within(self, seconds: float) -> Deadline:
        """A deadline for a part of the work: `seconds` from now, but never past this one."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at)


def parse_duration(text: str) -> float:
    """Read `500ms`, `30s`, `2m` or a bare number of seconds; the result is in seconds."""
    for suffix in ("ms", "s", "m", "h", ""):
        number = text.removesuffix(suffix) if suffix else text
        if number == text and suffix:
            continue
        try:
            seconds = float(number) * _UNITS.get(suffix, 1.0)
        except ValueError:
            break
        if 0 < seconds < 1e9:
            return seconds
        break
    raise UsageError(f"not a duration: {text!r}", hint="write it like 500ms, 30s or 2m")
