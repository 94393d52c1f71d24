"""What is wrong with the servers of a configuration, as problems whose place is that file."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mcptest.model.fleet import FleetHazard, FleetReport, FleetServer, ServerOutcome
from mcptest.model.show import show
from mcptest.report.audit_run import audit_as_run
from mcptest.report.fleet_facts import repeat_of_hazard
from mcptest.report.problems import (
    NAME,
    Problem,
    Problems,
    ReportedRule,
    facts_of,
    problems_of_run,
    shown_notes,
)
from mcptest.report.problems_compliance import problems_of_compliance
from mcptest.rules.composition import COMPOSITION_RULES

_KEPT = {
    ServerOutcome.UNREACHABLE: ReportedRule(
        "fleet/reachable", "every server of the configuration can be reached"
    ),
    ServerOutcome.NOT_JUDGED: ReportedRule(
        "fleet/judged", "every server of the configuration can be judged"
    ),
}


def problems_of_fleet(report: FleetReport) -> Problems:
    rules: dict[str, ReportedRule] = {}
    found = [one for server in report.servers for one in _of_server(server, report, rules)]
    found += [_of_hazard(one, report, rules) for one in report.hazards]
    return Problems(
        command="fleet",
        found=tuple(found),
        rules=rules,
        tool=report.tool,
        started=report.started,
        interrupted=report.interrupted,
        notes=shown_notes(report.notes),
    )


def _of_server(
    server: FleetServer, report: FleetReport, rules: dict[str, ReportedRule]
) -> Iterator[Problem]:
    name = show(server.name, NAME)
    kept = _KEPT.get(server.outcome)
    if server.outcome is ServerOutcome.FAILED and server.audit is None:
        kept = _KEPT[ServerOutcome.NOT_JUDGED]  # judged, and not audited
    if kept is not None:
        rules[kept.id] = kept
        hint = f"\n{show(server.hint, 600)}" if server.hint else ""
        said = f"{name}: {show(server.reason, 600)}{hint}"
        facts = facts_of(repeat=server.repeat)
        yield Problem(kept.id, said, subject=name, file=report.config, grave=True, facts=facts)
    if server.compliance is not None:
        judged = problems_of_compliance(server.compliance, report.config)
        rules.update(judged.rules)
        yield from judged.found
    if server.audit is not None:
        audited = problems_of_run(audit_as_run(server.audit), "fleet")
        rules.update(audited.rules)
        for one in audited.found:
            yield replace(
                one,
                subject=f"{name}: {one.subject}",
                message=f"{name}: {one.message}",
                file=report.config,
            )


def _of_hazard(hazard: FleetHazard, report: FleetReport, rules: dict[str, ReportedRule]) -> Problem:
    known = COMPOSITION_RULES.get(hazard.id)
    text = known.explanation if known is not None else ""
    identity = show(hazard.id, 60)
    rules[identity] = ReportedRule(identity, show(hazard.title, NAME), text)
    servers = ", ".join(show(one, 80) for one in hazard.servers)
    return Problem(
        identity,
        show(hazard.message, 1_000),
        subject=servers,
        file=report.config,
        facts=facts_of(repeat=repeat_of_hazard(report, hazard)),
    )
