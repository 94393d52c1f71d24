"""Running a suite: tests become jobs, jobs become results, results become a report."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline
from mcptest.core.results import RunReport, Status, TestResult, made_since
from mcptest.core.safe_text import show
from mcptest.probe.suites.attempt import Attempt, broken, check_trace, skipped
from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.server_start import is_demo, is_remote
from mcptest.probe.suites.settings import (
    LastRun,
    Numbered,
    RunMemory,
    RunOptions,
    Settings,
    cores,
    server_key,
    skip_reason,
)
from mcptest.session.connection import Stopped
from mcptest.suite.model import (
    LoggingBlock,
    NotificationsBlock,
    ResourcesBlock,
    SamplingBlock,
    ServerSpec,
    Test,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.transport.interrupt import Stop, end_everything
from mcptest.transport.target import KeptAlive

# -- The kinds of work that a pool runs ----------------------------------------------------------

Found: TypeAlias = tuple[int, TestResult]


class Job:
    """Tests that share a server. None of the methods raises for what a peer does."""

    def __init__(self, items: Sequence[Numbered], settings: Settings) -> None:
        self.items = list(items)
        self.settings = settings
        self._done: set[int] = set()

    def prepare(self) -> None:
        """Get everything going that can go on by itself."""

    def run(self) -> Generator[Found, None, None]:
        """Carry the tests out: each result with the number of its test. May raise Stopped."""
        raise NotImplementedError

    def release(self) -> None:
        """Take everything down again, also when it was never prepared."""

    def failed(self, error: Exception) -> Iterator[Found]:
        """Results for the tests that were not reached because of a defect of ours."""
        for item in self.items:
            if item.number not in self._done:
                yield self._record(item, broken(item, error))

    def _record(self, item: Numbered, result: TestResult) -> Found:
        self._done.add(item.number)
        return item.number, result

    def _finish(self, item: Numbered, finish: Callable[[], TestResult]) -> TestResult:
        """The result of a test. A defect of ours costs this test, not those behind it."""
        try:
            return finish()
        except Stopped:
            raise
        except Exception as error:  # noqa: BLE001 - said as what it is, and never a pass
            return broken(item, error)


class SerialJob(Job):
    """Jobs that must not be under way at the same time: each begins when the last one has ended.

    The end is that of the server, not of its last answer: what it keeps may be written then. Over
    HTTP each has a session of its own, on the connections that the one before it used.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__((), settings)
        self.jobs: list[Job] = []
        self.kept = KeptAlive()
        self._has_run = False

    def prepare(self) -> None:
        """Only the first: the start of a server may depend on what the one before it left."""
        for job in self.jobs:
            job.settings = replace(job.settings, kept=self.kept)
        self.jobs[0].prepare()

    def run(self) -> Generator[Found, None, None]:
        self._has_run = True
        with contextlib.closing(self.kept):
            for position, job in enumerate(self.jobs):
                try:
                    if position:
                        job.prepare()
                    yield from job.run()
                except Stopped:
                    raise
                except Exception as error:  # noqa: BLE001 - a defect of ours costs one job, and is said
                    yield from job.failed(error)
                finally:
                    job.release()

    def release(self) -> None:
        """What was prepared and never run; all others are taken down as they end."""
        if not self._has_run:
            self.jobs[0].release()
            self.kept.close()

    def failed(self, error: Exception) -> Iterator[Found]:
        for job in self.jobs:
            yield from job.failed(error)


class LocalJob(Job):
    """Tests that need no server: trajectories, and those that are not to be run."""

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            reason = skip_reason(item.test, self.settings.choice)
            if reason is not None or not isinstance(item.test.block, TrajectoryBlock):
                result = skipped(item, reason or "skipped")
            else:
                result = self._finish(item, partial(check_trace, item, self.settings))
            yield self._record(item, result)


# -- Many tests on one server and one fixture copy, with up to so many plain calls at once -------

