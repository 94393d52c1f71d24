"""SARIF, GitLab code quality, TAP, JUnit and the lines for agents: one run of mixed outcomes with
hostile text in it, held against the schema of each."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml

from mcptest.core.errors import ExitCode
from mcptest.core.results import Proof, RunReport, Status
from mcptest.report import agent, sarif, tap
from mcptest.report.head import RunView
from mcptest.report.problems import ReportedProblem, ReportedRule, path_of, uri_of, web_address
from tests.report.test_junit import parsed as parsed_junit
from tests.support.sample_run import CRASH, HOSTILE, READ, RUN, SKIPPED, SUM, TRIALS, hostile_run

SCHEMAS = Path(__file__).parents[1] / "schemas"
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")
MIXED = msgspec.structs.replace(
    RUN,
    results=(*RUN.results, *(one for text in HOSTILE for one in hostile_run(text).results)),
    regressions=hostile_run("\x1b[2J](http://evil)").regressions,
    notes=("a note", *HOSTILE),
)
EACH = pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))


@cache
def schema(name: str) -> jsonschema_rs.Validator:
    loaded = json.loads((SCHEMAS / f"{name}.json").read_bytes())
    return jsonschema_rs.validator_for(loaded, validate_formats=True)


def checked(data: bytes, name: str) -> Any:
    """What the bytes say, once they are known to follow the schema and to be safe to print."""
    assert not UNSAFE.search(data.decode("utf-8"))
    value = json.loads(data)
    assert [error.message for error in schema(name).iter_errors(value)] == []
    return value


def sarif_of(report: RunReport) -> dict[str, Any]:
    log: dict[str, Any] = checked(sarif.render(RunView(report).as_problems()), "sarif-2.1.0")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert "](" not in result["message"]["text"]
    return dict(run)


def code_quality_of(report: RunReport) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = checked(
        sarif.render_code_quality(RunView(report).as_problems()), "code-quality"
    )
    assert len({one["fingerprint"] for one in found}) == len(found)
    return found


class TapTest(msgspec.Struct):
    ok: bool
    number: int
    name: str
    directive: str
    about: dict[str, Any] = {}


POINT = re.compile(r"(not )?ok (\d+) - ((?:[^\\#]|\\.)*?)(?: # (SKIP|TODO)\b ?(.*))?")


def tap_of(report: RunReport, excused: dict[str, str] | None = None) -> list[TapTest]:
    """Every line has its place in the grammar of TAP 13."""
    text = tap.render(report, excused or {}).decode("utf-8")
    assert not UNSAFE.search(text)
    lines = text.removesuffix("\n").split("\n")
    assert lines[0] == "TAP version 13"
    assert lines[1].split(" ")[0] == f"1..{len(report.results)}"
    tests: list[TapTest] = []
    place = 2
    while place < len(lines):
        line = lines[place]
        place += 1
        if line == "  ---":
            end = lines.index("  ...", place)
            tests[-1].about = yaml.safe_load("\n".join(lines[place:end]))
            place = end + 1
        elif not line.startswith(("# note: ", "# regression: ", "Bail out! ")):
            match = POINT.fullmatch(line)
            assert match is not None, line[:200]
            tests.append(TapTest(not match[1], int(match[2]), match[3], match[4] or ""))
    assert [test.number for test in tests] == list(range(1, len(report.results) + 1))
    return tests


def agent_of(report: RunReport, code: int = ExitCode.FAILED, **more: Any) -> list[str]:
    text = agent.render(report, code, **more).decode("utf-8")
    assert not UNSAFE.search(text)
    lines = text.removesuffix("\n").split("\n")
    assert all(line.startswith(("mcptest ", "# ")) for line in lines[1:])
    return lines


# -- the same run in all of them ---------------------------------------------------------------


def test_one_run_of_mixed_outcomes_follows_every_schema() -> None:
    failed = 2 + len(HOSTILE)
    assert MIXED.failed == failed
    # the regression is none of the failing tests, so it is one problem more
    assert len(sarif_of(MIXED)["results"]) == failed + 1
    assert len(code_quality_of(MIXED)) == failed + 1
    tests = tap_of(MIXED)
    assert sum(not test.ok for test in tests) == failed
    assert sum(test.directive == "SKIP" for test in tests) == MIXED.skipped
    assert len(parsed_junit(MIXED).findall("testsuite/testcase/failure")) == failed
    lines = agent_of(MIXED)
    assert lines[0].startswith(f"FAIL: {failed} failed, {MIXED.passed} passed, ")
    assert sum(not line.startswith(("# note: ", "# regression: ")) for line in lines[1:]) == failed


@EACH
def test_what_a_server_says_breaks_no_form(text: str) -> None:
    report = hostile_run(text, trials=2, interrupted=True)
    sarif_of(report)
    code_quality_of(report)
    tap_of(report, {text: text})
    agent_of(report, headline="", repeat="mcptest lint --server demo")


def test_an_empty_run_is_valid_in_every_form() -> None:
    assert sarif_of(RunReport())["results"] == []
    assert code_quality_of(RunReport()) == []
    assert tap.render(RunReport()) == b"TAP version 13\n1..0 # SKIP no test was run\n"
    assert agent_of(RunReport(), ExitCode.NOTHING_MATCHED) == ["NOTHING RAN: no results in 0ms"]


def test_forms_stay_small_whatever_a_server_sends() -> None:
    one = hostile_run("x" * 1_000_000)
    for data in (
        sarif.render(RunView(one).as_problems()),
        sarif.render_code_quality(RunView(one).as_problems()),
        tap.render(one),
        agent.render(one, 1),
    ):
        assert len(data) < 40_000


# -- SARIF and code quality --------------------------------------------------------------------


def test_sarif_points_to_the_line_of_the_suite() -> None:
    first, second = sarif_of(RUN)["results"]
    assert first["ruleId"] == "check/equals"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "evals/math.yaml"},
        "region": {"startLine": 14},
    }
    assert SUM.proof is not None
    assert first["properties"]["repeat"] == SUM.proof.repeat
    assert "took 1.24s" in first["message"]["text"]
    assert second["ruleId"] == "test/crash"


def test_a_rule_of_a_lane_has_the_words_of_the_registry() -> None:
    broken = msgspec.structs.replace(SUM, name="invariants INV-003", kind="check")
    run = sarif_of(RunReport(results=(broken,)))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "INV-003"
    assert rule["helpUri"].startswith("https://modelcontextprotocol.io/specification/")
    assert len(rule["fullDescription"]["text"]) > len(rule["shortDescription"]["text"]) > 10


def test_a_lane_of_a_rule_that_nobody_knows_is_reported_all_the_same() -> None:
    broken = msgspec.structs.replace(SUM, name="compliance MINE-001")
    assert sarif_of(RunReport(results=(broken,)))["results"][0]["ruleId"] == "check/equals"


def test_a_time_that_is_none_is_left_out_and_utc_is_written_with_z() -> None:
    def invocation(started: str) -> dict[str, Any]:
        return dict(sarif_of(RunReport(started=started))["invocations"][0])

    assert invocation("2026-11-15T09:30:00+00:00")["startTimeUtc"] == "2026-11-15T09:30:00Z"
    assert "startTimeUtc" not in invocation("yesterday")


def test_an_interrupted_run_says_so() -> None:
    report = msgspec.structs.replace(RUN, interrupted=True)
    assert sarif_of(report)["invocations"][0]["executionSuccessful"] is False
    assert tap.render(report).endswith(b"Bail out! interrupted\n")
    assert agent_of(report, ExitCode.INTERRUPTED)[0].startswith("INTERRUPTED: ")


def test_trials_of_a_test_are_one_problem() -> None:
    results = sarif_of(TRIALS)["results"]
    assert [one["message"]["text"].split(":")[0] for one in results] == [
        "wobbly (in 2 of 4 trials)",
        "broken (in 4 of 4 trials)",
    ]


def test_a_problem_keeps_its_fingerprint_when_its_line_moves() -> None:
    moved = msgspec.structs.replace(SUM, line=99, detail="otherwise")
    before, after = (code_quality_of(RunReport(results=(one,)))[0] for one in (SUM, moved))
    assert before["fingerprint"] == after["fingerprint"]
    assert (before["location"]["lines"]["begin"], after["location"]["lines"]["begin"]) == (14, 99)


def test_a_crash_weighs_more_than_a_check() -> None:
    assert [one["severity"] for one in code_quality_of(RUN)] == ["major", "critical"]


def test_what_is_excused_is_suppressed_in_sarif_and_absent_for_gitlab() -> None:
    problems = RunView(RunReport(results=(SUM, CRASH))).as_problems()
    first = msgspec.structs.replace(problems.found[0], excused="a known one")
    problems = msgspec.structs.replace(problems, found=(first, problems.found[1]))
    results = checked(sarif.render(problems), "sarif-2.1.0")["runs"][0]["results"]
    assert results[0]["suppressions"] == [{"kind": "external", "justification": "a known one"}]
    assert "suppressions" not in results[1]
    assert len(checked(sarif.render_code_quality(problems), "code-quality")) == 1


@pytest.mark.parametrize(
    ("problem", "uri", "path"),
    [
        (
            ReportedProblem(ReportedRule("r", "t"), "m", file="./a b/c:d.yaml"),
            "a%20b/c%3Ad.yaml",
            "a b/c:d.yaml",
        ),
        (
            ReportedProblem(ReportedRule("r", "t"), "m", file=f"{Path.cwd()}/e/x.yaml"),
            "e/x.yaml",
            "e/x.yaml",
        ),
        (
            ReportedProblem(ReportedRule("r", "t"), "m", page="https://x.io/a#b", subject="s"),
            "https://x.io/a#b",
            "mcp/s",
        ),
        (
            ReportedProblem(ReportedRule("r", "t"), "m", page="javascript:1", subject="tool x"),
            "mcp/tool%20x",
            "mcp/tool%20x",
        ),
        (ReportedProblem(ReportedRule("RULE-1", "t"), "m"), "mcp/RULE-1", "mcp/RULE-1"),
    ],
)
def test_a_problem_has_a_place_for_everybody(problem: ReportedProblem, uri: str, path: str) -> None:
    assert uri_of(problem) == uri
    assert path_of(problem) == path


def test_a_file_elsewhere_is_named_by_an_address_of_its_own() -> None:
    problem = ReportedProblem(ReportedRule("r", "t"), "m", file="/somewhere/else/x.yaml")
    assert uri_of(problem) == "file:///somewhere/else/x.yaml"
    assert path_of(problem).endswith("../somewhere/else/x.yaml")


@pytest.mark.parametrize("text", ["http://x/%zz", "https://a b", "ftp://x", "https://x/[1]", ""])
def test_what_is_no_address_is_not_followed(text: str) -> None:
    assert web_address(text) == ""


# -- TAP -----------------------------------------------------------------------------------------


def test_tap_has_the_proof_of_a_failure_and_the_reason_of_a_skip() -> None:
    tests = tap_of(RUN)
    assert [(test.ok, test.directive) for test in tests] == [
        (True, ""),
        (False, ""),
        (False, ""),
        (True, "SKIP"),
    ]
    assert tests[2].about["exit"] == "code 1"
    assert tests[2].about["stderr"].splitlines()[-1] == "ValueError: empty message"
    assert b"# SKIP GITHUB_TOKEN is not set\n" in tap.render(RUN)


def test_a_number_sign_in_a_name_is_no_directive() -> None:
    named = msgspec.structs.replace(SUM, name="a # SKIP b \\")
    (test,) = tap_of(RunReport(results=(named,)))
    assert (test.ok, test.directive, test.name) == (False, "", "a \\#: SKIP b \\\\")


def test_a_failure_that_is_expected_is_something_to_do() -> None:
    tests = tap_of(RunReport(results=(SUM, CRASH)), {SUM.name: "issue 7"})
    assert [test.directive for test in tests] == ["TODO", ""]


# -- for agents ----------------------------------------------------------------------------------


def test_each_line_for_an_agent_is_a_command_that_can_be_run_as_it_stands() -> None:
    lines = agent_of(RUN)
    assert lines[0] == "FAIL: 2 failed, 1 passed, 1 skipped in 1.5s"
    assert [shlex.split(line, comments=True) for line in lines[1:]] == [
        ["mcptest", "run", "evals/math.yaml", "-k", "get-sum adds two numbers"],
        ["mcptest", "run", "evals/echo.yaml"],
    ]
    assert "# evals/math.yaml:14: get-sum adds two numbers: expected exact match" in lines[1]


@EACH
def test_what_a_server_says_never_stands_where_a_command_is_expected(text: str) -> None:
    said = f"'; rm -rf / #{text}"
    command = shlex.join(["mcptest", "fuzz", "--input", said])
    failed = msgspec.structs.replace(SUM, detail=said, failures=(), proof=Proof(repeat=command))
    _, line = agent_of(RunReport(results=(failed,)))
    words = shlex.split(line, comments=True)
    assert len(words) in (0, 4)
    assert words[:3] == (["mcptest", "fuzz", "--input"] if words else [])


def test_a_command_that_was_cut_is_not_given() -> None:
    long = Proof(repeat=shlex.join(["mcptest", "run", "x" * 10_000]))
    failed = msgspec.structs.replace(SUM, proof=long)
    assert agent_of(RunReport(results=(failed,)))[1].startswith("# evals/math.yaml:14: ")


@pytest.mark.parametrize("repeat", ["mcptest run 'evals", "rm -rf /", "mcptest-evil x", ""])
def test_what_is_no_whole_command_of_ours_is_not_given(repeat: str) -> None:
    failed = msgspec.structs.replace(SUM, proof=Proof(repeat=repeat))
    assert agent_of(RunReport(results=(failed,)))[1].startswith("# evals/math.yaml:14: ")


def test_an_agent_is_told_of_so_many_failures_and_how_many_more_there_are() -> None:
    many = [msgspec.structs.replace(SUM, name=f"t{number}") for number in range(150)]
    lines = agent_of(RunReport(results=tuple(many)))
    assert len(lines) == 1 + agent.LINES + 1
    assert lines[-1] == "# and 50 more: --json-file FILE keeps all"


def test_trials_of_a_test_are_one_line() -> None:
    lines = agent_of(TRIALS, repeat="mcptest run evals")
    assert [line for line in lines if "wobbly (2 of 4 trials)" in line] == lines[1:2]
    assert lines[2].startswith("mcptest run evals  # broken (4 of 4 trials): ")


def test_a_verdict_is_that_of_the_exit_code() -> None:
    good = RunReport(results=(READ, SKIPPED), duration_ms=40)
    assert agent_of(good, ExitCode.OK, headline="grade A") == [
        "PASS: grade A, 1 passed, 1 skipped in 40ms"
    ]
    known = agent_of(RUN, ExitCode.OK, excused={SUM.name: "x", CRASH.name: "x"})
    assert known == ["PASS: 2 failed as expected, 1 passed, 1 skipped in 1.5s"]


def test_statuses_of_the_samples_are_mixed() -> None:
    assert {one.status for one in MIXED.results} == set(Status)
