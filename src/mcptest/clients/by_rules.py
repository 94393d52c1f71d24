"""The registry's own rules about clients, over the capture of any scenario.

They come for free: whatever a scenario is about, a client keeps to the protocol in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.clients.seen import Seen
from mcptest.model.capture import AnyRecord, TransportName
from mcptest.model.conformance import CheckResult, Reference, Status
from mcptest.model.show import show
from mcptest.model.verdict import Finding, Outcome, Severity, Side
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declare import Rule
from mcptest.rules.judge import judge
from mcptest.wire.session_source import SessionSource

WIRE_SCHEMA = "wire-schema-valid"
NOT_HERE = frozenset({"MSG-009"})
"""That every request is answered: what a client owes in a scenario is for its own checks to say,
since a script may ask for what nobody has to answer."""
_ABOUT_SHAPES = ("SHAPE-", "MSG-")
_TOLD = 3
_TURNED_AWAY = frozenset({401, 403})


def rows_by_rules(seen: Seen) -> Iterator[CheckResult]:
    """One row on the shape of all that the client sent, and one for each rule that it broke."""
    rules = [rule for rule in all_rules() if _is_about_clients(rule)]
    if not any(said.sender == "client" for said in seen.said):
        return
    judged = judge(_session(seen), rules, seen.revision)
    broken: list[tuple[Rule, Finding]] = []
    for rule, verdict in zip(rules, judged.verdicts, strict=True):
        if verdict.outcome is Outcome.FAIL:
            about = [one for one in verdict.findings if one.sender != "server"]
            broken += [(rule, one) for one in about[:1]]
    shapes = [pair for pair in broken if pair[0].id.startswith(_ABOUT_SHAPES)]
    yield _shape_row(shapes)
    for rule, finding in broken:
        yield _rule_row(rule, finding, seen)


def _is_about_clients(rule: Rule) -> bool:
    return rule.side in {Side.CLIENT, Side.BOTH} and rule.id not in NOT_HERE


def _session(seen: Seen) -> SessionSource:
    transport: TransportName = "stdio" if seen.transport == "stdio" else "http"
    return SessionSource(
        label="client",
        file="",
        form="full",
        records=_records_of_mcp(seen),
        transport=transport,
        spec_version=seen.revision.wire_version,
    )


def _records_of_mcp(seen: Seen) -> Iterator[tuple[int, AnyRecord]]:
    """Without what went to other origins, such as an authorization server, and to other pages."""
    mcp = seen.urls.get("mcp")
    elsewhere = {
        one.stream
        for one in seen.visits
        if mcp is not None and (one.origin != mcp or one.path != seen.endpoint)
    }
    elsewhere |= _sent_again(seen)
    for place, record in enumerate(seen.records):
        if getattr(record, "stream", None) not in elsewhere:
            yield place, record


def _sent_again(seen: Seen) -> set[int]:
    """Turned away for want of a token, and sent again as it was: that is one request, not two."""
    last = {(one.path, one.body): one.stream for one in seen.visits if one.body}
    return {
        one.stream
        for one in seen.visits
        if one.status in _TURNED_AWAY and last.get((one.path, one.body), one.stream) != one.stream
    }


def _shape_row(broken: list[tuple[Rule, Finding]]) -> CheckResult:
    failed = [pair for pair in broken if pair[0].severity is Severity.MUST]
    told = "; ".join(f"{rule.id}: {finding.message}" for rule, finding in failed[:_TOLD])
    first = failed[0][1] if failed else None
    return CheckResult(
        id=WIRE_SCHEMA,
        name="WireSchemaValid",
        description="every message of the client has the shape that the revision asks for",
        status=Status.FAILURE if failed else Status.SUCCESS,
        message=show(told, 600),
        record=first.record if first else None,
        excerpt=(first.excerpt or "") if first else "",
    )


def _rule_row(rule: Rule, finding: Finding, seen: Seen) -> CheckResult:
    must = rule.severity_in(seen.revision) is Severity.MUST
    wanted = f"; expected {finding.expected}" if finding.expected else ""
    return CheckResult(
        id=rule.id,
        name=rule.id,
        description=rule.title,
        status=Status.FAILURE if must else Status.WARNING,
        message=show(f"{finding.message}{wanted}", 600),
        record=finding.record,
        excerpt=finding.excerpt or "",
        references=(Reference(rule.id, rule.url(seen.revision)),),
    )