_FAILED_STARTS = 2
"""After so many in a row a server is not started again: all further tests fail for that reason."""
_AGAIN = "the shared server exited during several parallel calls; this call was repeated alone"


class SharedJob(Job):
    """Tests one after the other on one server. One that was lost is replaced by a new one."""

    def __init__(self, items: Sequence[Numbered], settings: Settings, in_flight: int = 1) -> None:
        super().__init__(items, settings)
        self._in_flight = in_flight
        self._shared: ServerSession | None = None
        self._is_lost = False
        """Whether the server is to be replaced before it is used again."""
        self._sessions = 0
        self._failed_starts = 0
        self._under_way: deque[Attempt] = deque()

    def prepare(self) -> None:
        self._server()

    def release(self) -> None:
        session, self._shared = self._shared, None
        if session is not None:
            session.close()

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            if self._in_flight == 1 or not may_share_the_line(item.test):
                yield from self._settle_all()
                yield self._record(item, self._alone(item))
                continue
            if self._shared is not None and self._shared.is_gone:
                yield from self._settle_all()
            attempt = Attempt(item, self._server(), self.settings).begin()
            self._under_way.append(attempt)
            if attempt.could_not_begin:
                yield from self._settle_all()
            elif len(self._under_way) >= self._in_flight:
                yield from self._settle_first()
        yield from self._settle_all()

    def _settle_all(self) -> Iterator[Found]:
        while self._under_way:
            yield from self._settle_first()

    def _settle_first(self) -> Iterator[Found]:
        """Wait for the answer to the call that was made first."""
        attempt = self._under_way.popleft()
        if self._under_way:
            result = self._finish(attempt.item, attempt.finish)
            if attempt.has_lost_the_server:
                yield from self._sort_out(attempt)
                return
        else:
            result = self._finish_alone(attempt)
        yield self._record(attempt.item, result)

    def _sort_out(self, first: Attempt) -> Iterator[Found]:
        """The server is lost, and any of the calls may be to blame: make each again, alone.

        What was answered before stands.
        """
        others, self._under_way = self._under_way, deque()
        answered = [(each.item, each.finish) for each in others if each.is_answered]
        results = {item.number: self._finish(item, finish) for item, finish in answered}
        self.release()
        for attempt in (first, *others):
            result = results.get(attempt.item.number)
            if result is None or attempt.has_lost_the_server:
                again = self._alone(attempt.item)
                result = replace(again, note=again.note or _AGAIN)
            yield self._record(attempt.item, result)

    def _alone(self, item: Numbered) -> TestResult:
        return self._finish_alone(Attempt(item, self._server(), self.settings))

    def _finish_alone(self, attempt: Attempt) -> TestResult:
        result = self._finish(attempt.item, attempt.finish)
        has_begun = not attempt.session.could_not_begin
        self._failed_starts = 0 if has_begun else self._failed_starts + 1
        self._is_lost = attempt.has_lost_the_server or not has_begun
        return result

    def _server(self) -> ServerSession:
        """The shared server, started anew if the last one was lost."""
        given_up = self._failed_starts >= _FAILED_STARTS
        shared = self._shared
        # one that ended before it was ever used has not been lost: its first test tells why
        is_gone = shared is not None and shared.has_begun and shared.is_gone
        if (self._is_lost or is_gone) and not given_up:
            self.release()
        if self._shared is None:
            self._is_lost = False
            self._sessions += 1
            self._shared = ServerSession(self.items[0], self.settings, self._sessions)
            self._shared.launch()
        return self._shared


class FreshJob(SharedJob):
    """One test with a server of its own, launched ahead."""


