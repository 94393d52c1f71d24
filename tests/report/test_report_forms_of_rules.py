"""Judged servers, scenario runs and lint findings as SARIF, code quality, TAP and agent lines."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec
import pytest

from mcptest.commands.reporting import RunEnding, _say_run
from mcptest.core.judgement import GateResult
from mcptest.core.results import RunReport
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import (
    CheckResult,
    CheckStatus,
    Compared,
    Ended,
    Reference,
    ScenarioResult,
)
from mcptest.core.verdict import Side
from mcptest.report import sarif, tap
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.conformance import ConformanceReport
from mcptest.report.lint import LintReport
from mcptest.report.problems import Problems
from mcptest.report.terminal import Style
from mcptest.report.write import rendered
from mcptest.rules.lint.finding import LintFinding, LintSeverity
from mcptest.rules.lint.linter import all_lint_rules
from tests.report.test_report_forms import EACH, agent_of, checked, tap_of
from tests.support.sample_compliance import SAMPLE, URL, hostile_report, several_revisions
from tests.support.sample_run import HOSTILE, READ, SKIPPED, SUM


def results_of(problems: Problems) -> list[dict[str, Any]]:
    """Of SARIF that follows its schema; the code quality of the same problems follows its own."""
    found = checked(sarif.render_code_quality(problems), "code-quality")
    assert len(found) == sum(not one.excused for one in problems.found)
    assert len({one["fingerprint"] for one in found}) == len(found)
    (run,) = checked(sarif.render(problems), "sarif-2.1.0")["runs"]
    assert len(run["results"]) == len(problems.found)
    return list(run["results"])


def problems_about(file: str, report: ComplianceReport | LintReport) -> Problems:
    """Of a report whose problems are in a file."""
    judged = isinstance(report, ComplianceReport)
    where = {"suite": file} if judged else {"server": file, "transport": ""}
    return msgspec.structs.replace(report, **where).as_problems()


def uri(result: dict[str, Any]) -> str:
    return str(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


# -- compliance ----------------------------------------------------------------------------------


def test_a_broken_rule_points_to_its_page_with_the_level_of_its_keyword() -> None:
    results = {one["ruleId"]: one for one in results_of(SAMPLE.as_problems())}
    assert uri(results["TOOLS-004"]) == URL
    assert results["TOOLS-004"]["level"] == "error"
    assert "expected: of type object" in results["TOOLS-004"]["message"]["text"]
    assert results["PROTO-005"]["level"] == "warning"
    assert results["gate/grade_delta"]["message"]["text"].startswith("the grade fell")
    assert "gate/spec_version_check" not in results


def test_the_rule_says_what_is_asked_for_and_what_to_do() -> None:
    (run,) = checked(sarif.render(SAMPLE.as_problems()), "sarif-2.1.0")["runs"]
    rule = next(one for one in run["tool"]["driver"]["rules"] if one["id"] == "TOOLS-004")
    assert rule["help"]["text"] == "Wrap a list or a number in an object."
    assert rule["helpUri"] == URL
    assert rule["properties"] == {"tags": ["tools"]}


def test_a_judgement_that_a_suite_asked_for_points_to_the_suite() -> None:
    results = results_of(problems_about("evals/compliance.yml", SAMPLE))
    assert {uri(one) for one in results} == {"evals/compliance.yml"}


def baseline(*lines: str) -> ComplianceReport:
    gate = GateResult("baseline", not lines, "", lines)
    return msgspec.structs.replace(SAMPLE, gates=(gate,), exit_code=int(bool(lines)))


def test_what_the_baseline_lists_is_suppressed() -> None:
    assert all("suppressions" in one for one in results_of(baseline().as_problems()))
    new = baseline("new failure: TOOLS-004 structuredContent is an object (MUST)")
    results = {one["ruleId"]: one for one in results_of(new.as_problems())}
    assert "suppressions" not in results["TOOLS-004"]
    assert "suppressions" in results["PROTO-005"]


@EACH
def test_what_a_judged_server_says_breaks_no_form(text: str) -> None:
    results_of(problems_about(text, hostile_report(text, revisions=2)))


def agent_lines(report: ComplianceReport) -> list[str]:
    mild = msgspec.structs.replace(report, strict=False)
    return rendered("agent", mild, code=report.exit_code).decode().splitlines()


def test_an_agent_reads_the_grade_and_then_what_is_broken() -> None:
    lines = agent_lines(msgspec.structs.replace(several_revisions(), exit_code=1))
    assert lines[0].startswith("FAIL: v")
    assert " grade " in lines[0]
    assert any("--rule TOOLS-004  # compliance v2025-06-18 TOOLS-004: " in one for one in lines)


def test_an_agent_reads_no_failure_of_which_the_baseline_knows() -> None:
    lines = agent_lines(baseline())
    assert lines[0].startswith("PASS: ")
    assert "failed as expected" in lines[0]
    assert not [line for line in lines if line.startswith("mcptest ")]


# -- conformance ---------------------------------------------------------------------------------


def check(name: str, status: CheckStatus, text: str = "", **more: Any) -> CheckResult:
    page = (Reference("MCP", "https://modelcontextprotocol.io/specification/2025-11-25/basic"),)
    given = {"references": page, "message": text, "excerpt": text, **more}
    return CheckResult(name, f"{name} holds", f"what {name} asks for", status, **given)


def scenario(name: str, *checks: CheckResult, **more: Any) -> ScenarioResult:
    repeat = f"mcptest conformance client --command ./client --scenario {name}"
    given = {"repeat": repeat, "ended": Ended(code=0), **more}
    return ScenarioResult(name, Side.CLIENT, Revision.V2025_11_25, "http", checks, **given)


GOOD = scenario("initialize", check("a", CheckStatus.SUCCESS))
BAD = scenario("tools_call", check("b", CheckStatus.FAILURE, "no call"))
WARNED = scenario("elicitation", check("c", CheckStatus.WARNING, "no default"))
UNSEEN = scenario("sampling", check("d", CheckStatus.UNTESTABLE, "not declared"))


def conformance(*results: ScenarioResult, **more: Any) -> ConformanceReport:
    return ConformanceReport(Side.CLIENT, "./client", results, tool="mcptest 0.1.0", **more)


ALL = (GOOD, BAD, WARNED, UNSEEN)


def test_scenarios_that_fail_for_one_cause_name_it_once() -> None:
    why = "the client sent nothing; its stderr ends: FileNotFoundError: config.json"
    names = ("initialize", "tools_call", "sse-retry")
    report = conformance(*(scenario(one, cause=why, stderr="config.json") for one in names))
    text = "\n".join(report.lines(Style()))
    assert text.count("the client sent nothing") == 1
    assert text.count("config.json") == text.split("tools_call")[0].count("config.json")
    assert text.count("same cause as initialize") == 2
    assert text.count("repeat") == 1
    markdown = "\n".join(report.markdown_lines())
    assert markdown.count("the client sent nothing") == 1
    assert markdown.count("same cause as <code>initialize</code>") == 2
    assert "\n".join(report.lines(Style(verbose=True))).count("the client sent nothing") == 3


def test_a_failing_check_points_to_the_page_of_its_requirement() -> None:
    failed, warned = results_of(conformance(*ALL).as_problems())
    assert (failed["ruleId"], failed["level"]) == ("b", "error")
    assert (warned["ruleId"], warned["level"]) == ("c", "warning")
    assert uri(failed).startswith("https://modelcontextprotocol.io/")


def test_what_does_not_count_is_a_note() -> None:
    report = conformance(*ALL, scored=("initialize",))
    assert {one["level"] for one in results_of(report.as_problems())} == {"note"}


def test_an_expected_failure_is_excused_and_a_stale_one_is_a_failure() -> None:
    compared = Compared(expected=("tools_call",), new=("elicitation:c",), stale=("initialize",))
    report = conformance(*ALL, compared=compared)
    run, excused = report.run_and_excuses()
    tests = tap_of(run, excused)
    assert [(one.ok, one.directive) for one in tests] == [
        (True, ""),
        (False, "TODO"),
        (True, ""),
        (True, "SKIP"),
        (False, ""),  # the warning is not on the list
        (False, ""),  # the list has what passes
    ]
    lines = agent_of(run, report.code, excused=excused)
    assert lines[0] == "FAIL: 2 failed, 1 failed as expected, 2 passed, 1 skipped in 0ms"
    assert [line.partition("  # ")[2].partition(":")[0] for line in lines[1:]] == [
        "elicitation",
        "initialize",
    ]
    assert all("--scenario" in line.partition("#")[0] for line in lines[1:])
    found = results_of(report.as_problems())
    assert [("suppressions" in one, one["ruleId"]) for one in found] == [
        (True, "b"),
        (False, "c"),
        (False, "conformance/stale"),
    ]


def test_a_failure_that_is_not_listed_is_not_excused() -> None:
    report = conformance(*ALL, compared=Compared(new=("tools_call:b",)))
    run, excused = report.run_and_excuses()
    assert excused == {}
    assert [one.directive for one in tap_of(run, excused) if not one.ok] == [""]
    assert not any("suppressions" in one for one in results_of(report.as_problems()))


@EACH
def test_what_a_client_says_breaks_no_form(text: str) -> None:
    hostile = scenario(
        text,
        check(text, CheckStatus.FAILURE, text, references=(Reference(text, text),)),
        check("w", CheckStatus.WARNING, text),
        cause=text,
        stderr=text[:2_000],
    )
    compared = Compared(new=(text, f"{text}:w"), stale=(text,))
    for more in ({}, {"compared": compared}):
        report = conformance(hostile, GOOD, notes=(text,), **more)
        results_of(report.as_problems())
        run, excused = report.run_and_excuses()
        tap_of(run, excused)
        agent_of(run, excused=excused)


# -- lint ----------------------------------------------------------------------------------------


def finding(code: str, item: str, severity: LintSeverity, message: str = "wrong") -> LintFinding:
    return LintFinding("tool", item, code, severity, "title", message, field="description")


def test_lint_findings_are_alerts_also_where_they_are_warnings() -> None:
    codes = [rule.code for rule in all_lint_rules()]
    error, warning = (next(c for c in codes if c[0] == letter) for letter in "EW")
    report = LintReport(
        server="s",
        transport="stdio",
        findings=(
            finding(error, "search", LintSeverity.ERROR),
            finding(warning, "search", LintSeverity.WARNING),
        ),
        problems={"prompts/list": "it never answered"},
    )
    unread, first, second = results_of(report.as_problems())
    assert [one["level"] for one in (unread, first, second)] == ["error", "error", "warning"]
    assert uri(first) == "mcp/tool/search"
    assert uri(results_of(problems_about("tools.json", report))[1]) == "tools.json"
    (run,) = checked(sarif.render(report.as_problems()), "sarif-2.1.0")["runs"]
    assert f"mcptest explain {error}" in run["tool"]["driver"]["rules"][1]["help"]["text"]


@EACH
def test_what_a_linted_server_says_breaks_no_form(text: str) -> None:
    code = all_lint_rules()[0].code
    found = finding(code, text, LintSeverity.ERROR, text)
    report = LintReport(server=text, findings=(found, found), problems={text: text}, notes=(text,))
    results_of(problems_about(text, report))


def test_of_many_findings_the_gravest_are_shown() -> None:
    codes = [rule.code for rule in all_lint_rules()]
    error, warning = (next(c for c in codes if c[0] == letter) for letter in "EW")
    warnings = [finding(warning, f"tool-{n}", LintSeverity.WARNING) for n in range(1_200)]
    last = finding(error, "last", LintSeverity.ERROR, "the only error")
    report = LintReport(server="s", findings=(*warnings, last))
    text = list(report.lines(Style()))
    assert any("the only error" in line for line in text)
    assert "… and 201 more findings: --json has them all" in text
    assert sum(warning in line for line in text) - 1 == 999  # one line has the totals
    assert "the only error" in report.as_markdown()
    errors = [finding(error, f"tool-{n}", LintSeverity.ERROR) for n in range(1_100)]
    text = list(LintReport(server="s", findings=(*warnings, *errors)).lines(Style()))
    assert "… and 1300 more findings, 100 of them errors: --json has them all" in text


# -- codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "failed", "verdict"),
    [
        (RunReport(results=(READ,)), False, "PASS"),
        (RunReport(results=(READ,)), True, "FAIL"),
        (RunReport(results=(SUM,)), False, "PASS"),
        (RunReport(results=(SKIPPED,)), False, "NOTHING RAN"),
        (RunReport(results=(SUM,), interrupted=True), True, "INTERRUPTED"),
    ],
)
def test_the_verdict_follows_from_the_results(
    capfdbinary: pytest.CaptureFixture[bytes], run: RunReport, failed: bool, verdict: str
) -> None:
    _say_run(argparse.Namespace(format="agent", json=False), run, RunEnding(), failed=failed)
    assert capfdbinary.readouterr().out.decode().startswith(f"{verdict}: ")


def test_the_hostile_texts_are_many() -> None:
    assert len(HOSTILE) > 15
    assert tap.render(RunReport(results=(READ,))).count(b"\n") == 3
