"""Running a suite: tests become jobs, jobs become results, results become a report."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.core.errors import UsageError
from mcptest.core.redaction import redaction
from mcptest.core.results import RunReport, Status, TestResult
from mcptest.probe.suites.attempt import Attempt, broken, check_trace, skipped
from mcptest.probe.suites.pool import Found, Job, Pool
from mcptest.probe.suites.server_session import ServerSession
from mcptest.probe.suites.server_start import is_demo, is_remote
from mcptest.probe.suites.settings import (
    Numbered,
    RunMemory,
    RunOptions,
    Settings,
    cores,
    identity,
    server_key,
    skip_reason,
)
from mcptest.session.connection import Stopped, encode
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
from mcptest.transport.files import replace_file
from mcptest.transport.interrupt import Stop, end_everything
from mcptest.wire.json_text import read_json

# -- The kinds of work that a pool runs ----------------------------------------------------------


class Tests:
    """What all jobs have: their tests, and results for those that a defect of ours left out."""

    def __init__(self, items: Sequence[Numbered], settings: Settings) -> None:
        self.items = list(items)
        self.settings = settings
        self._done: set[int] = set()

    def prepare(self) -> None:
        """Nothing to get going."""

    def release(self) -> None:
        """Nothing to take down."""

    def failed(self, error: Exception) -> Iterator[Found]:
        for item in self.items:
            if item.number not in self._done:
                yield self._record(item, broken(item, error))

    def _record(self, item: Numbered, result: TestResult) -> Found:
        self._done.add(item.number)
        return item.number, result

    def _finish(self, attempt: Attempt) -> TestResult:
        """The result of an attempt. A defect of ours costs this test, not those behind it."""
        try:
            return attempt.finish()
        except Stopped:
            raise
        except Exception as error:  # noqa: BLE001 - said as what it is, and never a pass
            return broken(attempt.item, error)


class FreshJob(Tests):
    """One test with a server of its own, launched ahead."""

    def __init__(self, item: Numbered, settings: Settings) -> None:
        super().__init__([item], settings)
        self._own = ServerSession(item, settings)

    def prepare(self) -> None:
        self._own.launch()

    def run(self) -> Generator[Found, None, None]:
        item = self.items[0]
        yield self._record(item, self._finish(Attempt(item, self._own, self.settings)))

    def release(self) -> None:
        self._own.close()


class SerialJob:
    """Jobs that must not be under way at the same time: each begins when the last one has ended.

    The end is that of the server, not of its last answer: what it keeps may be written then.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._has_run = False

    def prepare(self) -> None:
        """Only the first: the start of a server may depend on what the one before it left."""
        self.jobs[0].prepare()

    def run(self) -> Generator[Found, None, None]:
        self._has_run = True
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

    def failed(self, error: Exception) -> Iterator[Found]:
        for job in self.jobs:
            yield from job.failed(error)


class TraceJob(Tests):
    """Trajectories: checked without any server."""

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            try:
                result = check_trace(item, self.settings)
            except Exception as error:  # noqa: BLE001 - said as what it is, and never a pass
                result = broken(item, error)
            yield self._record(item, result)


class SkipJob(Tests):
    """Tests that are not to be run, with the reason."""

    def run(self) -> Generator[Found, None, None]:
        for item in self.items:
            yield self._record(item, skipped(item, skip_reason(item.test) or "skipped"))


# -- Many tests on one server and one fixture copy, with up to so many plain calls at once -------

_FAILED_STARTS = 2
"""After so many in a row a server is not started again: all further tests fail for that reason."""
_AGAIN = "the shared server was lost with several calls under way; this one was made again, alone"


