"""Suites for mcp-assert give the verdicts of mcp-assert, but for the differences we mean.

Each group of assertions is run once by each tool, on the same real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.suite.model import BLOCKS
from tests.differential.both_tools import HERE, Case, cases_of, run_both, said_by_both
from tests.differential.differences import DIFFERENCES
from tests.differential.stub_cases import stub_cases
from tests.e2e.driving import NPM, free_port, listening

PAGE = Path(__file__).parents[2] / "docs" / "mcp-assert-differences.md"
EVERYTHING = NPM / "server-everything" / "dist" / "index.js"
NPM_GROUPS = ("filesystem", "everything", "memory")
LISTENING = {"http": "streamableHttp", "sse": "sse"}
REAL_SERVERS = (*NPM_GROUPS, *LISTENING, "time")
GROUPS = (*REAL_SERVERS, "demo", "trajectory", "strict")
# The names of mcp-assert, not of our declarations: these have to stay.
EXPECTATIONS = (
    *("contains", "contains_any", "not_contains", "equals", "json_path", "min_results"),
    *("max_results", "not_empty", "not_error", "is_error", "matches_regex", "file_contains"),
    *("file_not_contains", "file_not_exists", "file_unchanged", "net_delta", "in_order"),
    "min_progress",
)


def compare(cases: list[Case], folder: Path) -> None:
    theirs, ours = said_by_both(cases, folder)
    found = {name: (theirs[name].status, ours[name].status) for name in ours}
    details = "\n".join(f"{name}: {said}" for name, said in ours.items())
    assert found == {case.name: (their_verdict(case), case.verdict) for case in cases}, details


def their_verdict(case: Case) -> str:
    different = DIFFERENCES.get(case.name)
    return different.theirs if different is not None else case.verdict


@pytest.mark.peer
@pytest.mark.npm
@pytest.mark.parametrize("group", NPM_GROUPS)
def test_npm_servers_get_the_same_verdicts_from_both_tools(group: str, tmp_path: Path) -> None:
    compare(cases_of(group), tmp_path)


@pytest.mark.peer
@pytest.mark.npm
@pytest.mark.parametrize("group", LISTENING)
def test_servers_with_a_url_get_the_same_verdicts_from_both_tools(
    group: str, tmp_path: Path
) -> None:
    port = free_port()
    command = ["node", str(EVERYTHING), LISTENING[group]]
    with listening(command, f"port {port}", {"PORT": str(port)}):
        compare(cases_of(group, port), tmp_path)


@pytest.mark.peer
@pytest.mark.parametrize("group", ["time", "demo", "trajectory", "strict"])
def test_other_servers_get_the_same_verdicts_from_both_tools(group: str, tmp_path: Path) -> None:
    compare(cases_of(group), tmp_path)


@pytest.mark.peer
def test_suites_as_people_write_them_are_read_alike(tmp_path: Path) -> None:
    theirs, ours, complaints = run_both(HERE / "documented", tmp_path)

    assert theirs == ours, complaints
    assert {name for name, said in ours.items() if said.status != "PASS"} == {
        "a number that is written in another way is another text"
    }
    assert len(ours) == len(list((HERE / "documented").iterdir()))


# -- what the tables hold --------------------------------------------------------------------


def all_cases() -> dict[str, Case]:
    cases = [case for group in GROUPS for case in cases_of(group)]
    named = {case.name: case for case in cases}
    assert len(named) == len(cases), "a name stands for one assertion in all of the groups"
    return named


def test_there_are_enough_assertions_on_real_servers() -> None:
    counts = {group: len(cases_of(group)) for group in REAL_SERVERS}
    assert sum(counts.values()) >= 60
    assert min(counts.values()) >= 4
    assert len(all_cases()) + len(stub_cases()) >= 300, "the page says so"


def test_every_difference_is_one_and_has_its_row_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    cases = all_cases()
    for name, difference in DIFFERENCES.items():
        assert difference.theirs != cases[name].verdict, name
        assert f"\n| {difference.row} |" in page, name


def asked_by(case: Case) -> Iterator[tuple[str, Any]]:
    for block in BLOCKS[1:]:
        expect = case.document.get(block, {}).get("expect", {})
        yield from expect.items()


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_every_expectation_is_compared_where_it_holds_and_where_not(verdict: str) -> None:
    compared = {
        name
        for case in all_cases().values()
        if case.verdict == verdict
        for name, _ in asked_by(case)
    }
    assert set(EXPECTATIONS) - compared == set()


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_every_block_is_compared_where_it_holds_and_where_not(verdict: str) -> None:
    compared = {
        block
        for case in all_cases().values()
        if case.verdict == verdict
        for block in BLOCKS
        if block in case.document
    }
    assert set(BLOCKS) - compared == set()
