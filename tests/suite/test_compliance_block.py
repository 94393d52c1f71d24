"""The `compliance:` block of a suite: both forms, its gates, its tests and its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.suite.lane_blocks import (
    GRADE_DEFAULTS,
    ComplianceBlock,
    compliance_of,
    judge_gate,
    load_compliance_block,
)
from mcptest.suite.model import Expectation
from mcptest.suite.reading import SuiteError, SuiteProblem, parse_yaml


def block(tmp_path: Path, text: str) -> ComplianceBlock | None:
    path = tmp_path / "suite.yml"
    path.write_text(text)
    return load_compliance_block(path)


def parsed(tmp_path: Path, text: str) -> ComplianceBlock:
    found = block(tmp_path, text)
    assert found is not None
    return found


def problems(tmp_path: Path, text: str) -> list[SuiteProblem]:
    with pytest.raises(SuiteError) as caught:
        block(tmp_path, text)
    return list(caught.value.problems)


def test_the_object_form_has_pin_gates_and_tests(tmp_path: Path) -> None:
    found = parsed(
        tmp_path,
        """\
server: {command: ./my-mcp-server}
compliance:
  spec_version: v2025-06-18
  spec_version_check:
    against: draft
    expect:
      - target: spec_breaking_changes
        matcher: {schema: {maxItems: 1}}
  grade_delta:
    against: scorecard.json
    expect:
      - target: score
        matcher: {minimum: 90}
  tests:
    - name: PROTO-002
    - name: lists its tools
      server: main
      check: tools/list
      expect:
        - target: result.tools
          matcher: {min_length: 1}
""",
    )
    assert found.spec_version is not None
    assert found.spec_version_check is not None
    assert found.spec_version_check.against is not None
    assert found.spec_version_check.against.label == "draft"
    assert found.grade_delta is not None
    assert found.grade_delta.against == "scorecard.json"
    assert found.grade_delta.expect == (Expectation("score", {"minimum": 90}),)
    assert found.tests is not None
    rule, own = found.tests
    assert (rule.rule_id, rule.runs_corpus_rule, rule.place.line) == ("PROTO-002", True, 15)
    assert (own.rule_id, own.runs_corpus_rule, own.server) == ("", False, "main")
    assert own.check is not None
    assert own.check.method == "tools/list"
    assert own.expect == (Expectation("result.tools", {"min_length": 1}),)


def test_no_tests_key_is_the_whole_corpus_and_an_empty_list_the_gates_alone(tmp_path: Path) -> None:
    assert parsed(tmp_path, "compliance: {spec_version: draft}").tests is None
    assert parsed(tmp_path, "compliance: {tests: []}").tests == ()
    assert parsed(tmp_path, "compliance: []").tests == ()


def test_a_test_with_its_own_expect_may_be_named_after_a_rule(tmp_path: Path) -> None:
    expect = "[{target: answer, matcher: {exact: result}}]"
    text = f"compliance: [{{name: RES-102, check: ping, expect: {expect}}}]"
    [test] = parsed(tmp_path, text).tests or ()
    assert test.rule_id == "RES-102"
    assert not test.runs_corpus_rule


def test_the_defaults_of_the_grade_gate_are_that_nothing_regressed(tmp_path: Path) -> None:
    found = parsed(tmp_path, "compliance: {grade_delta: {against: card.json}}")
    assert found.grade_delta is not None
    assert found.grade_delta.expect == GRADE_DEFAULTS
    held = {"grade_regressed": False, "regressed_sections": []}
    assert judge_gate(GRADE_DEFAULTS, held).passed
    assert not judge_gate(GRADE_DEFAULTS, {**held, "regressed_sections": ["tools"]}).passed


def test_a_suite_without_the_block_has_none(tmp_path: Path) -> None:
    assert block(tmp_path, "server: {command: x}\n") is None
    assert block(tmp_path, "") is None


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("compliance: 7\n", 1, 13, "compliance must be a mapping or a list of tests, not 7"),
        ("- a\n", 1, 1, "a suite must be a mapping, not a list"),
        ("compliance:\n  spec_versoin: draft\n", 2, 3, "unknown key spec_versoin in compliance"),
        ("compliance:\n  - check: ping\n", 2, 5, "name is missing from a compliance test"),
        ("compliance:\n  - name: says nothing\n", 2, 5, "the test has no expect"),
        (
            "compliance:\n  - name: x\n    expect: [{target: answer, matcher: {exact: result}}]\n",
            2,
            5,
            "the test has no check",
        ),
        (
            (
                "compliance:\n  - name: x\n    check: {probe: cursor_twice}\n"
                "    expect: [{target: answer, matcher: {exact: result}}]\n"
            ),
            3,
            5,
            "a test in a suite can't use a probe",
        ),
        (
            (
                "compliance:\n  - name: x\n    check: ping\n"
                "    expect: [{target: anser, matcher: {exact: result}}]\n"
            ),
            4,
            15,
            'unknown target "anser"',
        ),
        (
            (
                "compliance:\n  spec_version: draft\n  spec_version_check:\n    expect:\n"
                "      - {target: spec_claen, matcher: {exact: true}}\n"
            ),
            5,
            10,
            "unknown target spec_claen",
        ),
        (
            "compliance:\n  grade_delta: {expect: [{target: spec_clean, matcher: {exact: 1}}]}\n",
            2,
            27,
            "unknown target spec_clean",
        ),
    ],
)
def test_a_mistake_has_its_place(
    tmp_path: Path, text: str, line: int, column: int, message: str
) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.message.startswith(message)
    assert (problem.place.line, problem.place.column) == (line, column)


def test_a_check_that_is_not_used_is_a_warning() -> None:
    root, source = parse_yaml(b"- {name: PROTO-002, check: initialize}\n", "suite.yml")
    assert root is not None
    found = compliance_of(root, source)
    assert found is not None
    [warning] = source.problems
    assert warning.severity == "warning"
    assert "the rule PROTO-002 runs unchanged" in warning.message


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="No such file"):
        load_compliance_block(tmp_path / "nowhere.yml")
    with pytest.raises(SuiteError, match="it is a folder, not a file"):
        load_compliance_block(tmp_path)
    (tmp_path / "bad.yml").write_bytes(b"a: \xff\n")
    with pytest.raises(SuiteError, match="not UTF-8"):
        load_compliance_block(tmp_path / "bad.yml")
