"""What `mcptest watch` does: wait for a change or a key, run what it affects, tell what flipped.

Everything that happens is heard in one place, one thing after the other: changes of files, keys,
results of the run that goes on beside. What a person sees of it is in `view`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.options import duration
from mcptest.commands.output import standard_output
from mcptest.commands.reporting import code_with_reports, say_unwritten, write_files
from mcptest.commands.suite_command import (
    WantedRun,
    chosen_tests,
    named_suites,
    names_a_server,
    run_options,
    selection_of,
    settings_of,
    show_list,
    why_without_lanes,
)
from mcptest.commands.suite_lanes import with_lanes
from mcptest.commands.watch.file_events import (
    Changes,
    Signature,
    Watched,
    changes_below,
    fixture_place,
    is_below,
    signature_of,
    source_place,
    suite_place,
)
from mcptest.commands.watch.view import Flip, Keys, WatchScreen, WatchTotals, keys_of
from mcptest.core.errors import ExitCode, McptestError, UsageError
from mcptest.core.results import Proof, RunReport, Status, TestResult
from mcptest.core.safe_text import some_of
from mcptest.probe.lanes import check_names
from mcptest.probe.suites.server_start import with_a_head_start
from mcptest.probe.suites.settings import (
    FOLDER,
    Selection,
    ServerChoice,
    Settings,
    identity,
    select,
)
from mcptest.probe.suites.suite_run import run_suite
from mcptest.report.terminal import Style
from mcptest.suite.load import LoadedSuite, discover, load_suites
from mcptest.suite.model import Suite, Test, TrajectoryBlock
from mcptest.suite.reading import SuiteError, SuiteProblem
from mcptest.transport.interrupt import Stop, stopping_on_signals
from mcptest.transport.loop import READ, Loop, Timer

# -- What a change means -------------------------------------------------------------------------

_FIXTURE = re.compile(r"\{\{\s*fixture\s*\}\}")


class Wish(msgspec.Struct, frozen=True):
    """What is to be run, and the words for why."""

    tests: frozenset[str] = frozenset()
    """Identities, as `selection.identity` gives them."""
    lanes: frozenset[str] = frozenset()
    """Files whose lanes are to be run."""
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.tests or self.lanes)

    def also(self, other: Wish) -> Wish:
        """Both; the newer reason is the one to tell."""
        return Wish(self.tests | other.tests, self.lanes | other.lanes, other.why or self.why)


class Sources(msgspec.Struct, frozen=True):
    """What is watched beside the suites."""

    fixture: Watched | None = None
    servers: tuple[Watched, ...] = ()
    """What --also names."""


def everything(tests: Iterable[Test], loaded: LoadedSuite, why: str) -> Wish:
    return Wish(frozenset(map(identity, tests)), frozenset(lane.file for lane in loaded.lanes), why)


def affected(
    touched: Collection[str],
    files: Collection[str],
    tests: Sequence[Test],
    loaded: LoadedSuite,
    sources: Sources,
    choice: ServerChoice,
) -> Wish:
    """What to run again. `touched` are real paths, `files` the suites that say something new."""
    server = [path for path in touched if _is_seen(path, sources.servers)]
    if server:
        return everything(tests, loaded, _changed(server))
    data = [path for path in touched if sources.fixture and _is_seen(path, (sources.fixture,))]
    found = set()
    for test in tests:
        log = test.block.audit_log if isinstance(test.block, TrajectoryBlock) else ""
        reads = log and os.path.realpath(log) in touched
        if test.place.file in files or reads or (data and uses_fixture(test, choice)):
            found.add(identity(test))
    lanes = {lane.file for lane in loaded.lanes if lane.file in files or data}
    return Wish(frozenset(found), frozenset(lanes), _changed([*files, *data] or list(touched)))


def uses_fixture(test: Test, choice: ServerChoice) -> bool:
    """Whether the folder is part of what a test does: it, its server or the command line names it.

    A container gets the folder without being told.
    """
    named = (choice.server or "", *choice.command)
    if any(map(_FIXTURE.search, named)) or choice.docker or (test.server and test.server.docker):
        return True
    return _FIXTURE.search(repr(test)) is not None


def _is_seen(path: str, places: Iterable[Watched]) -> bool:
    return any(path == place.path or is_below(path, place.path) for place in places)


def _changed(paths: Collection[str]) -> str:
    """`server.py changed`, `server.py and 2 more changed`: from here, if it is below."""
    here = os.getcwd()  # noqa: PTH109 - paths are texts here
    real = {path: os.path.realpath(path) for path in paths}
    names = sorted({r[len(here) + 1 :] if is_below(r, here) else path for path, r in real.items()})
    return f"{some_of(names, 1)} changed" if names else ""


# -- Suites that stay loaded ---------------------------------------------------------------------


class WarmSuites:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        fixture: str | None = None,
        server_given: bool = False,
        lanes: bool = True,
    ) -> None:
        """`lanes`: whether what files ask for besides their tests is wanted."""
        self._paths = tuple(paths)
        self._fixture = fixture
        self._server_given = server_given
        self._lanes = lanes
        self._files: dict[str, tuple[Signature | None, LoadedSuite]] = {}
        """Each as it was when it was read; of one that can't be used only the problems."""

    def refresh(self, touched: Collection[str] = ()) -> tuple[LoadedSuite, frozenset[str]]:
        """Look at all files, and read those that changed.

        Gives everything that there is now, and the files that came or say something else than
        before, by the names the tests have. `touched` are real paths of files that were written to:
        they are read even if they look as before, as after two saves within one tick of the clock.
        """
        before, self._files = self._files, {}
        elsewhere: list[SuiteProblem] = []
        names = {path.rpartition("/")[2] for path in touched}
        for found in discover(self._paths, self._fixture):
            if isinstance(found, SuiteProblem):
                elsewhere.append(found)
                continue
            signature, earlier = signature_of(found), before.get(found)
            # Resolving links looks at every folder on the way: only for the few it can be.
            may_be = found.rpartition("/")[2] in names
            is_touched = may_be and os.path.realpath(found) in touched
            if earlier is not None and earlier[0] == signature and not is_touched:
                self._files[found] = earlier
                continue
            loaded = self._load(found)
            if earlier is not None and earlier[1] == loaded:  # saved without a change, or touched
                loaded = earlier[1]
            self._files[found] = signature, loaded
        now = {file: loaded for file, (_, loaded) in self._files.items()}
        changed = {f for f, one in now.items() if f not in before or one is not before[f][1]}
        whole = _together(elsewhere, now.values(), with_lanes=self._lanes)
        return whole, frozenset(changed)

    def _load(self, file: str) -> LoadedSuite:
        try:
            return load_suites(
                [file], fixture=self._fixture, keep_going=True, server_given=self._server_given
            )
        except SuiteError as error:
            return LoadedSuite(Suite(()), error.problems)