class SharedJob(Tests):
    """Tests one after the other on one server. One that was lost is replaced by a new one."""

    def __init__(self, items: Sequence[Numbered], settings: Settings, in_flight: int) -> None:
        super().__init__(items, settings)
        self._in_flight = in_flight
        self._shared: ServerSession | None = None
        self._sessions = 0
        self._failed_starts = 0
        self._under_way: deque[Attempt] = deque()

    def prepare(self) -> None:
        self._server()

    def release(self) -> None:
        self._drop()

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
            result = self._finish(attempt)
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
        results = {each.item.number: self._finish(each) for each in others if each.is_answered}
        self._drop()
        for attempt in (first, *others):
            result = results.get(attempt.item.number)
            if result is None or attempt.has_lost_the_server:
                again = self._alone(attempt.item)
                result = msgspec.structs.replace(again, note=again.note or _AGAIN)
            yield self._record(attempt.item, result)

    def _alone(self, item: Numbered) -> TestResult:
        return self._finish_alone(Attempt(item, self._server(), self.settings))

    def _finish_alone(self, attempt: Attempt) -> TestResult:
        result = self._finish(attempt)
        if not attempt.session.could_not_begin:
            self._failed_starts = 0
            if attempt.has_lost_the_server:
                self._drop()
        elif self._failed_starts < _FAILED_STARTS:
            self._failed_starts += 1
            if self._failed_starts < _FAILED_STARTS:
                self._drop()
        return result

    def _server(self) -> ServerSession:
        """The shared server, started anew if the last one was lost."""
        given_up = self._failed_starts >= _FAILED_STARTS
        shared = self._shared
        # one that ended before it was ever used has not been lost: its first test tells why
        if shared is not None and shared.has_begun and shared.is_gone and not given_up:
            self._drop()
        if self._shared is None:
            self._sessions += 1
            self._shared = ServerSession(self.items[0], self.settings, self._sessions)
            self._shared.launch()
        return self._shared

    def _drop(self) -> None:
        session, self._shared = self._shared, None
        if session is not None:
            session.close()


def may_share_the_line(test: Test) -> bool:
    """A plain call, whose verdict does not depend on what happens beside it."""
    block = test.block
    if not isinstance(block, ToolBlock) or test.setup or block.capture_progress:
        return False
    expect = block.expect
    files = (expect.file_contains, expect.file_not_contains, expect.file_not_exists)
    aside = ("notification", "duration", "progress")
    looks_aside = any(each.target.startswith(aside) for each in expect.checks)
    alone = looks_aside or expect.max_duration is not None
    return not alone and not any(files) and not expect.file_unchanged


# -- Which job runs which test, and which tests may not run beside each other --------------------

_Group: TypeAlias = SharedJob | TraceJob | SkipJob
_ONE_LINE = "one after the other"
_OF_THE_FIXTURE = "one test at a time: with --docker all of them work on the fixture itself"
_OF_SINGLE_FILES = (
    "one test at a time: the servers of tests that are a file each (mcp-assert's form) may share "
    "what they keep; --jobs auto runs them side by side"
)


class JobPlan(msgspec.Struct, frozen=True):
    """The jobs, and what has to be said about how they are run."""

    jobs: list[Job]
    notes: tuple[str, ...] = ()


def plan(items: Sequence[Numbered], settings: Settings, options: RunOptions) -> JobPlan:
    """Which job runs which test, in which line."""
    planner = _Planner(settings, options)
    for item in items:
        planner.add(item)
    return JobPlan(planner.jobs, planner.notes)


