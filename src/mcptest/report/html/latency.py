"""How long answers took, by method and tool, from the times in a capture."""

from __future__ import annotations

import msgspec

NAMES_KEPT = 200
"""A server may make up names without end; what is beyond goes into one line."""
OTHERS = "(others)"


class Latency(msgspec.Struct, frozen=True):
    """All answers of one kind, in milliseconds."""

    server: str
    name: str
    count: int
    p50: float
    p95: float
    longest: float
    errors: int = 0


class Latencies:
    """Times of answers, gathered while the records of all sessions pass by."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], list[float]] = {}
        self._errors: dict[tuple[str, str], int] = {}

    def note(self, server: str, name: str, ms: float, *, failed: bool) -> None:
        key = (server, name)
        if key not in self._times and len(self._times) >= NAMES_KEPT:
            key = (server, OTHERS)
        self._times.setdefault(key, []).append(ms)
        self._errors[key] = self._errors.get(key, 0) + failed

    def measured(self) -> tuple[Latency, ...]:
        """The slowest first."""
        found = [_measured(*key, times, self._errors[key]) for key, times in self._times.items()]
        return tuple(sorted(found, key=lambda one: (-one.p95, one.server, one.name)))


def _measured(server: str, name: str, times: list[float], errors: int) -> Latency:
    ordered = sorted(times)
    return Latency(
        server=server,
        name=name,
        count=len(ordered),
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        longest=ordered[-1],
        errors=errors,
    )


def percentile(ordered: list[float], share: int) -> float:
    """The nearest rank: a time that was measured, never one in between."""
    rank = -(-share * len(ordered) // 100)
    return round(ordered[max(0, rank - 1)], 3)