def _together(
    elsewhere: Iterable[SuiteProblem], known: Collection[LoadedSuite], *, with_lanes: bool
) -> LoadedSuite:
    tests = tuple(test for one in known for test in one.suite.tests)
    names = tuple(name for one in known for name in one.suite.files)
    problems = (
        *(problem for problem in elsewhere if problem.severity == "error"),
        *(problem for one in known for problem in one.problems),
    )
    lanes = tuple(lane for one in known for lane in one.lanes if with_lanes)
    return LoadedSuite(Suite(tests, names), problems, (), lanes)


# -- One run at a time beside whoever watches, who is woken when there is something to know ------

_LONGEST_END = 15.0


class WatchPlan(msgspec.Struct, frozen=True):
    """A wish with the tests as they were when its run began."""

    wish: Wish
    tests: tuple[Test, ...]
    loaded: LoadedSuite


Tell: TypeAlias = Callable[[TestResult], None]
CarryOut: TypeAlias = Callable[[WatchPlan, Stop, Tell], RunReport]
News: TypeAlias = TestResult | RunReport | Exception
"""Of a run: a result, and at last its report or what made it impossible."""


class Runner:
    """Runs in a thread of its own, so that keys and changes are heard meanwhile."""

    def __init__(self, carry_out: CarryOut, wake: Callable[[], None]) -> None:
        self._carry_out = carry_out
        self._wake = wake
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._stop: Stop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Until its end has been read."""
        return self._stop is not None

    def start(self, plan: WatchPlan) -> None:
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

    def news(self) -> list[News]:
        found: list[News] = []
        while not self._news.empty():
            found.append(self._news.get())
        if found and not isinstance(found[-1], TestResult):
            assert self._thread is not None
            self._thread.join()
            self._stop = None
        return found

    def _run(self, plan: WatchPlan, stop: Stop) -> None:
        try:
            self._tell(self._carry_out(plan, stop, self._tell))
        except Exception as error:  # noqa: BLE001 - whoever reads the news says it or raises it
            self._tell(error)

    def _tell(self, news: News) -> None:
        self._news.put(news)
        self._wake()


# -- What became of each test when it was last run, and which outcomes flipped since -------------

_GONE_KEPT = 1_000
"""Of so many tests that are gone the outcome is kept: a file that is broken comes back."""


def _decisive(results: Sequence[TestResult]) -> TestResult:
    """Of all trials of a test the one that decides: a failure if there is one, else what ran."""
    worst = (Status.FAIL, Status.PASS, Status.SKIP)
    return min(results, key=lambda result: worst.index(result.status))


def key_of(result: TestResult) -> str:
    """The same as the identity of the test that it is of."""
    return f"{result.file}::{result.name}"


class Ledger:
    """The outcomes of the tests of a session of watching."""

    def __init__(self) -> None:
        self._tests: dict[str, None] = {}
        self._lanes: frozenset[str] = frozenset()
        self._outcomes: dict[str, list[TestResult]] = {}
        """All results of each test in its last run: one of each trial."""
        self._lane_of: dict[str, str] = {}
        """The results of lanes, which have names of their own, with the files of the lanes."""

    def expect(self, tests: Iterable[Test], lanes: Iterable[str]) -> None:
        """These are the tests that there are now, and the files that have lanes."""
        self._tests = dict.fromkeys(map(identity, tests))
        self._lanes = frozenset(lanes)
        gone = [key for key in self._outcomes if not self._is_current(key)]
        for key in gone[: max(0, len(gone) - _GONE_KEPT)]:
            self._forget(key)

    def enter(
        self, results: Iterable[TestResult], tests: Collection[str], lanes: Collection[str] = ()
    ) -> list[Flip]:
        """Keep what a run of these tests, and of the lanes of these files, gave.

        Gives what flipped.
        """
        fresh: dict[str, list[TestResult]] = {}
        for result in results:
            key = key_of(result)
            if result.status is not Status.FAIL and result.proof is not None:
                # Of a pass only the answer, for a later comparison: there may be very many.
                proof = Proof(response=result.proof.response)
                result = msgspec.structs.replace(result, proof=proof)  # noqa: PLW2901 - less of it
            fresh.setdefault(key, []).append(result)
            if key not in tests and result.file in lanes:
                self._lane_of[key] = result.file
        # What a lane that was run no longer tells of is not so any more.
        for key in [key for key, file in self._lane_of.items() if file in lanes]:
            if key not in fresh:
                self._forget(key)
        flips: list[Flip] = []
        for key, found in fresh.items():
            now, last = _decisive(found), self._outcomes.get(key)
            before = _decisive(last) if last is not None else None
            self._outcomes[key] = found
            if _is_flip(before, now):
                flips.append(Flip(now, before))
        return flips

    def failed(self) -> frozenset[str]:
        """The tests that failed when they were last run."""
        now = {key: _decisive(results).status for key, results in self._current()}
        return frozenset(key for key, status in now.items() if status is Status.FAIL)

    def standing(self, problems: int = 0) -> WatchTotals:
        counts = Counter(_decisive(results).status for _, results in self._current())
        not_run = sum(key not in self._outcomes for key in self._tests)
        passed, failed, skipped = (counts[s] for s in (Status.PASS, Status.FAIL, Status.SKIP))
        return WatchTotals(passed, failed, skipped, not_run, problems)

    def report(self, last: RunReport) -> RunReport:
        """Everything that is known now, as if it had been one run."""
        results = (result for _, results in self._current() for result in results)
        return msgspec.structs.replace(last, results=tuple(results))

    def _current(self) -> Iterable[tuple[str, list[TestResult]]]:
        """First the tests in their order, then what lanes said."""
        known = self._outcomes
        of_lanes = (key for key in known if key not in self._tests and self._is_current(key))
        return ((key, known[key]) for key in (*self._tests, *of_lanes) if key in known)

    def _is_current(self, key: str) -> bool:
        return key in self._tests or self._lane_of.get(key) in self._lanes

    def _forget(self, key: str) -> None:
        self._outcomes.pop(key, None)
        self._lane_of.pop(key, None)


def _is_flip(before: TestResult | None, now: TestResult) -> bool:
    fails = now.status is Status.FAIL
    if before is None:
        return fails
    return before.status is not now.status or (fails and _reason(before) != _reason(now))


def _reason(result: TestResult) -> tuple[str, str]:
    """Why it failed. Numbers change from run to run: ports, process ids, milliseconds."""
    return result.kind, re.sub(r"\d+", "0", result.detail)


# -- Watching ------------------------------------------------------------------------------------

_QUIET = 0.05
"""Seconds without a further change after which a burst of them is over."""
_LONGEST_BURST = 0.5
_ITS_OWN_DOING = 5
"""A file that changes during so many runs in a row is written by what is being run."""
_NOTHING = LoadedSuite(Suite(()))


class WatchSetup(msgspec.Struct, frozen=True):
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


class WatchLoop:
    """A session of watching. `go` returns when `q` was pressed or `interrupt` was called."""

    def __init__(self, watch: WatchSetup, screen: WatchScreen) -> None:
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
        self._running = Wish()
        self._touched: set[str] = set()
        self._loop = Loop()
        self._burst: Timer | None = None
        self._end_of_burst = 0.0
        self._during: Counter[str] = Counter()
        self._seen_during: set[str] = set()
        self._over = False

    def standing(self) -> WatchTotals:
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

    def go(self) -> None:
        self._take_in_everything("")
        changes, keys = self._watch.changes, self._watch.keys
        self._loop.watch(self._woken, READ, lambda _: self._hear_the_run())
        if (events := changes.fileno()) is not None:
            self._loop.watch(events, READ, lambda _: self._hear_changes())
        if changes.interval is not None:
            self._look_again()
        if keys is not None:
            self._loop.watch(keys.fileno(), READ, lambda _: self._hear_keys(keys))
        self._begin()
        while not (self._over and not self._runner.is_running):
            self._loop.turn()
            self._begin()

    def _look_again(self) -> None:
        self._hear_changes()
        self._loop.after(self._watch.changes.interval or 0.0, self._look_again)

    def _after_burst(self) -> None:
        """Read what changed; what it affects is to be run."""
        touched, self._touched, self._burst = self._touched, set(), None
        changed, watch = self._read_suites(touched), self._watch
        by = (watch.sources, watch.choice)
        self._wish(affected(touched, changed, self._tests, self._loaded, *by))
        if not self._runner.is_running and not self._pending:
            self._screen.waiting(self.standing())

    def _hear_changes(self) -> None:
        ours = self._watch.ours
        found = {
            path
            for path in self._watch.changes.read()
            if not any(path == one or is_below(path, one) for one in ours)
        }
        for note in self._watch.changes.notes:
            self._screen.note(note)
        self._watch.changes.notes.clear()
        if self._runner.is_running:
            # Only sources: a fixture is copied, and a suite has to say something new to be run.
            servers = self._watch.sources.servers
            self._seen_during |= {one for one in found if any(of.sees(one) for of in servers)}
            found = {path for path in found if self._during[path] < _ITS_OWN_DOING}
        if found:
            now = time.monotonic()
            if self._burst is None:
                self._end_of_burst = now + _LONGEST_BURST
            else:
                self._burst.cancel()
            self._burst = self._loop.after(min(_QUIET, self._end_of_burst - now), self._after_burst)
            self._touched |= found

    def _hear_keys(self, keys: Keys) -> None:
        typed = keys.read()
        if typed is None:
            self._loop.ignore(keys.fileno())
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
        files = {lane.file for lane in self._loaded.lanes}
        lanes = {file for file in files if any(k.startswith(f"{file}::") for k in failed - tests)}
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
            if isinstance(piece, TestResult):
                self._screen.result(piece)
            else:
                self._finish(piece)

    def _take_in_everything(self, why: str) -> None:
        self._read_suites(set())
        self._wish(everything(self._tests, self._loaded, why))
        if not self._pending:
            self._screen.waiting(self.standing())

    def _read_suites(self, touched: set[str]) -> frozenset[str]:
        """Gives the files that say something new."""
        before = self._loaded.problems
        self._loaded, changed = self._watch.suites.refresh(touched)
        self._tests = select(self._loaded.suite.tests, self._watch.selection)
        self._ledger.expect(self._tests, (lane.file for lane in self._loaded.lanes))
        if self._loaded.problems != before:
            self._screen.problems(self._loaded.problems)
        return changed

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
        self._running = wish
        self._runner.start(WatchPlan(wish, chosen, self._loaded))

    def _finish(self, report: RunReport | Exception) -> None:
        if isinstance(report, McptestError):
            self._screen.note(report.message)
            report = RunReport()
        elif isinstance(report, Exception):
            raise report
        # A server that writes into what is watched would have itself run for ever.
        for path in self._during.keys() - self._seen_during:
            del self._during[path]
        self._during.update(self._seen_during)
        for path in sorted(self._seen_during):
            if self._during[path] == _ITS_OWN_DOING:
                always = f"{path} changed during each of the last {_ITS_OWN_DOING} runs"
                self._screen.note(f"{always}: changes during a run no longer start another run")
        wish = self._running
        flips = self._ledger.enter(report.results, wish.tests, wish.lanes)
        if report.interrupted:
            rest = Wish(wish.tests - frozenset(map(key_of, report.results)), wish.lanes)
            self._pending = rest.also(self._pending)
        for sentence in self._watch.publish(self._ledger.report(report)):
            self._screen.note(sentence)
        self._screen.ended(report, flips, self.standing())


# -- The command ----------------------------------------------------------------------------------


def run_watch(arguments: argparse.Namespace) -> int:
    paths = _named_paths(arguments)
    if arguments.list:
        loaded, tests = chosen_tests(arguments)
        return show_list(tests, loaded.lanes, as_data=False)
    # What is wrong with the options is said before anything is run.
    settings = settings_of(arguments, LoadedSuite(Suite(())))
    run_options(arguments)
    fixture = fixture_place(arguments.fixture) if arguments.fixture else None
    sources = Sources(fixture, tuple(map(source_place, arguments.also)))
    places = [*map(suite_place, paths), *filter(None, [fixture]), *sources.servers]
    interval = duration(arguments.interval, "--interval") if arguments.interval else None
    # What we write ourselves must not start the next run.
    reports = (arguments.json_file, arguments.junit, arguments.markdown, arguments.badge)
    written = [FOLDER, arguments.save_capture, *reports]
    keys = keys_of(sys.stdin) if sys.stdout.isatty() else None
    how = {"verbose": arguments.verbose, "quiet": arguments.quiet}
    screen = WatchScreen(
        sys.stdout,
        Style.of(sys.stdout, no_color=arguments.no_color, **how),
        keys=keys is not None,
        all_failures=arguments.all_failures,
    )
    unwritten: list[str] = []

    def publish(report: RunReport) -> list[str]:
        unwritten[:] = write_files(arguments, report)
        return unwritten

    with contextlib.closing(changes_below(places, interval)) as changes:
        watch = WatchSetup(
            suites=WarmSuites(
                paths,
                fixture=arguments.fixture,
                server_given=names_a_server(arguments),
                lanes=not why_without_lanes(arguments),  # as in `run`
            ),
            changes=changes,
            carry_out=_carrying_out(arguments),
            sources=sources,
            selection=selection_of(arguments),
            choice=settings.choice,
            keys=keys,
            ours=frozenset(os.path.realpath(path) for path in written if path is not None),
            publish=publish,
        )
        screen.starts([*paths, *filter(None, [arguments.fixture]), *arguments.also])
        code = _watch(watch, screen)
    say_unwritten(unwritten)  # of the latest run: the screen told of each as it happened
    return code_with_reports(arguments, code, unwritten)


def _watch(watch: WatchSetup, screen: WatchScreen) -> int:
    watching = WatchLoop(watch, screen)
    keys = watch.keys or contextlib.nullcontext()
    with contextlib.closing(watching), stopping_on_signals() as stop, keys:

        def end() -> None:
            # At once: a second signal ends us without any further step.
            if watch.keys is not None:
                watch.keys.give_back()
            watching.interrupt()

        stop.on_set = end
        output = standard_output()
        if output is not None:
            output.when_lost = watching.interrupt  # nobody sees any more what flips
        if stop.is_set():  # it came before anyone could be told
            end()
        watching.go()
    standing = watching.standing()
    screen.closes(standing)
    if stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if standing.is_undecided:
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if standing.is_good else ExitCode.FAILED


def _named_paths(arguments: argparse.Namespace) -> list[str]:
    paths = named_suites(arguments)
    for path in (*paths, *arguments.also):
        if not Path(path).exists():
            raise UsageError(f"no such file or folder: {path}")
    return paths


def _carrying_out(arguments: argparse.Namespace) -> CarryOut:
    quiet = argparse.Namespace(**{**vars(arguments), "quiet": True})

    def carry_out(plan: WatchPlan, stop: Stop, tell: Tell) -> RunReport:
        settings = replace(settings_of(arguments, plan.loaded), proof_of_passes=True)
        options = run_options(arguments)

        def run_tests(settings: Settings) -> RunReport:
            if not plan.tests:
                return RunReport(interrupted=stop.is_set())
            with with_a_head_start(plan.tests, settings, options) as begun:
                return run_suite(plan.tests, begun, options, stop, tell)

        lanes = [lane for lane in plan.loaded.lanes if lane.file in plan.wish.lanes]
        if not lanes:
            return run_tests(settings)
        check_names(lanes)
        return with_lanes(WantedRun(quiet, plan.tests, settings, options, stop, lanes), run_tests)

    return carry_out
