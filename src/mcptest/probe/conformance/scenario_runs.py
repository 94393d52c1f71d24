"""Scenarios side by side, whoever is tested: each lane takes the next one until none is left."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from mcptest.core.scenario_outcome import ScenarioResult

Lane: TypeAlias = Callable[[int], ScenarioResult | None]
"""Runs the scenario of a place. It belongs to one thread; None: there is nothing to tell."""


class ScenarioRuns:
    """The results so far, by the place of their scenario; `tell` hears of each as it ends."""

    def __init__(self, tell: Callable[[ScenarioResult], None]) -> None:
        self.results: dict[int, ScenarioResult] = {}
        self.broken = threading.Event()
        """A lane has raised: the others are to come to an end."""
        self._tell = tell
        self._telling = threading.Lock()

    def note(self, place: int, result: ScenarioResult) -> None:
        with self._telling:
            self.results[place] = result
            self._tell(result)

    def run(self, places: Iterable[int], lanes: Sequence[Lane]) -> None:
        """A single lane runs in this thread."""
        drain = partial(self._drain, deque(places))
        if len(lanes) == 1:
            drain(lanes[0])
        elif lanes:
            with ThreadPoolExecutor(len(lanes), "mcptest-lane") as pool:
                list(pool.map(drain, lanes))  # the first error of them is raised

    def _drain(self, waiting: deque[int], lane: Lane) -> None:
        try:
            while not self.broken.is_set():
                try:
                    place = waiting.popleft()
                except IndexError:  # lanes share what is waiting, so another may have been faster
                    return
                result = lane(place)
                if result is not None:
                    self.note(place, result)
        except BaseException:
            self.broken.set()
            raise
