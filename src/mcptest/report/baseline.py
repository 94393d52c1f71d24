"""What passed before: mcp-assert's baseline file, read, written and compared with a run.

A test counts as passed only if each of its trials passed. mcp-assert lets the last trial decide,
which makes a flaky test a regression on some days and none on others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from mcptest.core.results import Regression, RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.codec import as_json, decode
from mcptest.report.reliability import overall


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test. `file` is written only where a name alone would be ambiguous."""

    name: str
    status: Status
    language: str = ""
    file: str = ""


class Baseline(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...] = ()


class Comparison(NamedTuple):
    regressions: tuple[Regression, ...]
    stale: tuple[Entry, ...]
    """What the baseline has and the suite has not."""
    new: tuple[Entry, ...]
    """What the suite has and the baseline has not, with what became of it."""


class BaselineFile(msgspec.Struct):
    """As it is stored."""

    entries: tuple[Entry, ...] | None  # mcp-assert writes null for a run of nothing


def read_baseline(data: bytes, source: str) -> Baseline:
    """Raises UsageError, with the place, for anything that is no baseline."""
    file: BaselineFile = decode(data.removeprefix(b"\xef\xbb\xbf"), BaselineFile, source)
    return Baseline(file.entries or ())


def write_baseline(baseline: Baseline) -> bytes:
    return as_json(BaselineFile(baseline.entries))


def baseline_of(report: RunReport, previous: Baseline | None = None) -> Baseline:
    """The baseline of a run. What the run did not reach stays as it was in `previous`."""
    reached = {(result.name, result.language) for result in report.results}
    files = {(result.name, result.language, result.file) for result in report.results}
    kept = [
        entry
        for entry in (previous.entries if previous is not None else ())
        if (entry.name, entry.language) not in reached
        or (entry.file and (entry.name, entry.language, entry.file) not in files)
    ]
    entries = [*_entries(report.results, kept), *kept]
    return Baseline(tuple(sorted(entries, key=lambda e: (e.name, e.language, e.file))))


def compare(report: RunReport, baseline: Baseline, *, partial: bool = False) -> Comparison:
    """Only a test that passed and does not pass now is a regression; also one skipped now.

    `partial` says that not all tests were asked to run: then nothing is called stale, as after
    an interruption.
    """
    current = _Current(report.results)
    regressions: list[Regression] = []
    stale: list[Entry] = []
    for entry, found in current.matched(baseline.entries):
        was, now = entry.status, overall(found) if found else None
        if now is None:
            stale.append(entry)
        elif was is Status.PASS and now is not Status.PASS:
            regressions.append(Regression(entry.name, was.value, now.value, entry.language))
    if partial or report.interrupted:
        stale = []
    return Comparison(tuple(regressions), tuple(stale), tuple(current.unmatched()))


def notes_of(comparison: Comparison) -> tuple[str, ...]:
    """What a reader of the report must know of a baseline that no longer fits its suite."""
    return tuple(
        f"baseline: no test is called {show(entry.name)!r}"
        + (f" in {show(entry.language)}" if entry.language else "")
        + (f" in {show(entry.file)}" if entry.file else "")
        + "; save the baseline again"
        for entry in comparison.stale
    )


class _Current:
    """The results of a run, found by name, language and file."""

    def __init__(self, results: Sequence[TestResult]) -> None:
        self._by_name: dict[tuple[str, str], dict[str, list[TestResult]]] = {}
        self._claimed: set[tuple[str, str, str]] = set()
        for result in results:
            files = self._by_name.setdefault((result.name, result.language), {})
            files.setdefault(result.file, []).append(result)

    def matched(self, entries: Iterable[Entry]) -> list[tuple[Entry, list[TestResult]]]:
        """Entries that name a file choose first; one whose file has moved takes what is left."""
        ordered = list(entries)
        found: dict[int, list[TestResult]] = {}
        for number, entry in enumerate(ordered):
            files = self._by_name.get((entry.name, entry.language), {})
            if entry.file and entry.file in files:
                found[number] = files[entry.file]
                self._claimed.add((entry.name, entry.language, entry.file))
        settled = frozenset(self._claimed)
        for number, entry in enumerate(ordered):
            if number not in found:
                found[number] = self._rest(entry, settled)
        return [(entry, found[number]) for number, entry in enumerate(ordered)]

    def _rest(self, entry: Entry, settled: frozenset[tuple[str, str, str]]) -> list[TestResult]:
        results: list[TestResult] = []
        for file, trials in self._by_name.get((entry.name, entry.language), {}).items():
            if (entry.name, entry.language, file) not in settled:
                self._claimed.add((entry.name, entry.language, file))
                results += trials
        return results

    def unmatched(self) -> Iterator[Entry]:
        for (name, language), files in self._by_name.items():
            for file, trials in files.items():
                if (name, language, file) not in self._claimed:
                    yield Entry(name, overall(trials), language, file)


def _entries(results: Iterable[TestResult], others: Iterable[Entry]) -> Iterator[Entry]:
    tests: dict[tuple[str, str, str], list[TestResult]] = {}
    for result in results:
        tests.setdefault((result.name, result.language, result.file), []).append(result)
    shared = Counter((name, language) for name, language, _ in tests)
    shared.update((entry.name, entry.language) for entry in others)
    for (name, language, file), trials in tests.items():
        ambiguous = shared[name, language] > 1
        yield Entry(name, overall(trials), language, file if ambiguous else "")
