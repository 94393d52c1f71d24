"""The step summary of a judged server, which shows a peer's text and never obeys it."""

from __future__ import annotations

import re

import pytest

from mcptest.core.verdict import Outcome
from tests.report.test_markdown import STEP_SUMMARY, outside_fences, rows
from tests.report.test_run_results import is_harmless
from tests.support.sample_compliance import (
    HEALTHY,
    ONE_RULE,
    SAMPLE,
    STRUCTURED,
    hostile_report,
    judgement,
    report_of,
    rule_result,
    several_revisions,
)
from tests.support.sample_run import HOSTILE


def test_the_heading_tells_the_grade_and_what_is_red() -> None:
    text = SAMPLE.as_markdown()
    why = "1 MUST rule failed, 1 rule could not be judged, 1 gate failed"
    assert text.startswith(f"### mcptest compliance: grade B+, failed: {why}\n\n")
    assert HEALTHY.as_markdown().startswith("### mcptest compliance: grade A+, passed\n")


def test_the_facts_the_gates_and_the_failures_are_tables() -> None:
    found = rows(SAMPLE.as_markdown())
    facts = next(row for row in found if "**B+**" in row)
    for fact in ("my-server", "weather 2.1.0", "2025-11-25", "87.3 of 100", "57.1%", "3f9ab2c1"):
        assert fact in facts
    assert any("<code>grade_delta</code> | ❌ FAIL |" in row for row in found)
    assert any(row.startswith("| ❌ | <code>TOOLS-004</code> | MUST |") for row in found)
    assert any(row.startswith("| ⚠️ | <code>PROTO-005</code> | SHOULD |") for row in found)


def test_proof_and_what_to_do_stand_in_fences() -> None:
    text = SAMPLE.as_markdown()
    assert f"\nsent: {STRUCTURED.evidence[0].sent}\n" in text
    assert f"\nfix: {STRUCTURED.fix}\nrepeat: {STRUCTURED.repeat}\n```\n" in text
    assert "the server exited with code 1 after resources/read\n" in text
    assert text.count("<details>") == text.count("</details>")


def test_what_was_not_observed_is_listed_by_what_would_unlock_it() -> None:
    text = SAMPLE.as_markdown()
    assert "<summary>Not observed, by what is needed to observe them (2)</summary>" in text
    assert "- <code>the fixture embedding_tool</code>: <code>TOOLS-012</code>\n" in text
    assert "<summary>Inconclusive, by cause (1)</summary>" in text


def test_a_healthy_server_has_no_table_of_failures() -> None:
    text = HEALTHY.as_markdown()
    assert "| | Rule | | Requirement |" not in text
    assert "5 passed" in text


def test_rules_without_a_grade_say_why() -> None:
    assert "not graded: only some rules were selected" in ONE_RULE.as_markdown()


def test_several_revisions_are_a_matrix() -> None:
    text = several_revisions().as_markdown()
    assert "| | 2024-11-05 | 2025-06-18 | 2025-11-25 | |\n" in text
    assert "| grade | A+ | B+ | B+ | |\n" in text
    row = next(one for one in rows(text) if one.startswith("| <code>TOOLS-004</code>"))
    assert [cell.strip() for cell in row.split("|")[2:5]] == ["", "❌", "❌"]
    assert "fails in 2025-06-18, 2025-11-25\n" in text
    assert "1 MUST rule failed" in text.splitlines()[0]


def test_every_row_has_as_many_cells_as_its_heading() -> None:
    for report in (SAMPLE, several_revisions(), hostile_report(HOSTILE[8], revisions=3)):
        width = 0
        for line in outside_fences(report.as_markdown()):
            if line.startswith("|---"):
                width = line.count("|")
            elif line.startswith("| ") and width:
                assert line.count("|") == width, line
            elif not line:
                width = 0


def test_it_fits_a_step_summary_whatever_there_is() -> None:
    loud = "<" * 5_000
    failed = tuple(
        rule_result(f"TOOLS-{n}", Outcome.FAIL, title=loud, requirement=loud, fix=loud)
        for n in range(3_000)
    )
    text = report_of(judgement(results=failed), judgement(results=failed)).as_markdown()
    assert len(text.encode()) < STEP_SUMMARY
    assert re.search(r"and \d+ more", text)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("revisions", [1, 3])
def test_no_text_of_a_peer_means_anything(number: int, revisions: int) -> None:
    text = hostile_report(HOSTILE[number], revisions=revisions).as_markdown()
    assert is_harmless(text.replace("#### ", "").replace("### ", "", 1))
    seen = "\n".join(outside_fences(text))
    assert "<script" not in seen
    assert "](" not in seen
    assert "@octocat" not in seen
    assert "<!-- <" not in seen
    assert "# owned" not in seen.splitlines()
    assert seen.count("<code>") == seen.count("</code>")
    assert seen.count("<details>") == seen.count("</details>")
