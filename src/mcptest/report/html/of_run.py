"""The run of a suite as a source of the page: each result with its failed checks and its proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.model.results import FailedCheck, Proof, Regression, RunReport, TestResult
from mcptest.report.html.facts import Change, Column, Entry, Fact, Source, brief, interrupted, told
from mcptest.report.html.places import Places
from mcptest.report.html.trials import OUTCOMES, reliability_of, trials_of
from mcptest.report.reliability import reliability


def source_of_run(report: RunReport, file: str, exit_code: int, places: Places) -> Source:
    servers = _Servers(report.results)
    return Source(
        file=file,
        kind="run",
        subject=", ".join(dict.fromkeys(one.server for one in report.results if one.server)),
        started=report.started,
        tool=report.tool,
        ms=report.duration_ms,
        exit_code=exit_code,
        summary=_summary(report),
        notes=(*interrupted(report.interrupted), *report.notes),
        changes=tuple(map(_change, report.regressions)),
        trials=trials_of(report),
        reliability=reliability_of(report),
        columns=tuple(servers.columns()),
        entries=tuple(_entry(one, report, places, servers) for one in report.results),
    )


def _summary(report: RunReport) -> str:
    counts = f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped"
    if report.shard is not None:
        counts = f"shard {report.shard.index} of {report.shard.count}: {counts}"
    if report.demand is not None and report.demand.threshold < 100:
        counts += f"; {report.demand.threshold}% is enough"
    return f"{counts}; {reliability(report)}" if report.trials > 1 else counts


def _change(regression: Regression) -> Change:
    name = _titled(regression.name, regression.language)
    return Change(f"{name}: was {regression.was}, now {regression.now}", "fail", name)


def _titled(name: str, language: str) -> str:
    return f"{name} [{language}]" if language else name


class _Servers:
    """On which servers, and in which revisions, the tests ran: where there are several, a matrix.

    A server that could not be started has named no revision; it is the same server all the same.
    """

    def __init__(self, results: Sequence[TestResult]) -> None:
        self._spoken: dict[str, dict[str, None]] = {}
        for one in results:
            spoken = self._spoken.setdefault(one.language or one.server, {})
            if one.revision:
                spoken[one.revision] = None

    def columns(self) -> Iterator[Column]:
        for server, spoken in self._spoken.items():
            for revision in spoken or ("",):
                yield Column(f"{server} {revision}".strip(), server, revision)

    def column(self, result: TestResult) -> str:
        server = result.language or result.server
        revision = result.revision or next(iter(self._spoken[server]), "")
        return f"{server} {revision}".strip()


def _entry(result: TestResult, report: RunReport, places: Places, servers: _Servers) -> Entry:
    name = _titled(result.name, result.language)
    if report.trials > 1:
        name += f" (trial {result.trial})"
    return Entry(
        name=name,
        outcome=OUTCOMES[result.status],
        group=result.file,
        brief=brief(result.detail),
        ms=result.duration_ms,
        column=servers.column(result),
        row=result.name if name != result.name else "",
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
    compared = check.expected is not None or check.actual is not None
    yield Fact(
        f"Expected {check.check}" if compared else "Why",
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
