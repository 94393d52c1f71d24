"""Whether the command is about to end, for work that waits for nobody and so is never woken.

Who waits for a peer is told by its connection. A long search of our own has nothing of the kind: it
asks here now and then, and gives up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


class Cancellation:
    """All that may end the command: a signal, and the limits of what is under way."""

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
"""Of this process."""
