"""What a file asks for besides its tests: which forms are understood, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.probe.lanes import check_names, check_rules
from mcptest.suite.lane_blocks import Lanes
from mcptest.suite.load import Given, load_content, load_suites
from mcptest.suite.reading import SuiteError, render

SERVER = "server: {command: s}\n"
ASSERT = "assert: {tool: t, expect: {not_error: true}}\n"
TESTS = "tests:\n  - name: a\n    assert: {tool: t, expect: {not_error: true}}\n"


def read(text: str, given: Given | None = None) -> tuple[int, Lanes | None, list[str]]:
    """How many tests, which lanes, and what is wrong."""
    content, source = load_content(text.encode(), "suite.yml", given or Given())
    return len(content.tests), content.lanes, [render(one) for one in source.finish()]


def test_a_server_and_a_compliance_block_are_a_suite() -> None:
    tests, lanes, problems = read(SERVER + "compliance: {spec_version: v2025-06-18}\n")
    assert (tests, problems) == (0, [])
    assert lanes is not None
    assert lanes.server is not None
    assert lanes.server.command == "s"
    assert lanes.compliance is not None
    assert lanes.compliance.tests is None


@pytest.mark.parametrize("tests", [TESTS, ASSERT])
def test_lanes_stand_beside_tests_in_both_forms(tests: str) -> None:
    text = SERVER + tests + "compliance:\n  - name: PROTO-002\ninvariants: {strict: true}\n"
    number, lanes, problems = read(text)
    assert (number, problems) == (1, [])
    assert lanes is not None
    assert lanes.server is not None
    assert [one.name for one in (lanes.compliance and lanes.compliance.tests) or ()] == [
        "PROTO-002"
    ]
    assert lanes.invariants is not None
    assert lanes.invariants.strict
    assert [name for name, _ in lanes.places] == ["compliance", "invariants"]


def test_invariants_with_nothing_after_it_is_the_whole_of_them() -> None:
    _, lanes, problems = read(SERVER + TESTS + "invariants:\n")
    assert problems == []
    assert lanes is not None
    assert lanes.invariants is not None
    assert lanes.invariants.rules == ()


def test_invariants_alone_have_no_sessions_to_judge() -> None:
    _, _, (problem,) = read(SERVER + "invariants:\n")
    assert "tests is missing from a suite" in problem


def test_a_server_that_is_judged_has_to_be_named() -> None:
    _, lanes, (problem,) = read("compliance: {spec_version: draft}\n")
    assert lanes is None
    assert "no server to judge" in problem
    assert "name one under server, or pass --server" in problem
    assert read("compliance: {spec_version: draft}\n", Given(server=True))[2] == []


def test_gates_alone_need_no_server() -> None:
    _, lanes, problems = read("compliance: {tests: []}\n")
    assert problems == []
    assert lanes is not None
    assert lanes.compliance is not None
    assert not lanes.compliance.needs_server
    graded = read(SERVER + "compliance: {tests: [], grade_delta: {}}\n")[1]
    assert graded is not None
    assert graded.compliance is not None
    assert graded.compliance.needs_server, "a grade is one of a server"


def test_a_mistake_in_a_lane_is_told_with_its_place_and_nothing_is_run(tmp_path: Path) -> None:
    path = tmp_path / "suite.yml"
    path.write_text(SERVER + TESTS + "compliance:\n  spec_version: v2025-6-18\n")
    with pytest.raises(SuiteError) as caught:
        load_suites([str(path)])
    assert f"{path}:6:3: unknown compliance spec_version: v2025-6-18" in str(caught.value)


def test_a_pin_that_is_empty_does_not_pin() -> None:
    text = SERVER + "compliance:\n  spec_version:\n  spec_version_check: {against: draft}\n"
    (problem,) = read(text)[2]
    assert "spec_version_check needs compliance.spec_version" in problem


def test_fixtures_of_the_block_are_kept_with_their_places() -> None:
    text = SERVER + "compliance:\n  fixtures:\n    slow_tool: sleep\n"
    _, lanes, problems = read(text)
    assert problems == []
    assert lanes is not None
    assert lanes.compliance is not None
    assert lanes.compliance.fixtures == {"slow_tool": "sleep"}
    assert lanes.compliance.fixture_places["slow_tool"].line == 4


def test_a_name_of_a_server_is_said_to_be_of_no_use() -> None:
    _, lanes, (warning,) = read(SERVER + "compliance: [{name: PROTO-002, server: main}]\n")
    assert lanes is not None
    assert "warning: a suite has one server" in warning


# -- names that have to exist ------------------------------------------------------------------


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "suite.yml"
    path.write_text(SERVER + text)
    loaded = load_suites([str(path)])
    with pytest.raises(SuiteError) as caught:
        check_names(loaded.lanes)
    return str(caught.value).replace(str(path), "suite.yml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "compliance:\n  - name: PROTO-002\n  - name: PROTO-222\n",
            ["suite.yml:4:5: unknown rule PROTO-222", "4 |   - name: PROTO-222", "did you mean"],
        ),
        (
            "compliance:\n  spec_version: v2024-11-05\n  tests:\n    - name: ELICIT-001\n",
            ["suite.yml:5:7: v2024-11-05 has no rule ELICIT-001", "it is in v2025-06-18"],
        ),
        (
            "compliance:\n  fixtures:\n    slow_tol: sleep\n",
            ["suite.yml:4:5: unknown fixture slow_tol", "did you mean slow_tool?"],
        ),
        (
            TESTS + "invariants:\n  rules: [INV-01]\n",
            ["suite.yml:6:3: unknown session rule INV-01", "did you mean INV-001?"],
        ),
    ],
)
def test_a_name_that_does_not_exist_has_its_place(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    message = refused(tmp_path, text)
    for words in told:
        assert words in message


def test_without_a_pin_a_rule_of_any_revision_will_do(tmp_path: Path) -> None:
    path = tmp_path / "suite.yml"
    path.write_text(SERVER + "compliance: [{name: PROTO-002}, {name: PROTO-010}]\n")
    check_names(load_suites([str(path)]).lanes)


def test_a_test_with_its_own_expect_may_have_any_name(tmp_path: Path) -> None:
    expect = "[{target: answer, matcher: {exact: result}}]"
    path = tmp_path / "suite.yml"
    path.write_text(SERVER + f"compliance: [{{name: NONE-999, check: ping, expect: {expect}}}]\n")
    check_names(load_suites([str(path)]).lanes)


def test_rules_of_the_command_line_have_to_exist_too() -> None:
    check_rules(["PROTO-002"], None)
    with pytest.raises(UsageError, match="unknown rule PROTO-02") as caught:
        check_rules(["PROTO-02"], None)
    assert "did you mean PROTO-0" in caught.value.hint
    with pytest.raises(UsageError, match="v2026-07-28 has no rule PROTO-002") as caught:
        check_rules(["PROTO-002"], Revision.V2026_07_28)
    assert "v2025-11-25" in caught.value.hint
