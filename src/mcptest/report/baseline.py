"""What passed before: mcp-assert's baseline file, read, written and compared with a run.

A test counts as passed only if each of its trials passed. mcp-assert lets the last trial decide,
which makes a flaky test a regression on some days and none on others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.results import Regression, RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.codec import as_json, decode
from mcptest.report.reliability import overall
from mcptest.transport.files import read_bounded, read_input


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test. `file` is written only where a name alone would be ambiguous."""

    name: str
    status: Status
    language: str = ""
    file: str = ""


class Baseline(msgspec.Struct, frozen=True):
    """As it is stored."""

    entries: tuple[Entry, ...] | None  # mcp-assert writes null for a run of nothing


class Comparison(NamedTuple):
    regressions: tuple[Regression, ...]
    stale: tuple[Entry, ...]
    """What the baseline has and the suite has not."""


def read_baseline(data: bytes, source: str) -> Baseline:
    """Raises UsageError, with the place, for anything that is no baseline."""
    baseline: Baseline = decode(data.removeprefix(b"\xef\xbb\xbf"), Baseline, source)
    return baseline


def stored_baseline(path: Path) -> Baseline:
    """What to compare with. UsageError when it can't be read: nothing was run yet."""
    return read_baseline(read_input(path, "the baseline"), str(path))


def write_baseline(baseline: Baseline) -> bytes:
    return as_json(baseline)


def baseline_of(report: RunReport, previous: Baseline | None = None) -> Baseline:
    """The baseline of a run. What the run did not reach stays as it was in `previous`."""
    reached = {(result.name, result.language) for result in report.results}
    files = {(result.name, result.language, result.file) for result in report.results}
    kept = [
        entry
        for entry in (previous and previous.entries) or ()
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
    regressions: list[Regression] = []
    stale: list[Entry] = []
    for entry, found in _matched(baseline.entries or (), report.results):
        was, now = entry.status, overall(found) if found else None
        if now is None:
            stale.append(entry)
        elif was is Status.PASS and now is not Status.PASS:
            regressions.append(Regression(entry.name, was.value, now.value, entry.language))
    if partial or report.interrupted:
        stale = []
    return Comparison(tuple(regressions), tuple(stale))


def with_regressions(report: RunReport, baseline: Baseline, *, partial: bool = False) -> RunReport:
    """The run, with what became worse since and what there is to say of the baseline."""
    found = compare(report, baseline, partial=partial)
    return replace(report, regressions=found.regressions, notes=(*report.notes, *notes_of(found)))


def saved_baseline(report: RunReport, stored: Baseline | None, amends: Path | None) -> bytes:
    """Where it `amends` a file, tests that were not run now are not forgotten."""
    previous = None
    if amends is not None:
        with contextlib.suppress(OSError, UsageError):  # there is none yet
            previous = stored or read_baseline(read_bounded(amends, pipes=False), str(amends))
    return write_baseline(baseline_of(report, previous))


def notes_of(comparison: Comparison) -> tuple[str, ...]:
    """What a reader of the report must know of a baseline that no longer fits its suite."""
    return tuple(
        f"baseline: no test named {show(entry.name)!r}"
        + (f" in {show(entry.language)}" if entry.language else "")
        + (f" in {show(entry.file)}" if entry.file else "")
        + " (save the baseline again)"
        for entry in comparison.stale
    )


def _matched(
    entries: Sequence[Entry], results: Iterable[TestResult]
) -> Iterator[tuple[Entry, list[TestResult]]]:
    """The trials of each entry. One whose file has moved, or that names none, has what is left."""
    tests = _by_name(results)
    named = {(one.name, one.language, one.file) for one in entries if one.file}
    for entry in entries:
        name, language = entry.name, entry.language
        files = tests.get((name, language), {})
        left = (trials for file, trials in files.items() if (name, language, file) not in named)
        own = [files[entry.file]] if entry.file and entry.file in files else left
        yield entry, [trial for trials in own for trial in trials]


def _by_name(results: Iterable[TestResult]) -> dict[tuple[str, str], dict[str, list[TestResult]]]:
    """The trials of each test by its name and language, and then by its file."""
    tests: dict[tuple[str, str], dict[str, list[TestResult]]] = {}
    for result in results:
        files = tests.setdefault((result.name, result.language), {})
        files.setdefault(result.file, []).append(result)
    return tests


def _entries(results: Iterable[TestResult], others: Iterable[Entry]) -> Iterator[Entry]:
    elsewhere = {(entry.name, entry.language) for entry in others}
    for (name, language), files in _by_name(results).items():
        ambiguous = len(files) > 1 or (name, language) in elsewhere
        for file, trials in files.items():
            yield Entry(name, overall(trials), language, file if ambiguous else "")