def may_share_the_line(test: Test) -> bool:
    """A plain call, whose verdict does not depend on what happens beside it."""
    block = test.block
    if not isinstance(block, ToolBlock) or test.setup or block.capture_progress:
        return False
    expect = block.expect
    files = (expect.file_contains, expect.file_not_contains, expect.file_not_exists)
    aside = ("notification", "duration", "progress")
    looks_aside = any(each.target.startswith(aside) for each in expect.checks)
    looks_aside = looks_aside or expect.max_duration is not None
    return not (looks_aside or any(files) or expect.file_unchanged)


# -- Which job runs which test, and which tests may not run beside each other --------------------

_ONE_LINE = "one after the other"
_OF_THE_FIXTURE = "one test at a time: with --docker they all use the fixture itself"
_OF_SINGLE_FILES = (
    "one test at a time: each file has one test, as in mcp-assert, and the servers may share "
    "state; --jobs auto runs the tests in parallel"
)


class JobPlan:
    """Which job runs which test, in which line, and what has to be said about it."""

    def __init__(self, items: Sequence[Numbered], settings: Settings, options: RunOptions) -> None:
        self.jobs: list[Job] = []
        self._settings = settings
        self._options = options
        self._groups: dict[object, Job] = {}
        self._lines: dict[object, SerialJob] = {}
        self.starts_servers = False
        """Whether there is a server that is not running yet, as those with a URL are."""
        self._reasons: Counter[str] = Counter()
        """Why tests are in the one line, and how many."""
        for item in items:
            self._add(item)
        if len(self._lines) > 1:  # the servers of two lines may be one, which keeps one waiting
            for line in self._lines.values():
                line.kept.close()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(why for why, count in self._reasons.items() if count > 1)

    def _add(self, item: Numbered) -> None:
        test, settings, options = item.test, self._settings, self._options
        key: object
        job: Job
        skips = skip_reason(test, settings.choice) is not None
        if skips or isinstance(test.block, TrajectoryBlock):
            key, line, job = "local", self.jobs, LocalJob([], settings)
        elif may_share(test, by_default=options.shared):
            key, line = ("shared", group_key(item, settings)), self._line(item)
            job = SharedJob([], settings, options.in_flight)
        else:
            key, line, job = item.number, self._line(item), FreshJob([], settings)
        if self._groups.setdefault(key, job) is job:
            line.append(job)
        self._groups[key].items.append(item)

    def _line(self, item: Numbered) -> list[Job]:
        """The jobs that one for this test may not run beside; all jobs when it is free."""
        test, options = item.test, self._options
        spec, choice = test.server or ServerSpec(), item.choice or self._settings.choice
        key: object | None = None
        why = ""
        with contextlib.suppress(UsageError):  # its test will say what is wrong
            remote = is_remote(spec, choice)
            self.starts_servers |= not remote
            key = group_key(item, self._settings) if remote and options.jobs is None else None
            if choice.docker and self._settings.fixture is not None and not remote:
                key, why = _ONE_LINE, _OF_THE_FIXTURE
            elif options.jobs == 1:
                key = _ONE_LINE
            elif options.single_file_order and test.single and not is_demo(spec, choice):
                key, why = _ONE_LINE, _OF_SINGLE_FILES
        if why:
            self._reasons[why] += 1
        if key is None:
            return self.jobs
        if key not in self._lines:
            self._lines[key] = SerialJob(self._settings)
            self.jobs.append(self._lines[key])
        return self._lines[key].jobs


_KEPT_APART = frozenset(
    {"apply_edit", "rename_symbol", "restart_lsp_server", "activate_skill", "deactivate_skill"}
)
"""Tools of agent-lsp that change their server for good: mcp-assert never lets them share one."""


def may_share(test: Test, *, by_default: bool) -> bool:
    """Whether a test is run on a server that others use too.

    `by_default` is what the command line asks for. That leaves out tests which leave something
    behind in the session, or see what others left: what a suite says of itself does not.
    """
    if test.isolation is not None:
        return test.isolation == "shared"
    block = test.block
    called = {getattr(block, "tool", ""), *(step.tool for step in test.setup)}
    subscribes = isinstance(block, ResourcesBlock) and block.subscribe is not None
    alone = subscribes or isinstance(block, LoggingBlock | NotificationsBlock)
    return by_default and not alone and called.isdisjoint(_KEPT_APART)


