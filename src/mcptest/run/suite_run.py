"""Running a suite: tests become jobs, jobs become results, results become a report."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from msgspec.structs import replace

from mcptest import __version__
from mcptest.model.results import RunReport, Status, TestResult
from mcptest.run.attempt import broken
from mcptest.run.cores import cores
from mcptest.run.interrupt import Stop, end_everything
from mcptest.run.last_run import LastRun
from mcptest.run.planning import Plan, plan
from mcptest.run.pool import Found, Pool
from mcptest.run.settings import Memory, Numbered, RunOptions, Settings
from mcptest.suite.model import Test

__all__ = ["RunOptions", "run_suite"]

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
    settings = replace(settings, should_stop=stop.is_set, memory=Memory())
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
    planned: Plan,
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
