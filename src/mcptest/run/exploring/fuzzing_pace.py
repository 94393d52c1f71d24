"""How many calls are under way at once and how long silence may last, learned from the tool.

Silence only breaks off what was sent together: whoever is called a hang was alone with the server
for the whole time-out.
"""

from __future__ import annotations

_FIRST = 16
_WIDEST = 256
_WIDEST_OVER_HTTP = 64
_QUICK = 0.25
"""Answered within this many seconds, the next may be twice as many."""
_SLOW = 2.0
"""Beyond it they are half as many: when one spoils the rest, all of them are sent again."""
_PATIENCE = 3.0
_SPREAD = 4
"""A tool may take so many times longer than it ever did before its silence means something."""


class Pace:
    """One tool's."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._longest = 0.0
        self.width = _FIRST

    @property
    def patience(self) -> float:
        """How long no answer at all may come while calls are under way."""
        return min(self._timeout, _PATIENCE + _SPREAD * self._longest)

    def answered(self, seconds: float, *, over_http: bool) -> None:
        """What was sent together was answered within that time."""
        if seconds < _QUICK:
            self.width = min(2 * self.width, _WIDEST_OVER_HTTP if over_http else _WIDEST)
        elif seconds > _SLOW:
            self.width = max(2, self.width // 2)

    def waited(self, seconds: float) -> None:
        """So long there was nothing, and then an answer."""
        self._longest = max(self._longest, seconds)

    def broken(self) -> None:
        """An answer is missing: fewer at once, at last one by one."""
        self.width = max(1, self.width // 4)
