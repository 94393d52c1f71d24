"""A client in many scenarios: some at a time, each with a server and a process of its own."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from mcptest.model.conformance import ScenarioResult
from mcptest.run.conformance.client_runner import INTERRUPTED, ClientOrder, run_client

PATIENCE = 10.0
"""How long ending all clients may take after an interrupt."""


def run_clients(
    orders: Sequence[ClientOrder],
    *,
    jobs: int,
    tell: Callable[[ScenarioResult], None],
    should_stop: Callable[[], bool],
) -> list[ScenarioResult]:
    """Results in the order of `orders`; `tell` hears of each as it is finished, in this thread.

    Once it is to stop, all clients are ended, and only what was finished by then is given.
    """
    suite = _Suite(orders, should_stop)
    results: dict[int, ScenarioResult] = {}
    try:
        for number, result in suite.run(max(1, min(jobs, len(orders)))):
            if result.cause != INTERRUPTED:
                results[number] = result
                tell(result)
    finally:
        suite.stop()  # whatever ended us, also a defect of `tell`: no client is left
    return [results[number] for number in sorted(results)]


class _Suite:
    def __init__(self, orders: Sequence[ClientOrder], should_stop: Callable[[], bool]) -> None:
        self._orders = orders
        self._should_stop = should_stop
        self._stopped = False
        self._waiting: queue.SimpleQueue[tuple[int, ClientOrder]] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[tuple[int, ScenarioResult] | None] = queue.SimpleQueue()
        self._workers: list[threading.Thread] = []
        for numbered in enumerate(orders):
            self._waiting.put(numbered)

    def run(self, jobs: int) -> Iterator[tuple[int, ScenarioResult]]:
        for number in range(jobs if self._orders else 0):
            worker = threading.Thread(target=self._work, name=f"client-{number}", daemon=True)
            self._workers.append(worker)
            worker.start()
        left = len(self._workers)
        while left:
            found = self._finished.get()
            if found is None:
                left -= 1
            else:
                yield found

    def stop(self) -> None:
        self._stopped = True
        for worker in self._workers:
            worker.join(PATIENCE)

    def _work(self) -> None:
        with contextlib.suppress(queue.Empty):
            while not self._is_to_stop():
                number, order = self._waiting.get_nowait()
                self._finished.put((number, run_client(order, self._is_to_stop)))
        self._finished.put(None)

    def _is_to_stop(self) -> bool:
        return self._stopped or self._should_stop()
