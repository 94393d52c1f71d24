"""Watching: wait for a change or a key, run what it affects, tell what flipped, wait again.

Everything that happens is heard in one place, one thing after the other: changes of files, keys,
results of the run that goes on beside. Nothing is printed here.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from mcptest.model.errors import McptestError
from mcptest.model.results import RunReport, TestResult
from mcptest.model.watched import Flip, Standing
from mcptest.run.choosing import ServerChoice
from mcptest.run.selection import Selection, identity, select
from mcptest.run.watching_affected import Sources, Wish, affected, everything
from mcptest.run.watching_files import Changes
from mcptest.run.watching_keys import Keys
from mcptest.run.watching_ledger import Ledger, key_of
from mcptest.run.watching_runner import CarryOut, Ended, Plan, Runner
from mcptest.run.watching_suites import WarmSuites
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Suite, Test
from mcptest.suite.problems import Problem

_QUIET = 0.05
"""Seconds without a further change after which a burst of them is over."""
_LONGEST_BURST = 0.5
_ITS_OWN_DOING = 5
"""A file that changes during so many runs in a row is written by what is being run."""
_NOTHING = LoadedSuite(Suite(()))


class Screen(Protocol):
    """Who is told. Called from one thread only."""

    def waiting(self, standing: Standing) -> None:
        """Nothing is going on until the next change or key."""

    def begins(self, why: str, number: int) -> None: ...

    def result(self, result: TestResult) -> None: ...

    def stopping(self) -> None:
        """The run that goes on is being ended, for the sake of another or for good."""

    def ended(self, report: RunReport, flips: Sequence[Flip], standing: Standing) -> None:
        """Of a run that was cut off, `report.interrupted` says so."""

    def problems(self, problems: Sequence[Problem]) -> None:
        """What is wrong with the suites now; none when all is well again."""

    def note(self, text: str) -> None: ...


class Watch(msgspec.Struct, frozen=True):
    """What is watched, and how it is run."""

    suites: WarmSuites
    changes: Changes
    carry_out: CarryOut
    sources: Sources = Sources()
    selection: Selection = Selection()
    choice: ServerChoice = ServerChoice()
    keys: Keys | None = None
    ours: frozenset[str] = frozenset()
    """Real paths of files and folders that we write ourselves."""
    publish: Callable[[RunReport], list[str]] = lambda report: []
    """Called after each run with the latest results of all tests; says what could not be done."""


class Watching:
    """A session of watching. `go` returns when `q` was pressed or `interrupt` was called."""

    def __init__(self, watch: Watch, screen: Screen) -> None:
        self._watch = watch
        self._screen = screen
        # To wake ourselves: from the thread of a run, and from a signal handler.
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._runner = Runner(watch.carry_out, self.wake)
        self._ledger = Ledger()
        self._loaded = _NOTHING
        self._tests: list[Test] = []
        self._pending = Wish()
        self._touched: set[str] = set()
        self._burst: tuple[float, float] | None = None
        self._next_look = 0.0
        self._during: Counter[str] = Counter()
        self._seen_during: set[str] = set()
        self._over = False

    # -- from outside --------------------------------------------------------------------------

    def standing(self) -> Standing:
        return self._ledger.standing(len(self._loaded.problems))

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake already
            os.write(self._waker, b".")

    def interrupt(self) -> None:
        """End everything in order. A signal handler may call this."""
        self._over = True
        self._runner.cancel()
        self.wake()

    def close(self) -> None:
        self._runner.close()
        os.close(self._woken)
        os.close(self._waker)

    # -- the loop ------------------------------------------------------------------------------

    def go(self) -> None:
        self._take_in_everything("")
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ, self._hear_the_run)
            if (events := self._watch.changes.fileno()) is not None:
                selector.register(events, selectors.EVENT_READ, self._hear_changes)
            if self._watch.keys is not None:
                selector.register(
                    self._watch.keys, selectors.EVENT_READ, lambda: self._hear_keys(selector)
                )
            self._begin()
            while not (self._over and not self._runner.is_running):
                for ready, _ in selector.select(self._patience()):
                    ready.data()
                self._after_waiting()

    def _patience(self) -> float | None:
        """Until when to wait if nothing happens; None for as long as it takes."""
        now = time.monotonic()
        limits = []
        if self._burst is not None:
            limits.append(min(self._burst) - now)
        if self._watch.changes.interval is not None:
            limits.append(self._next_look - now)
        return max(0.0, min(limits)) if limits else None

    def _after_waiting(self) -> None:
        now = time.monotonic()
        interval = self._watch.changes.interval
        if interval is not None and now >= self._next_look:
            self._hear_changes()
            self._next_look = time.monotonic() + (self._watch.changes.interval or interval)
        if self._burst is not None and now >= min(self._burst):
            touched, self._touched, self._burst = self._touched, set(), None
            self._take_in(touched)
        self._begin()

    # -- what is heard -------------------------------------------------------------------------

    def _hear_changes(self) -> None:
        found = {path for path in self._watch.changes.read() if not self._is_ours(path)}
        for note in self._watch.changes.notes:
            self._screen.note(note)
        self._watch.changes.notes.clear()
        if self._runner.is_running:
            # Only sources: a fixture is copied, and a suite has to say something new to be run.
            self._seen_during |= {path for path in found if self._is_of_a_server(path)}
            found = {path for path in found if self._during[path] < _ITS_OWN_DOING}
        if found:
            now = time.monotonic()
            latest = self._burst[1] if self._burst is not None else now + _LONGEST_BURST
            self._burst = (now + _QUIET, latest)
            self._touched |= found

    def _is_of_a_server(self, path: str) -> bool:
        return any(place.sees(path) for place in self._watch.sources.servers)

    def _is_ours(self, path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in self._watch.ours)

    def _hear_keys(self, selector: selectors.BaseSelector) -> None:
        assert self._watch.keys is not None
        typed = self._watch.keys.read()
        if typed is None:
            selector.unregister(self._watch.keys)
            return
        for key in typed.lower():
            if key == "q":
                self._over = True
                self._cancel()
            elif key == "a":
                self._take_in_everything("all")
            elif key == "r":
                self._run_what_failed()

    def _run_what_failed(self) -> None:
        failed = self._ledger.failed()
        tests = failed & frozenset(map(identity, self._tests))
        lanes = {lane.file for lane in self._loaded.lanes if _has_result(lane.file, failed - tests)}
        if wish := Wish(tests, frozenset(lanes), "what failed"):
            self._wish(wish)
        elif not self._runner.is_running:
            self._screen.waiting(self.standing())

    def _hear_the_run(self) -> None:
        self._hear_changes()  # what the run did itself was done before its end
        with contextlib.suppress(BlockingIOError):
            while os.read(self._woken, 4096):
                pass
        for piece in self._runner.news():
            if isinstance(piece, Ended):
                self._finish(piece)
            else:
                self._screen.result(piece)

    # -- what follows --------------------------------------------------------------------------

    def _take_in(self, touched: set[str]) -> None:
        """Read what changed; what it affects is to be run."""
        changed = self._read_suites(touched)
        self._wish(
            affected(
                touched,
                changed,
                self._tests,
                self._loaded,
                self._watch.sources,
                self._watch.choice,
            )
        )
        if not self._runner.is_running and not self._pending:
            self._screen.waiting(self.standing())

    def _take_in_everything(self, why: str) -> None:
        self._read_suites(set())
        self._wish(everything(self._tests, self._loaded, why))
        if not self._pending:
            self._screen.waiting(self.standing())

    def _read_suites(self, touched: set[str]) -> frozenset[str]:
        """Gives the files that say something new."""
        refreshed = self._watch.suites.refresh(touched)
        self._loaded = refreshed.loaded
        self._tests = select(self._loaded.suite.tests, self._watch.selection)
        self._ledger.expect(self._tests, (lane.file for lane in self._loaded.lanes))
        if refreshed.problems_changed:
            self._screen.problems(self._loaded.problems)
        return refreshed.changed

    def _wish(self, wish: Wish) -> None:
        """To be run next. What a run that goes on has not finished by now is run along with it."""
        if wish:
            self._pending = self._pending.also(wish)
            self._cancel()

    def _cancel(self) -> None:
        if self._runner.is_running:
            self._screen.stopping()
            self._runner.cancel()

    def _begin(self) -> None:
        if self._runner.is_running or self._over or not self._pending:
            return
        # What was wished for may be gone by now.
        tests = {identity(test) for test in self._tests} & self._pending.tests
        lanes = {lane.file for lane in self._loaded.lanes} & self._pending.lanes
        wish = Wish(frozenset(tests), frozenset(lanes), self._pending.why)
        self._pending = Wish()
        if not wish:
            self._screen.waiting(self.standing())
            return
        self._seen_during = set()
        chosen = tuple(test for test in self._tests if identity(test) in tests)
        self._screen.begins(wish.why, len(chosen))
        self._runner.start(Plan(wish, chosen, self._loaded))

    def _finish(self, ended: Ended) -> None:
        if isinstance(ended.error, McptestError):
            self._screen.note(ended.error.message)
        elif ended.error is not None:
            raise ended.error
        self._notice_its_own_doing()
        report, wish = ended.report, ended.plan.wish
        flips = self._ledger.enter(report.results, wish.tests, wish.lanes)
        if report.interrupted:
            done = frozenset(map(key_of, report.results))
            rest = Wish(wish.tests - done, wish.lanes)
            self._pending = rest.also(self._pending)
        for sentence in self._watch.publish(self._ledger.report(report)):
            self._screen.note(sentence)
        self._screen.ended(report, flips, self.standing())

    def _notice_its_own_doing(self) -> None:
        """A server that writes into what is watched would have itself run for ever."""
        for path in [path for path in self._during if path not in self._seen_during]:
            del self._during[path]
        self._during.update(self._seen_during)
        for path in sorted(self._seen_during):
            if self._during[path] == _ITS_OWN_DOING:
                self._screen.note(
                    f"{path} changed during each of the last {_ITS_OWN_DOING} runs: from now on "
                    "a change of it during a run starts no other"
                )


def _has_result(file: str, keys: Iterable[str]) -> bool:
    return any(key.startswith(f"{file}::") for key in keys)
