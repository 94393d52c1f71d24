"""What every report of a fleet tells of a server: its cells, what is wrong with it, the summary."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcptest.model.audit import AuditItem
from mcptest.model.fleet import FleetHazard, FleetReport, FleetServer, ServerOutcome
from mcptest.model.show import in_one_line, show
from mcptest.model.verdict import Severity
from mcptest.report.audit_text import WORDS
from mcptest.report.columns import duration
from mcptest.report.compliance_facts import counted, failures_first, gate_line, letter_of

HEADINGS = ("server", "revision", "grade", "audit", "tools", "MUST", "time", "outcome")
NAME = 60
LINE = 300


class Wrong(msgspec.Struct, frozen=True):
    """One thing that is wrong with a server, safe to show."""

    what: str
    repeat: str = ""
    counts: bool = True
    """False: worth knowing, and no failure."""


def cells_of(server: FleetServer) -> tuple[str, ...]:
    """One for each heading; empty where there is nothing to tell."""
    judged, audit = server.judgement, server.audit
    return (
        show(server.name, NAME),
        str(judged.revision) if judged is not None else "",
        letter_of(judged.grade) if judged is not None else "",
        "" if audit is None or audit.score is None else f"{audit.score}%",
        str(len(audit.of("tool"))) if audit is not None else "",
        str(judged.broken_musts) if judged is not None else "",
        duration(server.duration_ms) if server.outcome is not ServerOutcome.DISABLED else "",
        server.outcome.value,
    )


def wrong_with(
    server: FleetServer, *, strict: bool = False, advice: bool = False
) -> Iterator[Wrong]:
    """What is wrong, the gravest first; with `advice` also what does not count."""
    if server.reason and server.outcome is not ServerOutcome.DISABLED:
        hint = f" ({show(server.hint, LINE)})" if server.hint else ""
        yield Wrong(f"{show(server.reason, 600)}{hint}", server.repeat)
    yield from _by_the_specification(server, strict=strict, advice=advice)
    if server.audit is not None:
        for method, reason in server.audit.problems.items():
            yield Wrong(
                f"{show(method, 60)} could not be read: {show(reason, LINE)}", server.repeat
            )
        for item in server.audit.items:
            if item.is_bad:
                yield Wrong(_item_in_words(item), show(item.repeat, 4_000))
        if server.audit.failed and server.audit.min_score is not None:
            score, demanded = server.audit.score, server.audit.min_score
            yield Wrong(f"the audit's score is {score}%, {demanded}% is demanded", server.repeat)


def _by_the_specification(server: FleetServer, *, strict: bool, advice: bool) -> Iterator[Wrong]:
    judged = server.judgement
    if judged is None or server.compliance is None:
        return
    for cause in judged.causes:
        if cause.kept_from_judging:
            kept = f"{counted(cause.kept_from_judging, 'rule')} could not be judged"
            yield Wrong(f"{in_one_line(cause.message, 600)}; {kept}", server.repeat)
    for rule in failures_first(judged):
        counts = rule.severity is Severity.MUST
        counts = counts or (strict and rule.severity is Severity.SHOULD)
        if counts or advice:
            found = rule.findings[0].message if rule.findings else ""
            said = f": {show(found, LINE)}" if found and found != rule.title else ""
            what = f"{rule.severity.value} {show(rule.id, 60)} {show(rule.title, 200)}{said}"
            yield Wrong(what, show(rule.repeat, 4_000), counts)
    for gate in server.compliance.gates:
        if not gate.passed:
            yield Wrong(gate_line(gate), server.repeat)


def _item_in_words(item: AuditItem) -> str:
    name = f"{item.kind} {show(item.name, 120)}"
    if item.health.is_broken:
        return f"{name} {WORDS[item.health]}: {show(item.detail, LINE)}"
    return f"{name}: {show(item.findings[0], LINE)}"


def advice_in(server: FleetServer, *, strict: bool = False) -> int:
    """How many rules are not followed that need not be."""
    judged = server.judgement
    if judged is None:
        return 0
    counting = (Severity.MUST, Severity.SHOULD) if strict else (Severity.MUST,)
    return sum(one.severity not in counting for one in judged.failures)


def repeat_of_hazard(report: FleetReport, hazard: FleetHazard) -> str:
    """The command that looks at just these servers again."""
    import shlex

    servers = [word for name in hazard.servers for word in ("--server", name)]
    return f"mcptest fleet {shlex.join((report.config, *servers))}"


def summary_in_words(report: FleetReport) -> str:
    parts = [
        f"{count} {outcome.value}" for outcome in ServerOutcome if (count := report.count(outcome))
    ]
    told = f"{counted(len(report.servers), 'server')}: {', '.join(parts) or 'nothing to judge'}"
    hazards = f"; {counted(len(report.hazards), 'hazard')} between them" if report.hazards else ""
    early = "interrupted; " if report.interrupted else ""
    return f"{early}{told}{hazards}; {duration(report.duration_ms)}"
