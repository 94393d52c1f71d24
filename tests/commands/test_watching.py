"""The loop of `watch`, with runs that the tests hold in their hands."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mcptest.commands.watch import run as watching
from mcptest.commands.watch.file_events import source_place
from mcptest.commands.watch.run import Sources, Tell, WarmSuites, WatchLoop, WatchPlan, WatchSetup
from mcptest.commands.watch.view import Flip, Keys, WatchTotals
from mcptest.core.errors import UsageError
from mcptest.core.results import RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.suite.reading import SuiteProblem
from mcptest.transport.interrupt import Stop

BOUND = 20.0
TEST = """
name: {name}
server: {{command: server}}
assert: {{tool: t, args: {{}}, expect: {{not_error: true}}}}
"""


class ToldChanges:
    """Changes that a test makes up, on a descriptor as real ones are."""

    interval: float | None = None

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._paths: set[str] = set()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)

    def fileno(self) -> int | None:
        return self._reader

    def tell(self, *paths: Path) -> None:
        self._paths |= {os.path.realpath(path) for path in paths}
        os.write(self._writer, b".")

    def read(self) -> set[str]:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 100)
        found, self._paths = self._paths, set()
        return found

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class Run:
    """One run, from its beginning until the test lets it end."""

    def __init__(self, plan: WatchPlan, stop: Stop, tell: Tell) -> None:
        self.names = [test.name for test in plan.tests]
        self.why = plan.wish.why
        self._plan, self._tell, self._stop = plan, tell, stop
        self.results: list[Result] = []
        self.over = threading.Event()
        self.cancelled = threading.Event()
        self.error: Exception | None = None
        stop.on_set = self._cut_off
        if stop.is_set():  # it came before anyone could be told
            self._cut_off()

    def _cut_off(self) -> None:
        self.cancelled.set()
        self.over.set()

    def give(self, name: str, status: Status = Status.PASS, detail: str = "") -> None:
        test = next(test for test in self._plan.tests if test.name == name)
        result = Result(name, status, detail=detail, file=test.place.file)
        self.results.append(result)
        self._tell(result)

    def finish(self, **failures: str) -> None:
        done = {result.name for result in self.results}
        for name in self.names:
            if name not in done:
                detail = failures.get(name, "")
                self.give(name, Status.FAIL if detail else Status.PASS, detail)
        self.over.set()

    def report(self) -> RunReport:
        if self.error is not None:
            raise self.error
        return RunReport(results=tuple(self.results), interrupted=self._stop.is_set())


class Recorded:
    """A screen that keeps what it is told, and lets a test wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.told: list[tuple[str, object]] = []

    def _add(self, kind: str, value: object) -> None:
        with self._changed:
            self.told.append((kind, value))
            self._changed.notify_all()

    def until(self, kind: str, count: int = 1) -> list[object]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.all(kind)) >= count, BOUND), self.told
            return self.all(kind)

    def all(self, kind: str) -> list[object]:
        return [value for one, value in self.told if one == kind]

    def waiting(self, standing: WatchTotals) -> None:
        self._add("waiting", standing)

    def begins(self, why: str, number: int) -> None:
        self._add("begins", (why, number))

    def result(self, result: Result) -> None:
        self._add("result", result.name)

    def stopping(self) -> None:
        self._add("stopping", None)

    def ended(self, report: RunReport, flips: Sequence[Flip], standing: WatchTotals) -> None:
        flipped = sorted((one.now.name, one.now.status.value) for one in flips)
        self._add("ended", (flipped, standing))

    def problems(self, problems: Sequence[SuiteProblem]) -> None:
        self._add("problems", len(problems))

    def note(self, text: str) -> None:
        self._add("note", text)


