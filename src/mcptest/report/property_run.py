"""A run of property tests as the results of a run, for whatever reads those: JUnit, and suites."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.property import Counterexample, PropertyReport, PropertyResult, Way
from mcptest.model.results import FailedCheck, Proof, RunReport, Status, TestResult

_KINDS = {Way.CRASH: "crash", Way.HANG: "timeout"}


def property_as_run(report: PropertyReport) -> RunReport:
    return RunReport(
        results=tuple(property_results(report)),
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.interrupted,
        notes=(f"seed {report.seed}", *report.problems, *report.notes),
    )


def property_results(report: PropertyReport) -> Iterator[TestResult]:
    """One result for each property that holds, and one for each way in which one does not."""
    for one in report.properties:
        yield from _of_property(one, report)


def _of_property(one: PropertyResult, report: PropertyReport) -> Iterator[TestResult]:
    name = f"property {one.name}"
    counted = [found for found in one.counterexamples if report.counts(found)]
    if one.skipped:
        yield TestResult(name=name, status=Status.SKIP, detail=one.skipped)
    elif one.name in report.untried:
        reason = one.ended_early or "nothing was tried"
        yield TestResult(name=name, status=Status.FAIL, detail=reason, kind="timeout")
    elif not counted:
        advice = len(one.counterexamples)
        against = f"; {advice} against advice" if advice else ""
        yield TestResult(
            name=name,
            status=Status.PASS,
            duration_ms=one.duration_ms,
            note=f"{one.examples} examples, seed {report.seed}{against}",
        )
    for found in counted:
        yield _of_counterexample(found)


def _of_counterexample(found: Counterexample) -> TestResult:
    rule = found.rule or found.way.value
    words = f"{found.title}: {found.message}"
    sent = [line.text for line in found.lines if line.sender == "client"]
    fault = next((line.text for line in found.lines if line.at_fault), "")
    return TestResult(
        name=f"property {found.of_property}: {rule}",
        status=Status.FAIL,
        detail=words,
        kind=_KINDS.get(found.way, "check"),
        failures=(FailedCheck("property", words, found.expected or None, found.actual or None),),
        proof=Proof(
            request="\n".join(sent),
            response=fault,
            stderr=found.stderr,
            repeat=found.repeat,
        ),
    )
