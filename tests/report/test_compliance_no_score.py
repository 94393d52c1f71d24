"""Where too little was observed for a letter there is no score either, in any report."""

from __future__ import annotations

import json

from mcptest.report.codec import as_json
from mcptest.report.compliance.compliance_report import ComplianceReport
from mcptest.report.compliance.text import compliance_lines
from mcptest.report.html.building import page_of
from mcptest.report.terminal import Style
from mcptest.rules.grading import min_grade_gate
from tests.support.compliance_results import INCONCLUSIVE, judgement, result, results


def hardly_seen() -> ComplianceReport:
    """One rule passes; a server that died kept all others from being judged."""
    dead = [result(f"X-{n}", INCONCLUSIVE, cause="exited") for n in range(60)]
    return ComplianceReport(server="x", judgements=(judgement(*results(1), *dead),))


def test_the_json_report_has_no_score_without_a_letter_and_says_why() -> None:
    grade = json.loads(as_json(hardly_seen()))["judgements"][0]["grade"]
    assert (grade["letter"], grade["score"]) == ("", 0)
    assert grade["caps"][0].startswith("no letter: ")


def test_no_other_report_shows_a_score() -> None:
    report = hardly_seen()
    text = "\n".join(compliance_lines(report, Style(colour=False, unicode=False)))
    for page in (text, report.as_markdown(), page_of(report).decode()):
        assert "of 100" not in page
        assert "not graded: too few rules were observed" in page


def test_the_gate_names_no_score_either() -> None:
    gate = min_grade_gate("A", hardly_seen().judgements[0])
    assert not gate.passed
    assert gate.detail == "no letter, required A"
