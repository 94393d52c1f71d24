"""How long silence is waited for in one run: about one timeout in all, however often it is met."""

from __future__ import annotations

import threading

from mcptest.run.compliance.order import Order

_PATIENCE_WITH_WORK = 2.0
"""How many times our patience is left for a tool, once a whole timeout was waited in vain."""


class Waits:
    """What one run has waited for in vain so far. Waits side by side count once."""

    def __init__(self, order: Order) -> None:
        self._timeout = order.timeout
        self._patience = order.patience
        self._spent = 0.0
        self._counted_until = 0.0
        self._lock = threading.Lock()

    def left(self, *, at_work: bool = False) -> float:
        """For how many seconds the next answer is waited for."""
        least = self._patience * (_PATIENCE_WITH_WORK if at_work else 1.0)
        return max(min(least, self._timeout), self._timeout - self._spent)

    def in_vain(self, begun: float, ended: float) -> None:
        """Between these two moments an answer was waited for that did not come."""
        with self._lock:
            self._spent += max(0.0, ended - max(begun, self._counted_until))
            self._counted_until = max(ended, self._counted_until)
