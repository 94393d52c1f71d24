"""Judging several servers at once on this machine: a process for each, and one loop that listens.

A server that hangs, floods or kills costs its own process and its own row.
"""

from __future__ import annotations

import contextlib
import os
import selectors
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence

from mcptest.model.deadline import Deadline
from mcptest.model.fleet import Found, Kept
from mcptest.run.fleet.child import Child, end_orphans_of_the_dead
from mcptest.run.fleet.order import ServerOrder
from mcptest.run.interrupt import Stop
from mcptest.transport.subreaper import become_subreaper

_PATIENCE = 5.0
"""Seconds in which a process may end what it started, when we are told to stop."""
_HOURLY = 3600.0
"""Somebody is always woken at last, whatever was forgotten."""


@contextlib.contextmanager
def judging_here(
    orders: Sequence[ServerOrder],
    stop: Stop,
    jobs: int,
    tell: Callable[[Sequence[Child]], None] = lambda children: None,
) -> Iterator[Iterator[tuple[int, Found]]]:
    """The results of a pool on this machine. The first signal ends it in order."""
    become_subreaper()  # not in the pool itself, which may live in a program of others
    pool = ServerPool(orders, jobs, should_stop=stop.is_set, tell=tell)
    stop.on_set = pool.wake
    try:
        with contextlib.closing(pool.results()) as results:
            yield results
    finally:
        stop.on_set = lambda: None


class ServerPool:
    """Read `results` to the end. `wake` may be called from a signal handler."""

    def __init__(
        self,
        orders: Sequence[ServerOrder],
        jobs: int,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        tell: Callable[[Sequence[Child]], None] = lambda children: None,
        tick: float = _HOURLY,
    ) -> None:
        """`tick`: how often `should_stop` is asked, where nobody calls `wake`."""
        self._todo = deque(enumerate(orders))
        self._jobs = jobs
        self._should_stop = should_stop
        self._tell = tell
        self._tick = tick
        self._at_work: dict[int, tuple[int, Child]] = {}
        """By the descriptor of its stdout."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def results(self) -> Generator[tuple[int, Found], None, None]:
        """Each with the number of its order, as they come. All is taken down at the end."""
        try:
            while (self._todo or self._at_work) and not self._should_stop():
                self._fill()
                yield from self._listen()
            yield from self._stop()
        finally:
            for _, child in list(self._at_work.values()):
                child.kill()
                self._let_go(child)
            self._selector.close()
            os.close(self._woken)
            os.close(self._waker)

    def _fill(self) -> None:
        while self._todo and len(self._at_work) < self._jobs:
            number, order = self._todo.popleft()
            child = Child(order)
            self._at_work[child.stdout] = number, child
            self._selector.register(child.stdout, selectors.EVENT_READ, child)
            self._selector.register(child.stderr, selectors.EVENT_READ, child)
            self._selector.register(child.stdin, selectors.EVENT_WRITE, child)

    # -- listening ---------------------------------------------------------------------------

    def _listen(self) -> Iterator[tuple[int, Found]]:
        patience = min(child.until.remaining() for _, child in self._at_work.values())
        for key, _ in self._selector.select(min(patience, self._tick)):
            child = key.data
            if child is None:
                os.read(self._woken, 4096)
            elif not self._is_at_work(child):
                continue  # it ended with what its other pipe said
            elif key.fd == child.stdin:
                self._write(child)
            elif key.fd == child.stderr:
                if not child.read_stderr():
                    self._selector.unregister(child.stderr)
            elif not child.read():
                yield self._ended(child)
        self._tell([child for _, child in self._at_work.values()])
        for _, child in list(self._at_work.values()):
            if child.until.expired:
                yield self._ended(child)

    def _is_at_work(self, child: Child) -> bool:
        return any(one is child for _, one in self._at_work.values())

    def _write(self, child: Child) -> None:
        child.write()
        if not child.wants_to_write:
            self._selector.unregister(child.stdin)

    def _ended(self, child: Child) -> tuple[int, Found]:
        """It told everything, or is gone, or its time is over."""
        number, _ = self._at_work[child.stdout]
        out_of_time = child.until.expired
        if out_of_time or not child.has_ended(_PATIENCE):
            child.kill()
        self._let_go(child)
        if child.found is None:
            end_orphans_of_the_dead()
        if out_of_time:
            limit = child.order.limit
            return number, child.outcome(Kept.OUT_OF_TIME, f"not judged within {limit:g} s")
        return number, child.outcome()

    def _let_go(self, child: Child) -> None:
        for descriptor in (child.stdin, child.stdout, child.stderr):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        del self._at_work[child.stdout]
        child.close()

    # -- stopping ----------------------------------------------------------------------------

    def _stop(self) -> Iterator[tuple[int, Found]]:
        """Everybody is told to leave, and then waited for. What was not begun is told as well."""
        stopped = [(number, child) for number, child in self._at_work.values()]
        for _, child in stopped:
            if child.stdin in self._selector.get_map():
                self._selector.unregister(child.stdin)
            child.leave_alone()
        limit = Deadline.after(_PATIENCE)
        for number, child in stopped:
            if not child.has_ended(limit.remaining()):
                child.kill()
            self._let_go(child)
            yield number, child.outcome(Kept.INTERRUPTED, "interrupted")
        while self._todo:
            number, order = self._todo.popleft()
            yield number, Found(order.name, kept=Kept.INTERRUPTED, reason="interrupted")
