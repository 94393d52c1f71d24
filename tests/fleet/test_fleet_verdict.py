"""What the rows come to, and what goes wrong between servers."""

from __future__ import annotations

import msgspec
import pytest

from mcptest.commands.fleet.run import exit_code_of, hazards_among, notes_on
from mcptest.commands.fleet.worker import names_of, with_outcome
from mcptest.commands.fleet.worker_pool import OfferedNames
from mcptest.core.errors import ExitCode
from mcptest.report.audit import AuditedTool, AuditReport, Health
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.fleet import FleetServer, ServerOutcome
from mcptest.session.pages import Offer

WELL = AuditReport(server="a", tools=(AuditedTool(name="t", health=Health.HEALTHY, worked=True),))
ILL = AuditReport(server="a", tools=(AuditedTool(name="t", health=Health.CRASHED),))


def judged(code: int = 0) -> ComplianceReport:
    return ComplianceReport(server="a", exit_code=code)


@pytest.mark.parametrize(
    ("compliance", "audit", "outcome", "reason"),
    [
        (judged(), WELL, ServerOutcome.PASSED, ""),
        (judged(1), WELL, ServerOutcome.FAILED, ""),
        (judged(), ILL, ServerOutcome.FAILED, ""),
        (judged(4), WELL, ServerOutcome.NOT_JUDGED, "no rule was observed"),
        (judged(), None, ServerOutcome.FAILED, "not audited"),
        (None, None, ServerOutcome.NOT_JUDGED, "no rule was observed"),
    ],
)
def test_only_a_server_that_was_judged_and_audited_to_the_end_passes(
    compliance: ComplianceReport | None,
    audit: AuditReport | None,
    outcome: ServerOutcome,
    reason: str,
) -> None:
    row = FleetServer("a", ServerOutcome.NOT_JUDGED, compliance=compliance, audit=audit)
    found = with_outcome(row)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert with_outcome(msgspec.structs.replace(row, reason="why")).reason == "why"


P, F, U, N, INT, D = (
    ServerOutcome.PASSED,
    ServerOutcome.FAILED,
    ServerOutcome.UNREACHABLE,
    ServerOutcome.NOT_JUDGED,
    ServerOutcome.INTERRUPTED,
    ServerOutcome.DISABLED,
)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((P, P), ExitCode.OK),
        ((P, D), ExitCode.OK),
        ((P, F), ExitCode.FAILED),
        ((P, U), ExitCode.FAILED),
        ((P, N), ExitCode.FAILED),
        ((N,), ExitCode.FAILED),
        ((U, N), ExitCode.FAILED),
        ((U, U, D), ExitCode.UNREACHABLE),
        ((D,), ExitCode.NOTHING_MATCHED),
        ((), ExitCode.NOTHING_MATCHED),
        ((P, INT), ExitCode.INTERRUPTED),
        ((F, INT), ExitCode.INTERRUPTED),
    ],
)
def test_the_exit_code_follows_from_the_rows(
    outcomes: tuple[ServerOutcome, ...], code: ExitCode
) -> None:
    rows = [FleetServer(str(number), one) for number, one in enumerate(outcomes)]
    assert exit_code_of(rows, (), interrupted=False) is code


def test_an_interrupt_is_told_also_when_every_row_is_there() -> None:
    rows = [FleetServer("a", ServerOutcome.PASSED)]
    assert exit_code_of(rows, (), interrupted=True) is ExitCode.INTERRUPTED


def test_equal_names_are_hazards_and_fail() -> None:
    offers = {
        "a": OfferedNames(("search", "x"), ("p",), ("file:///1",)),
        "b": OfferedNames(("search",), ("p",), ("file:///1",)),
        "c": OfferedNames(("search", "y")),
        "d": None,
    }
    hazards = hazards_among(offers)
    assert [(one.id, one.names, one.servers) for one in hazards] == [
        ("COMP-001", ("search",), ("a", "b", "c")),
        ("COMP-003", ("p",), ("a", "b")),
        ("COMP-004", ("file:///1",), ("a", "b")),
    ]
    rows = [FleetServer("a", ServerOutcome.PASSED)]
    assert exit_code_of(rows, hazards, interrupted=False) is ExitCode.FAILED


def test_what_the_same_servers_share_is_one_hazard_however_much_it_is() -> None:
    many = OfferedNames(tuple(f"tool{number}" for number in range(30)))
    (hazard,) = hazards_among({"a": many, "b": many})
    assert len(hazard.names) == 30
    assert hazard.message.startswith("30 tools are offered by a and b: tool0, ")
    assert hazard.message.endswith(" and 22 more")


def test_a_client_that_prefixes_names_takes_only_the_hazards_of_names_away() -> None:
    same = OfferedNames(("search",), ("p",), ("file:///1",))
    hazards = hazards_among({"a": same, "b": same}, prefixed=True)
    assert [one.id for one in hazards] == ["COMP-004"]


def test_what_was_not_compared_is_said() -> None:
    notes = list(notes_on({"a": None, "b": OfferedNames(("x",), left_out=3)}))
    assert len(notes) == 2
    assert "a" in notes[0]
    assert "3 names" in notes[1]
    assert list(notes_on({"a": None})) == []


def test_names_are_taken_as_they_are_and_within_bounds() -> None:
    tools = ({"name": "one"}, {"name": 7}, "no tool", {"name": "x" * 301}, {"name": "one"})
    offered = names_of(Offer(tools=tools, resources=({"uri": "file:///1"},)))
    assert offered == OfferedNames(("one",), (), ("file:///1",), left_out=1)
