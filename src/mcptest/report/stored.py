"""Stored reports of any kind, recognised by what they say they are, and the verdict over several.

A file is data. A verdict that it states is believed only as far as the results in it agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from mcptest.model.compliance import COMPLIANCE_FORMAT, ComplianceReport
from mcptest.model.conformance import CONFORMANCE_FORMAT, ConformanceReport
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.results import RUN_FORMAT, Demand, RunReport
from mcptest.model.show import show
from mcptest.report.compliance_json import read_compliance
from mcptest.report.results_json import decode, read_run
from mcptest.report.stored_explored import READERS, ExploredReport, code_of_explored
from mcptest.report.verdicts_json import SCHEMA, Report

AnyReport: TypeAlias = RunReport | ComplianceReport | ConformanceReport | Report | ExploredReport


class Stored(msgspec.Struct, frozen=True):
    """One file that was read."""

    file: str
    report: AnyReport
    exit_code: ExitCode


def code_of(report: AnyReport) -> ExitCode:
    """The exit code that goes with a report, as far as its results agree with what it states."""
    if isinstance(report, RunReport):
        return exit_code_of_run(report)
    if isinstance(report, ComplianceReport):
        return _code_of_compliance(report)
    if isinstance(report, ConformanceReport):
        return _code_of_conformance(report)
    return _code_of_sessions(report) if isinstance(report, Report) else code_of_explored(report)


class _Head(msgspec.Struct):
    format: str = ""
    schema: str = ""


def read_stored(data: bytes, file: str) -> Stored:
    """UsageError, with the place, for anything that is no stored report."""
    name = show(file, 300)
    data = data.removeprefix(b"\xef\xbb\xbf")
    decode(data, msgspec.Raw, name)
    if data.lstrip()[:1] == b"[":
        read_run(data, name)  # says what such a list is
    head: _Head = decode(data, _Head, name)
    if head.format == RUN_FORMAT:
        run = read_run(data, name)
        return Stored(file, run, exit_code_of_run(run))
    if head.format == COMPLIANCE_FORMAT:
        judged = read_compliance(data, name)
        return Stored(file, judged, _code_of_compliance(judged))
    if head.format == CONFORMANCE_FORMAT:
        scenarios: ConformanceReport = decode(data, ConformanceReport, name)
        return Stored(file, scenarios, _code_of_conformance(scenarios))
    if head.schema == SCHEMA:
        sessions: Report = decode(data, Report, name)
        return Stored(file, sessions, _code_of_sessions(sessions))
    reader = READERS.get(head.schema)
    if reader is not None:
        explored = reader(data, name)
        return Stored(file, explored, code_of_explored(explored))
    said = show(head.format or head.schema, 80)
    raise UsageError(
        f"{name} can't be read: its format is {said}" if said else f"{name} names no format",
        hint="a file that --json-file wrote; captures are named with --capture",
    )


def exit_code_of_run(run: RunReport) -> ExitCode:
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if run.falls_short:
        return ExitCode.FAILED
    return ExitCode.OK if run.passed or run.failed else ExitCode.NOTHING_MATCHED


def _code_of_compliance(report: ComplianceReport) -> ExitCode:
    """`--strict` and known failures decided when it was judged: the code says what they gave."""
    stated = _stated(report.exit_code)
    if stated is ExitCode.OK and not all(gate.passed for gate in report.gates):
        return ExitCode.FAILED
    if stated is ExitCode.OK and not any(one.observed for one in report.judgements):
        return ExitCode.NOTHING_MATCHED
    return stated


def _code_of_conformance(report: ConformanceReport) -> ExitCode:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failed:
        return ExitCode.FAILED
    return ExitCode.OK if report.observed else ExitCode.NOTHING_MATCHED


def _code_of_sessions(report: Report) -> ExitCode:
    stated = _stated(report.exit_code)
    broken = report.summary.fail or report.composition
    return ExitCode.FAILED if stated is ExitCode.OK and broken else stated


def _stated(code: int) -> ExitCode:
    return ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED


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
        codes.add(exit_code_of_run(merged(runs)))
    return next((code for code in _WORST_FIRST if code in codes), ExitCode.NOTHING_MATCHED)


def merged(runs: Sequence[RunReport]) -> RunReport:
    """Several runs as one. What two of them ran counts twice, so a failure can't hide."""
    if len(runs) == 1:
        return runs[0]
    return RunReport(
        results=tuple(result for run in runs for result in run.results),
        tool=", ".join(dict.fromkeys(run.tool for run in runs if run.tool)),
        started=min((run.started for run in runs if run.started), default=""),
        duration_ms=sum(run.duration_ms for run in runs),
        trials=max((run.trials for run in runs), default=1),
        interrupted=any(run.interrupted for run in runs),
        regressions=tuple(one for run in runs for one in run.regressions),
        notes=(*dict.fromkeys(note for run in runs for note in run.notes), *_twice(runs)),
        demand=_strictest([run.demand for run in runs]),
    )


def _strictest(demands: Sequence[Demand | None]) -> Demand | None:
    """What all of it has to come up to."""
    said = [one for one in demands if one is not None]
    if len(said) < len(demands):
        return None
    threshold = max(one.threshold for one in said)
    return Demand(threshold, any(one.no_regressions for one in said))


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
    return [f"{tests} in more than one of the files; each result counts"]
