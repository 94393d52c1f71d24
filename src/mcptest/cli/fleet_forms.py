"""A fleet as the results of tests, for the forms that other commands have as well."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mcptest.model.fleet import FleetReport, FleetServer
from mcptest.model.results import RunReport, TestResult
from mcptest.report.fleet_stored import results_beside_the_rules, results_of_hazards, run_of
from mcptest.run.lanes_results import result_of_gate, results_of_judgement
from mcptest.suite.model import Place


def fleet_as_run(report: FleetReport) -> RunReport:
    """Each server is what a language is in a matrix: the same tests are run on all of them."""
    results = [one for server in report.servers for one in _results(server, report)]
    return run_of(report, (*results, *results_of_hazards(report)))


def _results(server: FleetServer, report: FleetReport) -> Iterator[TestResult]:
    place = Place(report.config)
    for one in results_beside_the_rules(server):
        yield replace(one, file=report.config)
    if server.compliance is None:
        return
    for judgement in server.compliance.judgements:
        for result in results_of_judgement(judgement, place, strict=report.strict):
            yield replace(result, language=server.name, server=server.name)
    for gate in server.compliance.gates:
        yield replace(result_of_gate(gate, place), language=server.name, server=server.name)
