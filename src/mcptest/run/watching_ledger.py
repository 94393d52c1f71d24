"""What became of each test when it was last run, and which outcomes flipped since."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from mcptest.model.results import Proof, RunReport, Status, TestResult
from mcptest.model.watched import Flip, Standing
from mcptest.run.selection import identity
from mcptest.suite.model import Test

_GONE_KEPT = 1_000
"""Of so many tests that are gone the outcome is kept: a file that is broken comes back."""


class Outcome(msgspec.Struct, frozen=True):
    """All results of one test in one run: one of each trial."""

    results: tuple[TestResult, ...]

    @property
    def told(self) -> TestResult:
        """The one that decides: a failure if there is one, else the first that ran."""
        worst = (Status.FAIL, Status.PASS, Status.SKIP)
        return min(self.results, key=lambda result: worst.index(result.status))

    @property
    def status(self) -> Status:
        return self.told.status


def key_of(result: TestResult) -> str:
    """The same as the identity of the test that it is of."""
    return f"{result.file}::{result.name}"


class Ledger:
    """The outcomes of the tests of a session of watching."""

    def __init__(self) -> None:
        self._tests: dict[str, None] = {}
        self._lanes: frozenset[str] = frozenset()
        self._outcomes: dict[str, Outcome] = {}
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
            fresh.setdefault(key, []).append(_kept(result))
            if key not in tests and result.file in lanes:
                self._lane_of[key] = result.file
        self._forget_lanes(lanes, fresh)
        flips: list[Flip] = []
        for key, found in fresh.items():
            outcome = Outcome(tuple(found))
            before = self._outcomes.get(key)
            self._outcomes[key] = outcome
            if _is_flip(before, outcome):
                flips.append(Flip(outcome.told, before.told if before is not None else None))
        return flips

    def failed(self) -> frozenset[str]:
        """The tests that failed when they were last run."""
        return frozenset(key for key, outcome in self._current() if outcome.status is Status.FAIL)

    def standing(self, problems: int = 0) -> Standing:
        counts = dict.fromkeys(Status, 0)
        for _, outcome in self._current():
            counts[outcome.status] += 1
        return Standing(
            passed=counts[Status.PASS],
            failed=counts[Status.FAIL],
            skipped=counts[Status.SKIP],
            not_run=sum(key not in self._outcomes for key in self._tests),
            problems=problems,
        )

    def report(self, last: RunReport) -> RunReport:
        """Everything that is known now, as if it had been one run."""
        results = (result for _, outcome in self._current() for result in outcome.results)
        return msgspec.structs.replace(last, results=tuple(results))

    def _current(self) -> Iterable[tuple[str, Outcome]]:
        for key in self._tests:
            if key in self._outcomes:
                yield key, self._outcomes[key]
        for key, outcome in self._outcomes.items():
            if key not in self._tests and self._is_current(key):
                yield key, outcome

    def _is_current(self, key: str) -> bool:
        return key in self._tests or self._lane_of.get(key) in self._lanes

    def _forget_lanes(self, lanes: Collection[str], fresh: Mapping[str, object]) -> None:
        """What a lane that was run no longer tells of is not so any more."""
        for key in [key for key, file in self._lane_of.items() if file in lanes]:
            if key not in fresh:
                self._forget(key)

    def _forget(self, key: str) -> None:
        self._outcomes.pop(key, None)
        self._lane_of.pop(key, None)


def _kept(result: TestResult) -> TestResult:
    """Of a pass only the answer, to be compared with a later one: there may be very many."""
    if result.status is Status.FAIL or result.proof is None:
        return result
    return msgspec.structs.replace(result, proof=Proof(response=result.proof.response))


def _is_flip(before: Outcome | None, now: Outcome) -> bool:
    if before is None:
        return now.status is Status.FAIL
    return before.status is not now.status or (
        now.status is Status.FAIL and _reason(before.told) != _reason(now.told)
    )


def _reason(result: TestResult) -> tuple[str, str]:
    """Why it failed. Numbers change from run to run: ports, process ids, milliseconds."""
    return result.kind, re.sub(r"\d+", "0", result.detail)
