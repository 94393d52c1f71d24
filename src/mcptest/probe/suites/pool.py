"""A bounded pool of workers that keeps the next server starting while the current one works.

A job is prepared (its server is launched), run, and released. Preparing runs ahead of running by a
few jobs, and releasing happens behind it, so that a slow start or a slow end of one server costs
the others nothing. Results come out as they are finished; whoever reads them puts them in order.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from mcptest.core.limits import Deadline
from mcptest.core.results import TestResult
from mcptest.core.safe_text import show
from mcptest.session.connection import Stopped

_CLOSERS = 8
PATIENCE = 5.0
"""Seconds that everything may take to come to its end after an interrupt."""
_BETWEEN_TICKS = 0.1
_HANDS_OFF = 0.01
"""The last servers are told to leave before anything else is done beside them."""

Found: TypeAlias = tuple[int, TestResult]


class Job(Protocol):
    """One or more tests that share a server. None of the methods raises for what a peer does."""

    def prepare(self) -> None:
        """Get everything going that can go on by itself."""

    def run(self) -> Generator[Found, None, None]:
        """Carry the tests out: each result with the number of its test. May raise Stopped."""

    def release(self) -> None:
        """Take everything down again, also when it was never prepared."""

    def failed(self, error: Exception) -> Iterable[Found]:
        """Results for the tests that were not reached because of a defect of ours."""


class _Thread:
    """A mark in the queue of results: a thread of the pool is done."""

    def __init__(self, *, was_at_work: bool) -> None:
        self.was_at_work = was_at_work
        """A worker, and not one of those that take servers down."""


class _Wake:
    """A mark in the queue of results: the run is to end."""


class Pool:
    """Runs jobs. Read `results` to the end; `interrupt` ends them early, with nothing left."""

    def __init__(
        self,
        jobs: Sequence[Job],
        workers: int,
        ahead: int = 1,
        enough: Callable[[TestResult], bool] = lambda result: False,
        tick: Callable[[], None] | None = None,
        at_last: Callable[[], None] | None = None,
    ) -> None:
        """`enough` says of a result whether any further job is wanted after it.

        `tick` is called every now and then by whoever reads the results and has none yet, `at_last`
        once, when there is nothing to wait for but servers that leave.
        """
        self._todo: deque[Job] = deque(jobs)
        self._ready: deque[Job] = deque()
        self._unwanted: deque[Job] = deque()
        self._preparing = 0
        self._ahead = ahead
        self._enough = enough
        self._tick = tick
        self._at_last = at_last
        self._at_work = 0
        self._over = False
        self._changed = threading.Condition()
        self._first_result = threading.Event()
        self._results: queue.SimpleQueue[Found | _Thread | _Wake] = queue.SimpleQueue()
        self._closing = threading.Semaphore(_CLOSERS)
        self._started = 0
        self._done = 0
        self.workers = max(1, min(workers, len(jobs)))
        self.defects: list[str] = []
        """What went wrong in our own code while something was taken down."""

    @property
    def is_at_rest(self) -> bool:
        """Whether all that was begun has been taken down."""
        with self._changed:
            return self._done == self._started

    def results(self) -> Iterator[Found]:
        """Start the workers and give out results as they come, until all is taken down."""
        self._at_work = self.workers
        for _ in range(self.workers):
            self._start(self._work)
        return self._until_rest(None)

    def is_slow_to_start(self, seconds: float) -> bool:
        """Whether there is no result within this time although someone still looks for one."""
        return not self._first_result.wait(seconds)

    def interrupt(self) -> None:
        """Begin nothing more, and give up waiting after a while. A signal handler may call this."""
        self._results.put(_Wake())

    def rest(self, patience: float) -> Iterator[Found]:
        """The results that are still to come, for at most this long."""
        self.forget_the_rest()
        return self._until_rest(Deadline.after(patience))

    def _until_rest(self, limit: Deadline | None) -> Iterator[Found]:
        # A thread is counted when it is started, by one that has not said yet that it is done:
        # so the two numbers are equal only when there is no thread left.
        while not self.is_at_rest:
            try:
                found = self._results.get(timeout=self._patience(limit))
            except queue.Empty:
                if limit is not None and limit.expired:
                    return
                self._meanwhile()
                continue
            if isinstance(found, _Thread):
                self._done += 1
                self._at_work -= found.was_at_work
            elif isinstance(found, _Wake):
                self.forget_the_rest()
                limit = limit or Deadline.after(PATIENCE)
            else:
                yield found
        while not self._results.empty():  # marks that came last
            found = self._results.get()
            if isinstance(found, tuple):
                yield found

    def _patience(self, limit: Deadline | None) -> float | None:
        left = limit.remaining() if limit else None
        if self._at_last is not None and not self._at_work:
            patience = _HANDS_OFF
        elif self._tick is not None:
            patience = _BETWEEN_TICKS
        else:
            return left
        return patience if left is None else min(left, patience)

    def _meanwhile(self) -> None:
        if self._at_last is not None and not self._at_work:
            at_last, self._at_last = self._at_last, None
            at_last()
        elif self._tick is not None:
            self._tick()

    def forget_the_rest(self) -> None:
        """Begin no further job and no further test; what is running is finished."""
        with self._changed:
            self._over = True
            self._todo.clear()
            self._unwanted.extend(self._ready)
            self._ready.clear()
            self._changed.notify_all()

    def _start(self, work: Callable[..., None], *arguments: Job) -> None:
        with self._changed:
            self._started += 1
        thread = threading.Thread(target=self._live, args=(work, *arguments), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left: then it is done here and now
            self._live(work, *arguments)

    def _live(self, work: Callable[..., None], *arguments: Job) -> None:
        try:
            work(*arguments)
        finally:
            self._results.put(_Thread(was_at_work=work == self._work))
            self._first_result.set()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._prepare_ahead()
            self._carry_out(job)
            self._release(job)

    def _next(self) -> Job | None:
        """The next job, prepared."""
        while True:
            with self._changed:
                while not (self._ready or self._todo or self._unwanted) and self._preparing:
                    self._changed.wait()
                unwanted = self._unwanted.popleft() if self._unwanted else None
                if unwanted is None and self._ready:
                    return self._ready.popleft()
                if unwanted is None and not self._todo:
                    return None
                job = unwanted or self._todo.popleft()
            if unwanted is None and self._prepare(job) and not self._over:
                return job
            self._release(job)

    def _prepare_ahead(self) -> None:
        with self._changed:
            if not self._todo or len(self._ready) + self._preparing >= self._ahead:
                return
            job = self._todo.popleft()
            self._preparing += 1
        prepared = self._prepare(job)
        with self._changed:
            self._preparing -= 1
            wanted = prepared and not self._over
            (self._ready if wanted else self._unwanted).append(job)
            self._changed.notify_all()

    def _prepare(self, job: Job) -> bool:
        try:
            job.prepare()
        except Stopped:
            return False
        except Exception as error:  # noqa: BLE001 - a defect of ours costs one job, and is said
            self._tell(job.failed(error))
            return False
        return True

    def _carry_out(self, job: Job) -> None:
        try:
            with contextlib.closing(job.run()) as results:
                self._tell(results)
        except Stopped:
            pass  # the run is over; what was not finished has no result
        except Exception as error:  # noqa: BLE001 - a defect of ours costs one job, and is said
            self._tell(job.failed(error))

    def _tell(self, results: Iterable[Found]) -> None:
        for found in results:
            self._results.put(found)
            self._first_result.set()
            if self._enough(found[1]):
                self.forget_the_rest()
            if self._over:
                return

    def _release(self, job: Job) -> None:
        """Behind our back; but servers that are slow to leave may not pile up."""
        self._closing.acquire()
        self._start(self._close, job)

    def _close(self, job: Job) -> None:
        try:
            job.release()
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - the results stand; the defect is said
            self.defects.append(f"{type(error).__name__}: {show(str(error), 300)}")
        finally:
            self._closing.release()
