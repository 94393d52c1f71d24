"""The run of a suite as a source of the page: each result with its failed checks and its proof."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.results import FailedCheck, Proof, Regression, RunReport, Status, TestResult
from mcptest.report.html.facts import Entry, Fact, Outcome, Source, Trials, brief, told
from mcptest.report.html.places import Places
from mcptest.report.reliability import reliability, trials_of_each_test

TRIALS_SHOWN = 100
_OUTCOMES: dict[Status, Outcome] = {
    Status.PASS: "pass",
    Status.FAIL: "fail",
    Status.SKIP: "skip",
}


def source_of_run(report: RunReport, file: str, exit_code: int, places: Places) -> Source:
    return Source(
        file=file,
        kind="run",
        subject=", ".join(dict.fromkeys(one.server for one in report.results if one.server)),
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=exit_code,
        summary=_summary(report),
        notes=(*(("interrupted before its end",) if report.interrupted else ()), *report.notes),
        changes=tuple(map(_change, report.regressions)),
        trials=tuple(_trials(report)) if report.trials > 1 else (),
        entries=tuple(_entry(one, report, places) for one in report.results),
    )


def _summary(report: RunReport) -> str:
    counts = f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped"
    return f"{counts}; {reliability(report)}" if report.trials > 1 else counts


def _change(regression: Regression) -> str:
    language = f" [{regression.language}]" if regression.language else ""
    return f"{regression.name}{language}: was {regression.was}, now {regression.now}"


def _trials(report: RunReport) -> list[Trials]:
    """What was flaky or failed first, then what took longest."""
    found = [
        Trials(
            name=trials[0].name,
            outcomes=tuple(_OUTCOMES[one.status] for one in trials),
            ms=tuple(one.duration_ms for one in trials),
        )
        for trials in trials_of_each_test(report.results).values()
    ]
    found.sort(key=lambda one: (one.outcomes.count("fail") == 0, -max(one.ms)))
    return found[:TRIALS_SHOWN]


def _entry(result: TestResult, report: RunReport, places: Places) -> Entry:
    name = f"{result.name} [{result.language}]" if result.language else result.name
    if report.trials > 1:
        name += f" (trial {result.trial})"
    return Entry(
        name=name,
        outcome=_OUTCOMES[result.status],
        group=result.file,
        brief=brief(result.detail),
        ms=result.duration_ms,
        facts=tuple(_facts(result, places)),
    )


def _facts(result: TestResult, places: Places) -> Iterator[Fact]:
    if result.file:
        yield Fact("Where", "code", f"{result.file}:{result.line}" if result.line else result.file)
    if not result.failures and result.detail:
        yield Fact("Why", "code", result.detail)
    for check in result.failures:
        yield from _check(check)
    if result.proof is not None:
        yield from _proof(result.proof, places)
    yield from told("Note", result.note)
    yield from told("Kind of failure", result.kind)
    yield from told("Server", " · ".join(filter(None, (result.server, result.revision))))
    yield from told("Tags", ", ".join(result.tags))


def _check(check: FailedCheck) -> Iterator[Fact]:
    at = f"\nat {check.pointer}" if check.pointer else ""
    yield Fact(
        f"Expected {check.check}",
        "diff",
        check.message + at,
        expected=check.expected,
        actual=check.actual,
    )


def _proof(proof: Proof, places: Places) -> Iterator[Fact]:
    yield from places.of_capture(proof.capture, excerpt=proof.response or proof.request)
    yield from told("Request", proof.request, "message")
    if proof.request or proof.response:
        yield Fact("Response", "message", proof.response or "(none)")
    yield from told("Server's stderr", "\n".join(proof.stderr), "code")
    yield from told("Server's exit", proof.exit)
    yield from told("Run it again", proof.repeat, "command")
