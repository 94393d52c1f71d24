"""One run at a time beside whoever watches, who is woken when there is something to know."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from mcptest.model.results import RunReport, TestResult
from mcptest.run.interrupt import Stop
from mcptest.run.watching_affected import Wish
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Test

_LONGEST_END = 15.0


class Plan(msgspec.Struct, frozen=True):
    """A wish with the tests as they were when its run began."""

    wish: Wish
    tests: tuple[Test, ...]
    loaded: LoadedSuite


Tell: TypeAlias = Callable[[TestResult], None]
CarryOut: TypeAlias = Callable[[Plan, Stop, Tell], RunReport]


class Ended(msgspec.Struct, frozen=True):
    """A run is over: with its report, or with what made it impossible."""

    plan: Plan
    report: RunReport = RunReport()
    error: Exception | None = None


class Runner:
    """Runs in a thread of its own, so that keys and changes are heard meanwhile."""

    def __init__(self, carry_out: CarryOut, wake: Callable[[], None]) -> None:
        self._carry_out = carry_out
        self._wake = wake
        self._news: queue.SimpleQueue[TestResult | Ended] = queue.SimpleQueue()
        self._stop: Stop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Until its end has been read."""
        return self._stop is not None

    def start(self, plan: Plan) -> None:
        assert self._stop is None  # one at a time: servers may own ports and files
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, args=(plan, self._stop), daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """End the run in order; its end comes with the news. A signal handler may call this."""
        if self._stop is not None:
            self._stop.set()

    def close(self) -> None:
        """End it whatever the reason, and wait; a run takes a few seconds at most to end."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(_LONGEST_END)

    def news(self) -> list[TestResult | Ended]:
        found: list[TestResult | Ended] = []
        while not self._news.empty():
            found.append(self._news.get())
        if found and isinstance(found[-1], Ended):
            assert self._thread is not None
            self._thread.join()
            self._stop = None
        return found

    def _run(self, plan: Plan, stop: Stop) -> None:
        try:
            ended = Ended(plan, self._carry_out(plan, stop, self._tell))
        except Exception as error:  # noqa: BLE001 - whoever reads the news says it or raises it
            ended = Ended(plan, error=error)
        self._news.put(ended)
        self._wake()

    def _tell(self, result: TestResult) -> None:
        self._news.put(result)
        self._wake()