class Stage:
    """A folder of suites that is being watched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes = ToldChanges()
        self.screen = Recorded()
        self.runs: list[Run] = []
        self._begun = threading.Condition()
        self._keys, self._typing = os.pipe()
        self.published: list[RunReport] = []
        watch = WatchSetup(
            WarmSuites([str(folder)]),
            self.changes,
            self._carry_out,
            Sources(servers=(source_place(str(folder / "server.py")),)),
            keys=Keys(self._keys),
            ours=frozenset({os.path.realpath(folder / "ours.yaml")}),
            publish=self._publish,
        )
        self.watching = WatchLoop(watch, self.screen)
        self.thread = threading.Thread(target=self.watching.go, daemon=True)

    def _publish(self, report: RunReport) -> list[str]:
        self.published.append(report)
        return []

    def _carry_out(self, plan: WatchPlan, stop: Stop, tell: Tell) -> RunReport:
        run = Run(plan, stop, tell)
        with self._begun:
            self.runs.append(run)
            self._begun.notify_all()
        assert run.over.wait(BOUND)
        return run.report()

    def run(self, number: int) -> Run:
        with self._begun:
            assert self._begun.wait_for(lambda: len(self.runs) >= number, BOUND), self.screen.told
            return self.runs[number - 1]

    def write(self, *names: str) -> None:
        for name in names:
            (self.folder / f"{name}.yaml").write_text(TEST.format(name=name))

    def save(self, *files: str) -> None:
        self.changes.tell(*(self.folder / file for file in files))

    def press(self, keys: str) -> None:
        os.write(self._typing, keys.encode())

    def hang_up(self) -> None:
        typing, self._typing = self._typing, -1
        if typing >= 0:
            os.close(typing)

    def quit(self) -> None:
        self.press("q")
        self.thread.join(BOUND)
        assert not self.thread.is_alive()

    def close(self) -> None:
        self.watching.interrupt()
        self.thread.join(BOUND)
        self.watching.close()
        self.changes.close()
        os.close(self._keys)
        self.hang_up()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    made.write("a", "b", "c")
    made.thread.start()
    try:
        yield made
    finally:
        made.close()


def test_everything_is_run_at_first_and_then_what_changed(stage: Stage) -> None:
    assert stage.run(1).names == ["a", "b", "c"]
    stage.run(1).finish(b="wrong")
    assert stage.screen.until("ended") == [([("b", "FAIL")], WatchTotals(passed=2, failed=1))]
    (stage.folder / "b.yaml").write_text(TEST.format(name="b") + "tags: [changed]\n")
    stage.save("b.yaml")
    second = stage.run(2)
    assert second.names == ["b"]
    assert second.why.endswith("b.yaml changed")
    second.finish()
    assert stage.screen.until("ended", 2)[1] == ([("b", "PASS")], WatchTotals(passed=3))
    assert [one.name for one in stage.published[-1].results] == ["a", "b", "c"]


def test_a_burst_of_changes_is_one_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_QUIET", 0.3)  # also on a machine that has other things to do
    stage.run(1).finish()
    stage.screen.until("ended")
    for _ in range(20):
        stage.save("server.py")
    stage.run(2).finish()
    stage.screen.until("ended", 2)
    stage.quit()
    assert len(stage.runs) == 2


def test_a_save_that_changes_nothing_and_what_we_write_start_nothing(stage: Stage) -> None:
    stage.run(1).finish()
    stage.screen.until("ended")
    before = len(stage.screen.all("waiting"))
    stage.save("ours.yaml")
    stage.save("a.yaml")
    stage.screen.until("waiting", before + 1)
    stage.quit()
    assert len(stage.runs) == 1


def test_a_change_during_a_run_cuts_it_off_and_loses_nothing(stage: Stage) -> None:
    stage.run(1).give("a")
    stage.screen.until("result")
    (stage.folder / "a.yaml").write_text(TEST.format(name="a") + "tags: [changed]\n")
    stage.save("a.yaml")
    assert stage.run(1).cancelled.wait(BOUND)
    second = stage.run(2)
    assert second.names == ["a", "b", "c"], "what changed, and what was not finished"
    second.finish()
    assert stage.screen.until("ended", 2)[1] == ([], WatchTotals(passed=3))


def test_a_change_during_a_run_keeps_what_it_does_not_affect(stage: Stage) -> None:
    stage.run(1).give("a")
    stage.screen.until("result")
    (stage.folder / "b.yaml").write_text(TEST.format(name="b") + "tags: [changed]\n")
    stage.save("b.yaml")
    assert stage.run(2).names == ["b", "c"]


def test_a_broken_file_is_told_and_watched_on(stage: Stage) -> None:
    stage.run(1).finish()
    stage.screen.until("ended")
    (stage.folder / "b.yaml").write_text("assert: [")
    stage.save("b.yaml")
    assert stage.screen.until("problems") == [1]
    assert stage.watching.standing() == WatchTotals(passed=2, problems=1)
    stage.write("b")
    stage.save("b.yaml")
    assert stage.run(2).names == ["b"]
    stage.run(2).finish()
    assert stage.screen.until("problems", 2) == [1, 0]
    assert stage.screen.until("ended", 2)[1] == ([], WatchTotals(passed=3))


def test_keys_run_all_or_what_failed(stage: Stage) -> None:
    stage.run(1).finish(c="wrong")
    stage.screen.until("ended")
    stage.press("r")
    assert stage.run(2).names == ["c"]
    stage.run(2).finish(c="wrong")
    assert stage.screen.until("ended", 2)[1] == ([], WatchTotals(passed=2, failed=1))
    stage.press("xa")
    assert stage.run(3).names == ["a", "b", "c"]
    stage.run(3).finish()
    stage.screen.until("ended", 3)
    stage.press("r")  # nothing failed: nothing to do
    stage.quit()
    assert len(stage.runs) == 3


def test_q_during_a_run_ends_it(stage: Stage) -> None:
    stage.run(1).give("a")
    stage.quit()
    assert stage.run(1).cancelled.is_set()
    assert stage.watching.standing() == WatchTotals(passed=1, not_run=2)


def test_a_terminal_that_goes_away_is_heard_no_more(stage: Stage) -> None:
    stage.run(1).finish()
    stage.screen.until("ended")
    stage.hang_up()
    stage.save("server.py")
    stage.run(2).finish()
    assert len(stage.screen.until("ended", 2)) == 2


def test_a_source_that_every_run_changes_ends_no_run_any_more(stage: Stage) -> None:
    for number in range(1, 6):
        stage.run(number)
        stage.save("server.py")
        assert stage.run(number).cancelled.wait(BOUND)
    (note,) = stage.screen.until("note")
    assert "server.py changed during each of the last 5 runs" in str(note)
    sixth = stage.run(6)
    stage.save("server.py")
    sixth.finish()
    assert stage.screen.until("ended", 6)[5] == ([], WatchTotals(passed=3))
    # Between runs it is somebody else who changes it.
    stage.save("server.py")
    stage.run(7).finish()
    stage.screen.until("ended", 7)
    stage.quit()
    assert len(stage.runs) == 7


def test_a_suite_that_changes_during_every_run_is_always_run(stage: Stage) -> None:
    for number in range(1, 9):
        stage.run(number)
        (stage.folder / "a.yaml").write_text(TEST.format(name="a") + f"tags: [t{number}]\n")
        stage.save("a.yaml")
        assert stage.run(number).cancelled.wait(BOUND)
    assert stage.screen.all("note") == []


def test_a_run_that_could_not_begin_is_told(stage: Stage) -> None:
    stage.run(1).error = UsageError("--fixture data does not exist")
    stage.run(1).over.set()
    assert stage.screen.until("note") == ["--fixture data does not exist"]
    assert stage.screen.until("ended") == [([], WatchTotals(not_run=3))]