class _Planner:
    def __init__(self, settings: Settings, options: RunOptions) -> None:
        self.jobs: list[Job] = []
        self._settings = settings
        self._options = options
        self._groups: dict[object, _Group] = {}
        self._lines: dict[object, SerialJob] = {}
        self._reasons: dict[str, int] = {}
        """Why tests are in the one line, and how many."""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(why for why, count in self._reasons.items() if count > 1)

    def add(self, item: Numbered) -> None:
        test, settings = item.test, self._settings
        if skip_reason(test) is not None:
            self._group("skip", item, lambda: SkipJob([], settings), self.jobs)
        elif isinstance(test.block, TrajectoryBlock):
            self._group("trace", item, lambda: TraceJob([], settings), self.jobs)
        elif may_share(test, by_default=self._options.shared):
            in_flight = self._options.in_flight
            key = ("shared", group_key(item, settings))
            self._group(key, item, lambda: SharedJob([], settings, in_flight), self._line(item))
        else:
            self._line(item).append(FreshJob(item, settings))

    def _group(
        self, key: object, item: Numbered, make: Callable[[], _Group], line: list[Job]
    ) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = make()
            line.append(group)
        group.items.append(item)

    def _line(self, item: Numbered) -> list[Job]:
        """The jobs that one for this test may not run beside; all jobs when it is free."""
        key = self._line_of(item)
        if key is None:
            return self.jobs
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = SerialJob()
            self.jobs.append(line)
        return line.jobs

    def _line_of(self, item: Numbered) -> object | None:
        test, options = item.test, self._options
        spec, choice = test.server or ServerSpec(), item.choice or self._settings.choice
        try:
            remote = is_remote(spec, choice)
            if choice.docker and self._settings.fixture is not None and not remote:
                return self._in_one_line(_OF_THE_FIXTURE)
            if options.jobs == 1:
                return _ONE_LINE
            if options.single_file_order and test.single and not is_demo(spec, choice):
                return self._in_one_line(_OF_SINGLE_FILES)
        except UsageError:
            return None  # its test will say what is wrong
        return group_key(item, self._settings) if remote and options.jobs is None else None

    def _in_one_line(self, why: str) -> object:
        self._reasons[why] = self._reasons.get(why, 0) + 1
        return _ONE_LINE


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
    alone = isinstance(block, LoggingBlock | NotificationsBlock) or (
        isinstance(block, ResourcesBlock) and block.subscribe is not None
    )
    return by_default and not alone and called.isdisjoint(_KEPT_APART)


def group_key(item: Numbered, settings: Settings) -> object:
    """Tests share a server when it is started in the same way and for the same trial."""
    test = item.test
    mock = repr(test.block.mock) if isinstance(test.block, SamplingBlock) else ""
    choice = item.choice or settings.choice
    return server_key(test.server or ServerSpec(), choice), item.language, item.trial, mock


_LAST_PATIENCE = 1.0
_HANDS_OFF = 0.01
"""Before anything else is done beside the servers, the first requests go out."""


def run_suite(
    tests: Sequence[Test],
    settings: Settings,
    options: RunOptions,
    stop: Stop,
    on_result: Callable[[TestResult], None] = lambda result: None,
    meanwhile: Callable[[], None] = lambda: None,
    at_last: Callable[[], None] | None = None,
    tick: Callable[[], None] | None = None,
) -> RunReport:
    """Run everything and give the report. A stop gives what was finished, marked as such.

    `meanwhile` is called when the first servers take their time to start and leave us a core,
    `at_last` while the last ones take theirs to leave, `tick` every now and then while there is
    nothing to tell.
    """
    began = time.monotonic()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    settings = replace(settings, should_stop=stop.is_set, memory=RunMemory())
    items = _numbered(tests, options)
    finished: dict[int, TestResult] = {}
    planned = plan(items, settings, options)
    pool = _pool(planned, options, tick, at_last)
    last_run = LastRun()

    def beside_the_servers() -> None:
        is_slow = pool.is_slow_to_start(_HANDS_OFF)
        last_run.begin()
        if is_slow and pool.workers < cores():  # else it would take from what the servers need
            meanwhile()

    with (
        contextlib.closing(last_run),
        contextlib.closing(_carried_out(pool, stop, beside_the_servers)) as results,
    ):
        for number, result in results:
            finished[number] = result
            last_run.add(items[number].test, result.status)
            on_result(result)
    interrupted = stop.is_set()
    notes = [f"warning: {text}" for text in (*settings.memory.warnings,)]
    notes += [f"internal error of mcptest while it took a server down: {e}" for e in pool.defects]
    if settings.quick_end:
        notes.append("servers were ended 50 ms after their last answer (--quick-end)")
    notes += _said_of_warm_starts(settings)
    notes += planned.notes
    notes += _account_for(items, finished, options, interrupted=interrupted)
    return RunReport(
        results=tuple(finished[number] for number in sorted(finished)),
        tool=f"mcptest {__version__}",
        started=started,
        duration_ms=round((time.monotonic() - began) * 1000),
        trials=options.trials,
        interrupted=interrupted,
        notes=tuple(notes),
    )


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
        if not pool.is_at_rest:
            stop.set()
            end_everything()
            late = list(pool.rest(_LAST_PATIENCE))
            end_everything()
        else:
            late = []
    yield from late


