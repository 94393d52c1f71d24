"""Several things at once, where none of them can disturb another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def side_by_side(acts: Sequence[Callable[[], None]]) -> None:
    """Each in a thread of its own; when all have ended, the first error of them is raised."""
    with ThreadPoolExecutor(len(acts), "mcptest-lane") as pool:
        ended = [pool.submit(act) for act in acts]
    for one in ended:
        one.result()
