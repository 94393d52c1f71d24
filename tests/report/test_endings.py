"""The last line of a report and its exit code say the same, whatever kind of report it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from mcptest.core.errors import ExitCode
from mcptest.core.results import Demand, Regression, RunReport
from mcptest.core.revision import Revision
from mcptest.core.scenario_outcome import CheckResult, CheckStatus, Compared, ScenarioResult
from mcptest.core.verdict import Outcome, Severity, Side
from mcptest.report import run_results
from mcptest.report.audit import AuditedTool, AuditReport, Health
from mcptest.report.conformance import ConformanceReport
from mcptest.report.coverage import CoverageKinds, CoverageReport, CoveredItem, KindCoverage
from mcptest.report.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.report.fuzz import FuzzedTool, FuzzReport
from mcptest.report.html.building import page_of
from mcptest.report.property import PropertyReport, PropertyResult
from mcptest.report.terminal import Style
from mcptest.report.verdicts import SessionReport, SessionsReport
from tests.html.test_stored_kinds import AUDIT, DOCTOR, FUZZ, LINT, PROPERTY, WELL_AUDITED, WHO
from tests.report.test_verdicts import ADVICE, RULE, UNCHECKED
from tests.support.sample_compliance import (
    EXITED,
    HEALTHY,
    ONE_RULE,
    SAMPLE,
    judgement,
    report_of,
    rule_result,
    several_revisions,
)
from tests.support.sample_run import READ, RUN, SKIPPED, SUM

FAILURE = re.compile(
    r"failed: |failed with|interrupted|nothing |below the required|more than the \d+ allowed|"
    r"\b[1-9]\d* (?:"
    r"(?:[A-Za-z]+ ){0,3}failed(?! as expected)|with findings|returned an invalid response|"
    r"crash(?:ed|es)?|timed out|errors?|breaking|counterexamples?|hangs?|leaks?|regressions?|"
    r"not reached|not run|not checked|lists? not read|rules? could not be judged|"
    r"with a schema too complex|too expensive|"
    r"requests without|unreachable|not judged|composition hazards?|hazards? between|"
    r"expected failures? passed"
    r")"
)
MAY = rule_result("TOOLS-001", Outcome.FAIL, severity=Severity.MAY)
SHOULD = rule_result("TOOLS-002", Outcome.FAIL, severity=Severity.SHOULD)


def sessions(*verdicts: Any, code: int, strict: bool = False) -> SessionsReport:
    session = SessionReport("s", "s.jsonl", "full", None, None, "handshake", 1, True, verdicts)
    return SessionsReport(
        tool="t", command="c", exit_code=code, sessions=(session,), composition=(), strict=strict
    )


def conformance(*statuses: CheckStatus, **more: Any) -> ConformanceReport:
    results = tuple(
        ScenarioResult(
            scenario=f"s{number}",
            side=Side.SERVER,
            revision=Revision.V2025_11_25,
            transport="stdio",
            checks=(CheckResult(id="c", name="c", description="it works", status=status),),
        )
        for number, status in enumerate(statuses)
    )
    return ConformanceReport(side=Side.SERVER, subject="x", results=results, **more)


def coverage(*items: CoveredItem, **more: Any) -> CoverageReport:
    return CoverageReport(server="x", kinds=CoverageKinds(tools=KindCoverage(items=items)), **more)


def fleet(*outcomes: ServerOutcome, code: ExitCode) -> FleetReport:
    servers = tuple(FleetServer(name=one.value, outcome=one) for one in outcomes)
    return FleetReport(config="c.json", exit_code=code, servers=servers)


FINDING = AuditedTool(name="count_words", health=Health.HEALTHY, worked=True, findings=("wrong",))
WARNED = replace(LINT, findings=LINT.findings[1:])
TRIED = PropertyReport(**WHO, properties=(PropertyResult(name="messages", examples=10),))
COVERED, BARE = CoveredItem("a", 1), CoveredItem("b")
PASSES, FAILS = CheckStatus.SUCCESS, CheckStatus.FAILURE
REPORTS = {
    "audit": AUDIT,
    "audit passed": WELL_AUDITED,
    "audit with a finding": AuditReport(**WHO, tools=(FINDING,)),
    "audit below its score": replace(WELL_AUDITED, tools=(FINDING,), min_score=50),
    "audit of nothing": AuditReport(**WHO),
    "audit that was not ended": replace(WELL_AUDITED, unreached=3),
    "fuzz": FUZZ,
    "fuzz passed": replace(FUZZ, tools=FUZZ.tools[:1]),
    "fuzz of a schema that can't be checked": replace(
        FUZZ, tools=(FuzzedTool(name="bomb", runs=1, passed=1, unchecked="it is too deep"),)
    ),
    "fuzz of nothing": FuzzReport(**WHO),
    "lint": LINT,
    "lint with warnings": WARNED,
    "lint with warnings that count": replace(WARNED, strict=True),
    "lint with too many warnings": replace(WARNED, threshold=0),
    "lint of an unreadable list": replace(WARNED, findings=(), problems={"tools/list": "no"}),
    "property": PROPERTY,
    "property that holds": TRIED,
    "property with a list that has no end": replace(TRIED, problems=("tools/list has no end",)),
    "doctor": DOCTOR,
    "doctor with nothing broken": replace(DOCTOR, items=DOCTOR.items[1:]),
    "doctor of a silent server": replace(DOCTOR, items=DOCTOR.items[1:], unanswered=("ping",)),
    "compliance": SAMPLE,
    "compliance passed": HEALTHY,
    "compliance with one rule": ONE_RULE,
    "compliance in several revisions": several_revisions(),
    "compliance with a cause only": report_of(judgement(results=(), causes=(EXITED,), grade=None)),
    "compliance with warnings": report_of(
        judgement(results=(MAY, SHOULD), causes=()), exit_code=0, strict=False
    ),
    "compliance with warnings that count": report_of(
        judgement(results=(MAY, SHOULD), causes=()), strict=True
    ),
    "compliance interrupted": replace(SAMPLE, exit_code=ExitCode.INTERRUPTED),
    "sessions": sessions(RULE, code=1),
    "sessions with advice": sessions(ADVICE, code=0),
    "sessions with advice that counts": sessions(ADVICE, code=1, strict=True),
    "sessions that could not be checked": sessions(UNCHECKED, code=1),
    "conformance": conformance(PASSES, FAILS),
    "conformance passed": conformance(PASSES, PASSES),
    "conformance failed as expected": conformance(
        PASSES, FAILS, compared=Compared(expected=("s1",))
    ),
    "conformance with a new failure": conformance(PASSES, FAILS, compared=Compared(new=("s1",))),
    "conformance with a stale entry": conformance(PASSES, compared=Compared(stale=("s0",))),
    "conformance with an endless list": conformance(PASSES, problems=("tools/list has no end",)),
    "coverage": coverage(COVERED, BARE),
    "coverage below": coverage(COVERED, BARE, threshold=80.0),
    "coverage of an unreadable list": coverage(COVERED, problems=("tools/list: no",)),
    "fleet": fleet(ServerOutcome.PASSED, ServerOutcome.DISABLED, code=ExitCode.OK),
    "fleet failed": fleet(ServerOutcome.FAILED, code=ExitCode.FAILED),
    "fleet not reached": fleet(ServerOutcome.UNREACHABLE, code=ExitCode.UNREACHABLE),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_summary_says_failed_where_the_exit_code_does(name: str) -> None:
    report = REPORTS[name]
    bad = report.code is not ExitCode.OK
    text = "\n".join(report.lines(Style())).partition("\nNext steps:")[0]
    last = [line for line in text.splitlines() if line and not line.startswith("--")][-1]
    endings = [report.in_words(), last]
    if not isinstance(report, SessionsReport):  # which has no Markdown of its own
        endings.append("\n".join(report.as_markdown().splitlines()[:6]))
    for ending in endings:
        plain = re.sub(r"&#\d+;|</?code>|\*", " ", ending).partition("(checks:")[0]
        assert bool(FAILURE.search(plain)) == bad, ending


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (RunReport(results=(READ,)), "1 test, 1 passed in 0ms"),
        (RUN, "4 tests, 1 passed, 2 failed, 1 skipped in 1.5s"),
        (
            RunReport(results=(READ, SKIPPED), regressions=(Regression("x", "PASS", "SKIP"),)),
            "2 tests, 1 passed, 1 skipped, 1 regression in 0ms",
        ),
        (
            RunReport(results=(READ, SUM), demand=Demand(50, False)),
            "2 tests, 1 passed, 1 failed (50% required) in 0ms",
        ),
    ],
)
def test_the_summary_of_a_run_has_every_reason_to_fail(run: RunReport, said: str) -> None:
    assert run_results.summary(run, Style()) == said


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_says_failed_where_the_exit_code_does(name: str) -> None:
    report = REPORTS[name]
    page = page_of(report).partition(b'id="page">')[2].partition(b"</script>")[0]
    verdict = json.loads(page)["verdict"]
    begins = {ExitCode.OK: "Passed", ExitCode.FAILED: "Failed", ExitCode.INTERRUPTED: "Interrupted"}
    assert verdict.startswith(begins.get(report.code, ("Nothing", "The server or client")))
    if report.code is ExitCode.OK and "expected" not in name:
        assert "fail" not in verdict


def test_a_tool_with_a_finding_neither_passes_nor_counts_as_working() -> None:
    report = AuditReport(**WHO, tools=(FINDING, replace(FINDING, name="good", findings=())))
    text = "\n".join(report.lines(Style()))
    assert "✗ count_words  1 finding" in text
    assert report.in_words() == "score 50% (1 of 2 passed): 1 with findings"
    assert report.code is ExitCode.FAILED


def test_a_judgement_without_a_grade_has_no_empty_word_in_its_summary() -> None:
    report = report_of(judgement(results=(), causes=(EXITED,), grade=None))
    assert report.in_words().startswith("v2025-11-25: 1 rule could not be judged\n")
