"""Stored reports of any kind, recognised by what they say they are, and the verdict over several.

A file is data. A verdict that it states is believed only as far as the results in it agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.results import Demand, RunReport, Status, TestResult
from mcptest.core.safe_text import show
from mcptest.report.audit import AuditReport
from mcptest.report.codec import decode
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.conformance import ConformanceReport
from mcptest.report.doctor import DoctorReport
from mcptest.report.fleet import FleetReport, results_beside_the_rules, results_of_hazards
from mcptest.report.fuzz import FuzzReport
from mcptest.report.head import AnyReport
from mcptest.report.lint import LintReport
from mcptest.report.property import PropertyReport
from mcptest.report.verdicts import SessionsReport

_KINDS: Mapping[str, type[AnyReport]] = {
    str(one.__struct_config__.tag): one
    for one in (
        *(RunReport, ComplianceReport, ConformanceReport, SessionsReport, FleetReport),
        *(AuditReport, FuzzReport, LintReport, PropertyReport, DoctorReport),
    )
}
"""The types of everything that can be read, by what a file says it is."""


class Stored(msgspec.Struct, frozen=True):
    """One file that was read, or one part of it."""

    file: str
    report: AnyReport

    @property
    def exit_code(self) -> ExitCode:
        return self.report.code


class _Head(msgspec.Struct):
    format: str = ""
    schema: str = ""
    """What version 0.1 called `format` in most of its reports."""


def read_stored(data: bytes, file: str) -> Stored:
    """UsageError, with the place, for anything that is no stored report."""
    name = show(file, 300)
    data = data.removeprefix(b"\xef\xbb\xbf")
    decode(data, msgspec.Raw, name)
    if data.lstrip()[:1] == b"[":
        raise UsageError(
            f"{name} is a list of results, not a whole run",
            hint="save the run with --json-file; --json writes the short list",
        )
    head: _Head = decode(data, _Head, name)
    named = head.format or head.schema
    if named not in _KINDS:
        said = show(named, 80)
        raise UsageError(
            f"{name} can't be read: its format is {said}" if said else f"{name} names no format",
            hint="name a file written by --json-file; name captures with --capture",
        )
    return Stored(file, decode(data, _KINDS[named], name))


def read_parts(data: bytes, file: str) -> list[Stored]:
    """Everything that a file holds: of a fleet, what `parts_of_fleet` gives."""
    stored = read_stored(data, file)
    fleet = stored.report
    return parts_of_fleet(fleet, file) if isinstance(fleet, FleetReport) else [stored]


def parts_of_fleet(report: FleetReport, file: str = "") -> list[Stored]:
    """Each judgement as it is; the audits, who was reached, and the hazards as one run.

    So a fleet can be shown and merged like anything else, and no row of it gets lost.
    """
    judged = [
        Stored(one.name, one.compliance) for one in report.servers if one.compliance is not None
    ]
    rest = [one for server in report.servers for one in results_beside_the_rules(server)]
    run = report.run_of((*rest, *results_of_hazards(report)))
    return [*judged, Stored(file or report.config, run)]


_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.FAILED,
    ExitCode.UNREACHABLE,
    ExitCode.USAGE,
    ExitCode.NOTHING_MATCHED,
    ExitCode.OK,
)


def code_of_all(stored: Sequence[Stored]) -> ExitCode:
    """One verdict. Shards of a run are one run: a shard without tests is no reason to worry."""
    runs = [one.report for one in stored if isinstance(one.report, RunReport)]
    codes = {one.exit_code for one in stored if not isinstance(one.report, RunReport)}
    if runs:
        codes.add(merged(runs).code)
    return next((code for code in _WORST_FIRST if code in codes), ExitCode.NOTHING_MATCHED)


def merged(runs: Sequence[RunReport]) -> RunReport:
    """Several runs as one. What two of them ran counts twice, so a failure can't hide."""
    if len(runs) == 1:
        return runs[0]
    strictest = None  # what all of it has to come up to
    demands = [run.demand for run in runs if run.demand is not None]
    if demands and len(demands) == len(runs):
        threshold = max(one.threshold for one in demands)
        strictest = Demand(threshold, any(one.no_regressions for one in demands))
    return RunReport(
        results=tuple(result for run in runs for result in run.results),
        tool=", ".join(dict.fromkeys(run.tool for run in runs if run.tool)),
        started=min((run.started for run in runs if run.started), default=""),
        duration_ms=sum(run.duration_ms for run in runs),
        trials=max((run.trials for run in runs), default=1),
        interrupted=any(run.interrupted for run in runs),
        regressions=tuple(one for run in runs for one in run.regressions),
        notes=(*dict.fromkeys(note for run in runs for note in run.notes), *_twice(runs)),
        demand=strictest,
    )


def _twice(runs: Sequence[RunReport]) -> list[str]:
    """Shards hold different tests. The same one in two files was run twice, or given twice."""
    seen: set[tuple[str, str, str, int, int]] = set()
    again = 0
    for run in runs:
        keys = {(one.name, one.language, one.file, one.line, one.trial) for one in run.results}
        again += len(seen & keys)
        seen |= keys
    if not again:
        return []
    tests = "1 test is" if again == 1 else f"{again} tests are"
    return [f"{tests} in more than one of the files; each result is counted"]


# -- Shards of one run ---------------------------------------------------------------------------

NUMBERED = 1_000
"""A file may claim to be one of any number; so many missing ones are named."""


def missing_shards(runs: Iterable[tuple[str, RunReport]]) -> RunReport | None:
    """What is wrong with the shards among some files, as a run; None where nothing is."""
    divided: dict[int, dict[int, list[str]]] = {}
    for file, run in runs:
        if run.shard is not None:
            of_count = divided.setdefault(run.shard.count, {})
            of_count.setdefault(run.shard.index, []).append(file)
    results = tuple(one for count, found in divided.items() for one in _missing(count, found))
    notes = []
    for count, found in divided.items():
        for index, files in sorted(found.items()):
            if len(files) > 1:
                names = ", ".join(show(file, 200) for file in files[:5])
                notes.append(f"shard {index} of {count} is given {len(files)} times: {names}")
    if len(divided) > 1:
        counts = ", ".join(map(str, sorted(divided)))
        notes.append(f"the shards come from runs divided differently: into {counts}")
    return RunReport(results=results, notes=tuple(notes)) if results or notes else None


def _missing(count: int, found: Mapping[int, Sequence[str]]) -> Iterator[TestResult]:
    missing = (index for index in range(1, count + 1) if index not in found)
    names = [f"shard {index} of {count}" for index in islice(missing, NUMBERED)]
    left = count - len(found) - len(names)
    names += [f"{left} more shards of {count}"] if left > 0 else []
    for name in names:
        detail = f"{name} is missing: no file contains its results"
        yield TestResult(name, Status.FAIL, detail, kind="start")
