"""The matrix has a column for each server that was judged, whatever the servers call themselves."""

from __future__ import annotations

from msgspec.structs import replace

from mcptest.core.results import RunReport, Status
from mcptest.core.results import TestResult as Result
from mcptest.core.revision import Revision
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.report.html.building import told_apart
from mcptest.report.html.sources import source_of
from mcptest.report.html.wire_rows import Places
from mcptest.report.stored import Stored, parts_of_fleet
from tests.support.sample_compliance import judgement, report_of

REVISION = Revision.V2025_11_25


def judged(label: str, calls_itself: str) -> ComplianceReport:
    return replace(report_of(judgement(REVISION, server_name=calls_itself)), server=label)


def columns_of(*stored: Stored) -> list[list[str]]:
    """The columns of each source, all of which are those of its entries too."""
    sources = told_apart(stored, [source_of(one, Places([])) for one in stored])
    for source in sources:
        assert {one.column for one in source.entries if one.column} <= {
            column.name for column in source.columns
        }
    return [[column.name for column in source.columns] for source in sources]


def stored(report: ComplianceReport | RunReport, file: str = "f.json") -> Stored:
    return Stored(file, report)


def test_a_server_is_called_what_it_calls_itself() -> None:
    shown = columns_of(stored(judged("python a.py", "weather")), stored(judged("b", "maps")))
    assert shown == [["weather 2025-11-25"], ["maps 2025-11-25"]]


def test_two_servers_of_one_name_are_called_what_the_user_calls_them() -> None:
    shown = columns_of(stored(judged("python a.py", "x")), stored(judged("python b.py", "x")))
    assert shown == [["python a.py 2025-11-25"], ["python b.py 2025-11-25"]]


def test_one_server_that_was_judged_twice_has_a_column_for_each_file() -> None:
    before, after = (stored(judged("a", "x"), f"{name}.json") for name in ("before", "after"))
    assert columns_of(before, after) == [
        ["a (before.json) 2025-11-25"],
        ["a (after.json) 2025-11-25"],
    ]


def test_tests_and_rules_of_one_server_stand_in_one_column() -> None:
    result = Result("adds", Status.PASS, server="a", revision=REVISION.value)
    shown = columns_of(stored(judged("a", "weather")), stored(RunReport(results=(result,))))
    assert shown == [["a 2025-11-25"], ["a 2025-11-25"]]


def test_a_fleet_has_one_column_for_each_of_its_servers() -> None:
    servers = (
        FleetServer("one", ServerOutcome.FAILED, compliance=judged("one", "same")),
        FleetServer("two", ServerOutcome.FAILED, compliance=judged("two", "same")),
        FleetServer("gone", ServerOutcome.UNREACHABLE, reason="it would not start"),
    )
    fleet = FleetReport(config="mcp.json", servers=servers, exit_code=1)
    shown = {name for names in columns_of(*parts_of_fleet(fleet)) for name in names}
    assert shown == {"one 2025-11-25", "two 2025-11-25", "gone"}
