"""Time for a display whose run waits too deep down to tell it: a thread that only says `tick`.

A run of suites needs none of this, its pool wakes up by itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from mcptest.report.progress import Progress

_BETWEEN_TICKS = 0.25


@contextlib.contextmanager
def ticking(progress: Progress) -> Iterator[Progress]:
    """The display is told of the time within the block, and is gone at its end."""
    over = threading.Event()
    thread = threading.Thread(target=_tick, args=(progress, over), daemon=True)
    if progress.is_live:
        thread.start()
    try:
        yield progress
    finally:
        over.set()
        progress.close()


def _tick(progress: Progress, over: threading.Event) -> None:
    while not over.wait(_BETWEEN_TICKS):
        progress.tick()
