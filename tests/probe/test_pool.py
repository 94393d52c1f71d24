"""The pool: every job is prepared, run and released, whatever any of them does."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from mcptest.core.results import Status
from mcptest.core.results import TestResult as Result
from mcptest.probe.suites.suite_run import Found, Pool
from mcptest.report.progress import Progress, ticking
from mcptest.session.connection import Stopped

WAIT = 20.0


class Script:
    """A job that does what it is told, and notes what is done with it."""

    def __init__(self, number: int, log: list[str], **faults: Any) -> None:
        self.number = number
        self.log = log
        self.faults = faults
        self.results = faults.get("results", 1)
        self.gate: threading.Event | None = faults.get("gate")
        self.running = threading.Event()

    def prepare(self) -> None:
        self.log.append(f"prepare {self.number}")
        self._fail("prepare")

    def run(self) -> Generator[Found, None, None]:
        self.log.append(f"run {self.number}")
        self.running.set()
        try:
            for index in range(self.results):
                if self.gate is not None:
                    assert self.gate.wait(WAIT)
                self._fail("run")
                yield self.number * 100 + index, self._result(Status.PASS)
        finally:
            self.log.append(f"ended {self.number}")

    def release(self) -> None:
        self.log.append(f"release {self.number}")
        self._fail("release")

    def failed(self, error: Exception) -> Iterator[Found]:
        yield self.number * 100, self._result(Status.FAIL, str(error))

    def _fail(self, where: str) -> None:
        if where in self.faults:
            raise self.faults[where]

    def _result(self, status: Status, detail: str = "") -> Result:
        status = self.faults.get("status", status)
        return Result(name=str(self.number), status=status, detail=detail)


def numbers(found: list[Found]) -> list[int]:
    return sorted(number for number, _ in found)


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("ahead", [1, 3])
def test_every_job_is_prepared_run_and_released_once(workers: int, ahead: int) -> None:
    log: list[str] = []
    pool = Pool([Script(n, log) for n in range(20)], workers, ahead)
    assert numbers(list(pool.results())) == [n * 100 for n in range(20)]
    assert sorted(log) == sorted(
        f"{step} {n}" for n in range(20) for step in ("prepare", "run", "ended", "release")
    )
    assert pool.is_at_rest


def test_no_jobs_give_no_results() -> None:
    assert list(Pool([], 4).results()) == []


def test_the_next_job_is_prepared_while_one_runs() -> None:
    log: list[str] = []
    gate = threading.Event()
    first = Script(0, log, gate=gate)
    results = Pool([first, Script(1, log), Script(2, log)], 1).results()
    threading.Timer(0, lambda: first.running.wait(WAIT) and gate.set()).start()
    list(results)
    assert log.index("prepare 1") < log.index("ended 0")
    assert log.index("prepare 2") > log.index("run 0"), "no further ahead than was said"


@pytest.mark.parametrize("where", ["prepare", "run"])
def test_a_defect_of_ours_costs_one_job_and_is_a_failure(where: str) -> None:
    log: list[str] = []
    jobs = [Script(0, log), Script(1, log, **{where: ValueError("oops")}), Script(2, log)]
    found = dict(Pool(jobs, 2).results())
    assert {number: each.status for number, each in found.items()} == {
        0: Status.PASS,
        100: Status.FAIL,
        200: Status.PASS,
    }
    assert found[100].detail == "oops"
    assert log.count("release 1") == 1


def test_a_defect_while_something_is_taken_down_is_kept_and_stops_nobody() -> None:
    log: list[str] = []
    pool = Pool([Script(n, log, release=OSError("stuck")) for n in range(3)], 2)
    assert len(list(pool.results())) == 3
    assert pool.defects == ["OSError: stuck"] * 3


@pytest.mark.parametrize("where", ["prepare", "run", "release"])
def test_a_job_that_was_stopped_has_no_result(where: str) -> None:
    log: list[str] = []
    pool = Pool([Script(0, log, **{where: Stopped()})], 1)
    assert len(list(pool.results())) == (1 if where == "release" else 0)
    assert log[-1] == "release 0"
    assert pool.defects == []


def test_an_interrupt_begins_nothing_more_and_releases_what_was_prepared() -> None:
    log: list[str] = []
    gate = threading.Event()
    jobs = [Script(n, log, gate=gate) for n in range(10)]
    pool = Pool(jobs, 1, ahead=2)

    def interrupt() -> None:
        jobs[0].running.wait(WAIT)
        pool.interrupt()
        gate.set()

    threading.Thread(target=interrupt).start()
    found = list(pool.results())
    assert len(found) < 10
    begun = [line.split()[1] for line in log if line.startswith("prepare")]
    assert sorted(line.split()[1] for line in log if line.startswith("release")) == sorted(begun)
    assert pool.is_at_rest


def test_waiting_for_the_rest_has_an_end() -> None:
    log: list[str] = []
    gate = threading.Event()
    pool = Pool([Script(0, log, gate=gate)], 1)
    results = pool.results()
    assert list(pool.rest(0.05)) == []
    assert not pool.is_at_rest
    gate.set()
    list(results)
    assert pool.is_at_rest


def test_enough_ends_a_job_of_many_tests_at_once() -> None:
    log: list[str] = []
    job = Script(0, log, results=50, status=Status.FAIL)
    pool = Pool([job, Script(1, log)], 1, enough=lambda result: result.status is Status.FAIL)
    assert numbers(list(pool.results())) == [0]
    assert "run 1" not in log
    assert log.count("ended 0") == 1


def test_servers_that_are_slow_to_leave_do_not_pile_up() -> None:
    gate = threading.Event()
    log: list[str] = []
    released = threading.Semaphore(0)

    class SlowToLeave(Script):
        def release(self) -> None:
            released.release()
            assert gate.wait(WAIT)
            super().release()

    jobs = [SlowToLeave(n, log) for n in range(40)]
    pool = Pool(jobs, 2)
    results = pool.results()
    for _ in range(8):
        assert released.acquire(timeout=WAIT)
    assert sum(line.startswith("run") for line in log) <= 8 + 4
    gate.set()
    assert len(list(results)) == 40


def test_it_is_slow_to_start_until_there_is_a_result() -> None:
    gate = threading.Event()
    pool = Pool([Script(0, [], gate=gate)], 1)
    results = pool.results()
    assert pool.is_slow_to_start(0.001)
    gate.set()
    assert not pool.is_slow_to_start(WAIT)
    assert numbers(list(results)) == [0]


def test_it_is_not_slow_when_nobody_is_left_to_find_a_result() -> None:
    pool = Pool([Script(0, [], prepare=Stopped())], 1)
    results = pool.results()
    assert not pool.is_slow_to_start(WAIT)
    assert list(results) == []


def test_what_is_done_at_last_is_done_once_while_the_last_server_leaves() -> None:
    log: list[str] = []
    gate = threading.Event()

    class SlowToLeave(Script):
        def release(self) -> None:
            assert gate.wait(WAIT)
            super().release()

    def at_last() -> None:
        log.append("at last")
        gate.set()  # without this the server would never leave: it is called before that

    jobs = [SlowToLeave(n, log) for n in range(2)]
    assert numbers(list(Pool(jobs, 2, at_last=at_last).results())) == [0, 100]
    assert log.count("at last") == 1
    assert log.index("at last") > max(log.index("ended 0"), log.index("ended 1"))


def test_a_tick_comes_while_there_is_nothing_to_tell() -> None:
    gate = threading.Event()
    progress = Mock(spec=Progress, is_live=True, tick=gate.set)
    with ticking(progress):
        assert numbers(list(Pool([Script(0, [], gate=gate)], 1).results())) == [0]
