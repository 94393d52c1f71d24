"""Shards of one run: which of them are here, which is missing, which was given twice.

A shard that got lost would be taken for one that passed. So it is a result of its own that failed,
in every form of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcptest.model.results import RunReport, Status, TestResult
from mcptest.model.show import show

NUMBERED = 1_000
"""A file may claim to be one of any number; so many missing ones are named."""


def missing_shards(runs: Iterable[tuple[str, RunReport]]) -> RunReport | None:
    """What is wrong with the shards among some files, as a run; None where nothing is."""
    divided: dict[int, dict[int, list[str]]] = {}
    for file, run in runs:
        if run.shard is not None:
            files = divided.setdefault(run.shard.count, {})
            files.setdefault(run.shard.index, []).append(file)
    results = tuple(one for count, found in divided.items() for one in _missing(count, found))
    notes = [line for count, found in divided.items() for line in _twice(count, found)]
    if len(divided) > 1:
        counts = ", ".join(map(str, sorted(divided)))
        notes.append(f"these are shards of runs that were divided differently: into {counts}")
    return RunReport(results=results, notes=tuple(notes)) if results or notes else None


def _missing(count: int, found: Mapping[int, Sequence[str]]) -> Iterator[TestResult]:
    named = 0
    for index in range(1, count + 1):
        if index in found:
            continue
        if named == NUMBERED:
            left = count - len(found) - named
            yield _lost(f"{left} more shards of {count}")
            return
        named += 1
        yield _lost(f"shard {index} of {count}")


def _lost(name: str) -> TestResult:
    detail = f"{name} is missing: none of the files holds its results"
    return TestResult(name=name, status=Status.FAIL, detail=detail, kind="start")


def _twice(count: int, found: Mapping[int, Sequence[str]]) -> Iterator[str]:
    for index, files in sorted(found.items()):
        if len(files) > 1:
            names = ", ".join(show(file, 200) for file in files[:5])
            yield f"shard {index} of {count} is given {len(files)} times: {names}"