def _said_of_warm_starts(settings: Settings) -> Iterator[str]:
    if settings.warm_start:
        yield "servers were started with a compile cache for Node (--warm-start)"
        if any(settings.memory.shortcuts.values()):
            yield "what a launcher started for the first test was started directly for the others"


def _account_for(
    items: Iterable[Numbered],
    finished: dict[int, TestResult],
    options: RunOptions,
    *,
    interrupted: bool,
) -> Iterator[str]:
    """Every test has a result, or there is a reason why it has none."""
    missing = [item for item in items if item.number not in finished]
    if interrupted or not missing:
        return
    if options.fail_fast and any(r.status is Status.FAIL for r in finished.values()):
        yield f"stopped after the first failure: {len(missing)} of the tests were not run"
        return
    for item in missing:
        finished[item.number] = broken(item, RuntimeError("the test was never carried out"))


def _numbered(tests: Sequence[Test], options: RunOptions) -> list[Numbered]:
    """In the order of the report: test by test, each with its languages and trials together."""
    items: list[Numbered] = []
    for test in tests:
        for language, choice in options.languages or (("", None),):
            for trial in range(1, options.trials + 1):
                items.append(Numbered(len(items), test, trial, language, choice))
    return items


def _pool(
    planned: JobPlan,
    options: RunOptions,
    tick: Callable[[], None] | None,
    at_last: Callable[[], None] | None,
) -> Pool:
    workers = options.jobs or cores()
    return Pool(
        planned.jobs,
        workers,
        ahead=max(1, workers // 2),
        enough=lambda result: options.fail_fast and result.status is Status.FAIL,
        tick=tick,
        at_last=at_last,
    )


FOLDER = ".mcptest"
_FILE = Path(FOLDER, "last-run.jsonl")
_KEPT_OUT = Path(FOLDER, ".gitignore")
_RUN_BEGINS = {"run": "begins"}


class LastRun:
    """The state of the run that is going on. Where it can't be kept, the run goes on without.

    The file begins with what failed in earlier runs, so a run of a few tests does not make the
    others forgotten. After the line that marks a new run, each result is added as it comes.
    """

    def __init__(self) -> None:
        self._file: int | None = None

    def begin(self) -> None:
        """Mark the beginning of a run. This waits for the disk, so servers may start meanwhile."""
        try:
            _FILE.parent.mkdir(exist_ok=True)
            if not _KEPT_OUT.exists():
                replace_file(_KEPT_OUT, b"*\n")
            earlier = sorted(_known_failures()) if _FILE.exists() else []
            replace_file(_FILE, _lines([*map(_failed, earlier), _RUN_BEGINS]))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(_FILE, flags)
        except (OSError, UsageError):
            self._file = None  # a read-only folder: --last-failed has nothing to go by, and says so

    def add(self, test: Test, status: Status) -> None:
        if self._file is None:
            return
        try:
            os.write(self._file, _lines([{"test": identity(test), "status": status.value}]))
        except OSError:  # the disk is full: the results are not affected
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def failed_last_time() -> set[str]:
    """The identities of the tests that failed when they were last run here."""
    try:
        return _known_failures()
    except OSError:
        raise UsageError("--last-failed: there is no earlier run in this folder") from None


def _known_failures() -> set[str]:
    """In a run, one trial that failed is enough; a later run that passes clears the test."""
    failed: set[str] = set()
    in_this_run: set[str] = set()
    for line in _FILE.read_bytes().splitlines():
        try:
            entry, _ = read_json(line)
            if entry == _RUN_BEGINS:
                in_this_run.clear()
                continue
            test, status = str(entry["test"]), entry["status"]
        except (KeyError, TypeError):
            continue  # the last line of a run that was killed
        if status == Status.FAIL.value:
            failed.add(test)
            in_this_run.add(test)
        elif status == Status.PASS.value and test not in in_this_run:
            failed.discard(test)
    return failed


def _failed(test: str) -> dict[str, str]:
    return {"test": test, "status": Status.FAIL.value}


def _lines(entries: Iterable[dict[str, str]]) -> bytes:
    return redaction.document(b"".join(encode(entry) + b"\n" for entry in entries))
