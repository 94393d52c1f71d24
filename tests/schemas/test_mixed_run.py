"""All forms of one run of mixed outcomes, each as its consumers read it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.schemas.mixed_run import HOSTILE_NAME, Reports, run_of_mixed_outcomes
from tests.schemas.validators import (
    STEERING,
    closed,
    problems,
    read_annotations,
    read_badge,
    read_code_quality,
    read_html,
    read_junit,
    read_markdown,
    read_own,
    read_sarif,
    read_tap,
    validator,
)

FAILING = 6
"""Tests that fail in at least one of their two trials."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    return run_of_mixed_outcomes(tmp_path_factory.mktemp("mixed"))


def test_the_run_has_every_outcome(mixed: Reports) -> None:
    assert mixed.done.code == 1, mixed.done.said
    run = read_own(mixed["run.json"], "run")
    assert run["summary"] == {"total": 18, "passed": 3, "failed": 11, "skipped": 4}
    kinds = Counter(one["kind"] for one in run["results"] if one["status"] == "FAIL")
    assert set(kinds) >= {"check", "crash", "timeout", "start"}
    moody = [one["status"] for one in run["results"] if one["name"] == "it is moody"]
    assert sorted(moody) == ["FAIL", "PASS"]


def test_the_baseline_of_it_follows_its_schema(mixed: Reports) -> None:
    entries = read_own(mixed["baseline.json"], "baseline")["entries"]
    assert Counter(one["status"] for one in entries) == {"PASS": 1, "FAIL": FAILING, "SKIP": 2}


def test_jenkins_and_gitlab_read_the_junit_report(mixed: Reports) -> None:
    root = read_junit(mixed["results.xml"])
    assert (root.get("tests"), root.get("failures")) == ("18", "11")
    assert f"{HOSTILE_NAME[:9]}" in root.findall(".//testcase")[2].get("name")
    properties = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert properties == {"pass_at_k": "2/7", "pass_up_k": "1/7"}


def test_code_scanning_takes_the_sarif_report(mixed: Reports) -> None:
    run = read_sarif(mixed["mcptest.sarif"])
    assert len(run["results"]) == FAILING
    lines = {
        one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in run["results"]
    }
    assert len(lines) == FAILING


def test_gitlab_takes_the_code_quality_report(mixed: Reports) -> None:
    findings = read_code_quality(mixed["quality.json"])
    assert len(findings) == FAILING
    assert {one["location"]["path"] for one in findings} == {"mixed.yaml"}
    assert {one["severity"] for one in findings} == {"major", "critical"}


def test_a_harness_reads_the_tap_report(mixed: Reports) -> None:
    tests = read_tap(mixed["results.tap"])
    assert Counter((test.ok, test.skip) for test in tests) == {
        (True, False): 3,
        (False, False): 11,
        (True, True): 4,
    }


def test_the_markdown_of_the_summary_holds_together(mixed: Reports) -> None:
    rows = read_markdown(mixed["summary.md"])
    assert len(rows) >= 1 + 9
    assert mixed["step.md"].strip() == mixed["summary.md"].strip()


def test_the_badge_is_red(mixed: Reports) -> None:
    assert read_badge(mixed["badge.json"])["color"] == "red"


def test_the_page_is_html_that_a_strict_parser_takes(mixed: Reports) -> None:
    read_html(mixed["report.html"])


def test_the_annotations_are_commands_of_ours_only(mixed: Reports) -> None:
    commands = read_annotations(mixed.done.out)
    assert [line.split(" ")[0] for line in commands] == ["::error"] * FAILING + ["::notice"]
    assert read_annotations(mixed.done.err) == []


def test_nothing_in_any_form_steers_a_terminal(mixed: Reports) -> None:
    for path in mixed.folder.iterdir():
        if path.is_file() and path.suffix != ".yaml":
            assert STEERING.search(path.read_bytes().decode()) is None, path.name


def test_the_list_of_results_follows_its_schema(mixed: Reports) -> None:
    from mcptest.core.results import RunReport
    from mcptest.report.codec import decode
    from mcptest.report.run_results import mcp_assert_json

    listed = read_own(mcp_assert_json(decode(mixed["run.json"], RunReport, "run")), "results")
    assert len(listed) == 18


# -- the validators themselves can fail ------------------------------------------------------------


def test_a_broken_form_is_noticed(mixed: Reports) -> None:
    with pytest.raises(AssertionError):
        read_junit(mixed["results.xml"].replace(b'errors="0"', b'error="0"'))
    with pytest.raises(AssertionError):
        read_sarif(mixed["mcptest.sarif"].replace(b'"help"', b'"markdown"'))
    with pytest.raises(AssertionError):
        read_code_quality(mixed["quality.json"].replace(b'"major"', b'"bad"'))
    with pytest.raises(AssertionError):
        read_tap(mixed["results.tap"].replace(b"1..18", b"1..19"))
    with pytest.raises(AssertionError):
        read_markdown(mixed["summary.md"].replace(b"| FAIL |", b"| FAIL | FAIL |"))
    with pytest.raises(AssertionError):
        read_annotations("::set-output name=x::y")
    with pytest.raises(AssertionError):
        read_badge(mixed["badge.json"].replace(b'"red"', b'"reddish"'))


def test_a_member_that_the_schema_does_not_tell_of_is_noticed(mixed: Reports) -> None:
    run = json.loads(mixed["run.json"])
    run["results"][0]["surprise"] = 1
    with pytest.raises(AssertionError):
        read_own(json.dumps(run).encode(), "run")
    assert closed({"type": "object", "properties": {}})["additionalProperties"] is False
    assert problems(validator("shields-endpoint"), {}) != []