def group_key(item: Numbered, settings: Settings) -> object:
    """Tests share a server when it is started in the same way and for the same trial."""
    test = item.test
    mock = repr(test.block.mock) if isinstance(test.block, SamplingBlock) else ""
    choice = item.choice or settings.choice
    return server_key(test.server or ServerSpec(), choice), item.language, item.trial, mock


# -- Workers that keep the next server starting while the current one works ----------------------

_CLOSERS = 8
PATIENCE = 5.0
"""Seconds that everything may take to come to its end after an interrupt."""
_HANDS_OFF = 0.01
"""Before anything else is done beside the servers, the first requests go out, and the last servers
are told to leave."""


class Pool:
    """Runs jobs. Read `results` to the end; `interrupt` ends them early, with nothing left.

    Preparing a job runs ahead of running by a few jobs, and releasing happens behind it, so that a
    slow start or a slow end of one server costs the others nothing. Results come out as they are
    finished; whoever reads them puts them in order.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        workers: int,
        ahead: int = 1,
        enough: Callable[[TestResult], bool] = lambda result: False,
        at_last: Callable[[], None] | None = None,
    ) -> None:
        """`enough` says of a result whether any further job is wanted after it.

        `at_last` is called once, when there is nothing to wait for but servers that leave.
        """
        self._todo: deque[Job] = deque(jobs)
        self._ready: deque[tuple[Job, bool]] = deque()
        """Each with whether it could be prepared; if not, it only has to be released."""
        self._preparing = 0
        self._ahead = ahead
        self._enough = enough
        self._at_last = at_last
        self._at_work = 0
        self._over = False
        self._changed = threading.Condition()
        self._first_result = threading.Event()
        self._results: queue.SimpleQueue[Found | bool | None] = queue.SimpleQueue()
        """Beside the results: True when a worker is done, False for a thread that takes a server
        down; None says that the run is to end."""
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
        self._results.put(None)

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
                if self._at_last is not None and not self._at_work:
                    at_last, self._at_last = self._at_last, None
                    at_last()
                continue
            if isinstance(found, bool):
                self._done += 1
                self._at_work -= found
            elif found is None:
                self.forget_the_rest()
                limit = limit or Deadline.after(PATIENCE)
            else:
                yield found
        while not self._results.empty():  # marks that came last
            if isinstance(found := self._results.get(), tuple):
                yield found

    def _patience(self, limit: Deadline | None) -> float | None:
        left = limit.remaining() if limit else None
        if self._at_last is None or self._at_work:
            return left
        return _HANDS_OFF if left is None else min(left, _HANDS_OFF)

    def forget_the_rest(self) -> None:
        """Begin no further job and no further test; what is running is finished."""
        with self._changed:
            self._over = True
            self._todo.clear()
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
            self._results.put(work == self._work)
            self._first_result.set()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._prepare_ahead()
            self._carry_out(job)
            self._release(job)

    def _next(self) -> Job | None:
        """The next job, prepared. What is not wanted any more is released."""
        while True:
            with self._changed:
                while not (self._ready or self._todo) and self._preparing:
                    self._changed.wait()
                if not (self._ready or self._todo):
                    return None
                was_ahead = bool(self._ready)
                job, prepared = self._ready.popleft() if was_ahead else (self._todo.popleft(), True)
            if prepared and (was_ahead or self._prepare(job)) and not self._over:
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
            self._ready.append((job, prepared))
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


# -- A whole run ---------------------------------------------------------------------------------

_LAST_PATIENCE = 1.0


def run_suite(
    tests: Sequence[Test],
    settings: Settings,
    options: RunOptions,
    stop: Stop,
    on_result: Callable[[TestResult], None] = lambda result: None,
    meanwhile: Callable[[], None] = lambda: None,
    at_last: Callable[[], None] | None = None,
) -> RunReport:
    """Run everything and give the report. A stop gives what was finished, marked as such.

    `meanwhile` is called when the first servers take their time to start and leave us a core,
    `at_last` while the last ones take theirs to leave.
    """
    began = time.monotonic()
    settings = replace(settings, should_stop=stop.is_set, memory=RunMemory())
    items = _numbered(tests, options)
    finished: dict[int, TestResult] = {}
    planned = JobPlan(items, settings, options)
    workers = options.jobs or cores()
    pool = Pool(
        planned.jobs,
        workers,
        ahead=max(1, workers // 2),
        enough=lambda result: options.fail_fast and result.status is Status.FAIL,
        at_last=at_last,
    )
    last_run = LastRun()

    def beside_the_servers() -> None:
        is_slow = pool.is_slow_to_start(_HANDS_OFF)
        last_run.begin()
        # A server that runs already leaves no time, and most answers need nothing of it.
        has_time = is_slow and planned.starts_servers
        if has_time and pool.workers < cores():  # else it would take from what the servers need
            meanwhile()

    carried_out = _carried_out(pool, stop, beside_the_servers)
    with contextlib.closing(last_run), contextlib.closing(carried_out) as results:
        for number, result in results:
            finished[number] = result
            last_run.add(items[number].test, result.status)
            on_result(result)
    interrupted = stop.is_set()
    notes = [*_notes_on(settings, pool), *planned.notes]
    notes += () if interrupted else _account_for(items, finished, options)
    return RunReport(
        results=tuple(finished[number] for number in sorted(finished)),
        **made_since(began),
        trials=options.trials,
        interrupted=interrupted,
        notes=tuple(notes),
    )


def _numbered(tests: Sequence[Test], options: RunOptions) -> list[Numbered]:
    """In the order of the report: test by test, each with its languages and trials together."""
    languages = options.languages or (("", None),)
    runs = itertools.product(tests, languages, range(1, options.trials + 1))
    return [
        Numbered(number, test, trial, language, choice)
        for number, (test, (language, choice), trial) in enumerate(runs)
    ]


def _carried_out(
    pool: Pool, stop: Stop, meanwhile: Callable[[], None]
) -> Generator[Found, None, None]:
    """All results. However this ends, no server and no folder is left."""
    stop.on_set = pool.interrupt
    if stop.is_set():  # it came before anyone could be told
        pool.interrupt()
    try:
        results = pool.results()
        meanwhile()
        yield from results
    finally:
        late: list[Found] = []
        if not pool.is_at_rest:
            stop.set()
            end_everything()
            late = list(pool.rest(_LAST_PATIENCE))
            end_everything()
    yield from late


def _notes_on(settings: Settings, pool: Pool) -> Iterator[str]:
    """What the reader must know of how it went."""
    yield from (f"warning: {text}" for text in settings.memory.warnings)
    for defect in pool.defects:
        yield f"internal error of mcptest while stopping a server: {defect}"
    if settings.quick_end:
        yield "servers were stopped 50ms after their last response (--quick-end)"
    if settings.warm_start:
        yield "servers were started with a compile cache for Node (--warm-start)"
        if any(settings.memory.shortcuts.values()):
            yield "after the first test, servers started directly instead of through a launcher"


def _account_for(
    items: Iterable[Numbered], finished: dict[int, TestResult], options: RunOptions
) -> Iterator[str]:
    """Every test has a result, or there is a reason why it has none."""
    missing = [item for item in items if item.number not in finished]
    if missing and options.fail_fast and any(r.status is Status.FAIL for r in finished.values()):
        yield f"stopped after the first failure: {len(missing)} tests did not run"
        return
    for item in missing:
        finished[item.number] = broken(item, RuntimeError("the test did not run"))
