"""A fleet as stored reports: each judgement as it is, and everything beside it as one run.

So a fleet can be shown and merged like anything else that was stored, and no row of it gets lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mcptest.model.errors import ExitCode
from mcptest.model.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.model.results import Proof, RunReport, Status, TestResult
from mcptest.report.audit_run import audit_as_run
from mcptest.report.fleet_facts import repeat_of_hazard
from mcptest.report.stored import Stored, code_of, exit_code_of_run

_KINDS = {ServerOutcome.UNREACHABLE: "start"}


def stored_of_fleet(report: FleetReport, file: str = "") -> list[Stored]:
    """The rules of each server, and its audit, whether it was reached, and the hazards as a run."""
    stored = [
        Stored(one.name, one.compliance, code_of(one.compliance))
        for one in report.servers
        if one.compliance is not None
    ]
    rest = [one for server in report.servers for one in results_beside_the_rules(server)]
    run = run_of(report, (*rest, *results_of_hazards(report)))
    return [*stored, Stored(file or report.config, run, exit_code_of_run(run))]


def page_of_fleet(report: FleetReport, captures: Sequence[str] = ()) -> bytes:
    """The HTML page: rules by servers, and what is wrong beside them."""
    from mcptest.report.html.making import pictured

    pictures = pictured(captures)
    return pictures.page(stored_of_fleet(report), ExitCode(report.exit_code), report.notes)


def run_of(report: FleetReport, results: tuple[TestResult, ...]) -> RunReport:
    return RunReport(
        results=results,
        tool=report.tool,
        started=report.started,
        duration_ms=report.duration_ms,
        interrupted=report.interrupted,
        notes=report.notes,
    )


def results_beside_the_rules(server: FleetServer) -> Iterator[TestResult]:
    """Whether it was judged at all, and its audit, in the revision that it was judged in."""
    judged = server.judgement
    revision = judged.revision.value if judged is not None else ""
    for one in _beside_the_rules(server):
        yield replace(one, revision=revision)


def _beside_the_rules(server: FleetServer) -> Iterator[TestResult]:
    yield _reached(server)
    if server.audit is not None:
        for one in audit_as_run(server.audit).results:
            name = f"audit {one.name}"
            yield replace(one, name=name, language=server.name, server=server.name)
        if server.audit.failed and server.audit.min_score is not None:
            yield _score(server)


def _reached(server: FleetServer) -> TestResult:
    # A judged server without an audit was not judged to the end.
    cut_short = server.outcome is ServerOutcome.FAILED and server.audit is None
    bad = server.outcome.is_bad and (server.outcome is not ServerOutcome.FAILED or cut_short)
    status = Status.FAIL if bad else Status.PASS
    if server.outcome is ServerOutcome.DISABLED:
        status = Status.SKIP
    hint = f" ({server.hint})" if server.hint else ""
    return TestResult(
        name="judged and audited",
        status=status,
        detail=f"{server.reason}{hint}" if status is not Status.PASS else "",
        duration_ms=server.duration_ms,
        language=server.name,
        kind=_KINDS.get(server.outcome, "call") if bad else "",
        proof=Proof(repeat=server.repeat) if bad and server.repeat else None,
        server=server.name,
    )


def _score(server: FleetServer) -> TestResult:
    assert server.audit is not None  # it failed
    score, demanded = server.audit.score, server.audit.min_score
    return TestResult(
        name="audit score",
        status=Status.FAIL,
        detail=f"the score is {score}%, {demanded}% is demanded",
        language=server.name,
        kind="check",
        proof=Proof(repeat=server.repeat) if server.repeat else None,
        server=server.name,
    )


def results_of_hazards(report: FleetReport) -> Iterator[TestResult]:
    for hazard in report.hazards:
        yield TestResult(
            name=f"{hazard.id} between {' and '.join(hazard.servers)}",
            status=Status.FAIL,
            detail=f"{hazard.title}: {hazard.message}",
            file=report.config,
            kind="check",
            proof=Proof(repeat=repeat_of_hazard(report, hazard)),
        )
