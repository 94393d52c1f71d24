"""The gate on how a grade moved: what regressed, what is new, what was judged by other rules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcptest.core.judgement import Judgement, Scorecard, scorecard_of
from mcptest.core.revision import Revision
from mcptest.rules.grading import delta_facts, judge_grade_delta
from mcptest.suite.lane_blocks import GRADE_TARGETS, GradeDelta
from mcptest.suite.model import Expectation
from tests.support.compliance_results import (
    FAIL,
    NOT_APPLICABLE,
    PASS,
    SHOULD,
    UNSEEN,
    judgement,
    result,
    results,
)

LOGGED = result("LOG-1", section="logging")
GOOD = judgement(*results(40), LOGGED)
WORSE = judgement(*results(40), result("LOG-1", FAIL, section="logging"))
DEFAULT = GradeDelta("card.json")


def card_of(judged: Judgement) -> Scorecard:
    assert judged.grade is not None
    return scorecard_of(judged, judged.grade, "s")


def asking(target: str, matcher: dict[str, Any]) -> GradeDelta:
    return GradeDelta("card.json", (Expectation(target, matcher),))


def facts(now: Judgement, before: Judgement) -> dict[str, Any]:
    assert now.grade is not None
    return delta_facts(now.grade, card_of(before))


def test_the_first_run_passes_with_a_note() -> None:
    found = judge_grade_delta(DEFAULT, WORSE, None)
    assert (found.name, found.passed) == ("grade_delta", True)
    assert found.detail == "B+ (97.5); no scorecard to compare with yet"


def test_what_needs_no_scorecard_is_judged_in_the_first_run_too() -> None:
    floor = asking("score", {"minimum": 99})
    assert judge_grade_delta(floor, GOOD, None).passed
    found = judge_grade_delta(floor, WORSE, None)
    assert not found.passed
    assert found.lines[0].startswith("score: ")
    relative = GradeDelta("card.json", (*floor.expect, *DEFAULT.expect))
    assert judge_grade_delta(relative, GOOD, None).passed


def test_the_same_grade_passes() -> None:
    found = judge_grade_delta(DEFAULT, GOOD, card_of(GOOD))
    assert found.passed
    assert found.detail == "A+ (100.0), unchanged"
    assert found.lines == ()


def test_a_better_grade_passes() -> None:
    found = judge_grade_delta(DEFAULT, GOOD, card_of(WORSE))
    assert found.passed
    assert found.detail == "B+ (97.5) -> A+ (100.0)"


def test_a_regression_fails_and_says_what_regressed() -> None:
    found = judge_grade_delta(DEFAULT, WORSE, card_of(GOOD))
    assert not found.passed
    assert found.detail == "A+ (100.0) -> B+ (97.5)"
    assert "section logging: A+ (100.0) -> F (0.0)" in found.lines
    assert "LOG-1 fails; before: pass" in found.lines
    assert any(line.startswith("grade_regressed: ") for line in found.lines)
    assert any(line.startswith("regressed_sections: ") for line in found.lines)


def test_the_facts_are_the_targets_that_a_block_may_name() -> None:
    assert set(facts(GOOD, WORSE)) == set(GRADE_TARGETS)
    assert facts(WORSE, GOOD) == {
        "grade": "B+",
        "score": 97.5,
        "grade_regressed": True,
        "regressed_sections": ["logging"],
    }


def test_a_section_can_regress_within_the_same_letter() -> None:
    shoulds = [result(f"S-{n}", section="logging", severity=SHOULD) for n in range(4)]
    one, two = (
        judgement(
            *results(40), *shoulds, *(result(f"F-{n}", FAIL, SHOULD, "http") for n in range(count))
        )
        for count in (1, 2)
    )
    found = facts(two, one)
    assert (found["grade_regressed"], found["regressed_sections"]) == (False, [])
    more = judgement(*two.results, result("G-1", PASS, SHOULD, "http"))
    assert facts(two, more)["regressed_sections"] == ["http"]
    assert not judge_grade_delta(DEFAULT, two, card_of(more)).passed


def test_a_section_of_which_nothing_is_seen_any_more_has_regressed() -> None:
    blind = judgement(*results(40), result("LOG-1", UNSEEN, section="logging"))
    found = judge_grade_delta(DEFAULT, blind, card_of(GOOD))
    assert not found.passed
    assert "section logging: A+ (100.0) -> nothing observed" in found.lines


def test_a_section_that_does_not_apply_any_more_has_not_but_is_told() -> None:
    without = judgement(*results(40), result("LOG-1", NOT_APPLICABLE, section="logging"))
    found = judge_grade_delta(DEFAULT, without, card_of(GOOD))
    assert found.passed
    assert found.lines == ("section logging: no longer applies",)


def test_a_server_that_lost_its_letter_has_regressed() -> None:
    little = judgement(*results(5))
    assert facts(little, WORSE)["grade_regressed"] is True
    assert facts(WORSE, little)["grade_regressed"] is False
    found = judge_grade_delta(asking("grade", {"one_of": ["A", "B+"]}), little, card_of(WORSE))
    assert not found.passed
    assert "grade is not known" in found.lines[0]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (judgement(*GOOD.results, corpus="beef"), "the corpus changed: c0ffee -> beef"),
        (judgement(*GOOD.results, tool="2.0"), "the version of mcptest changed: 1.0 -> 2.0"),
        (
            judgement(*GOOD.results, revision=Revision.V2026_07_28),
            "the scorecard is for v2025-11-25, this run for v2026-07-28",
        ),
        (judgement(*GOOD.results, transport="http"), "over stdio, this run is over http"),
    ],
)
def test_a_grade_that_was_given_by_something_else_is_told(now: Judgement, said: str) -> None:
    found = judge_grade_delta(DEFAULT, now, card_of(GOOD))
    assert found.passed
    assert any(said in line and line.startswith("note: ") for line in found.lines)


def test_a_rule_that_the_scorecard_did_not_have_is_told_from_one_that_broke() -> None:
    newer = judgement(*GOOD.results, result("NEW-1", FAIL), corpus="beef")
    found = judge_grade_delta(DEFAULT, newer, card_of(GOOD))
    assert not found.passed
    assert "NEW-1 fails; before: not in the scorecard" in found.lines


def test_a_run_of_some_rules_can_not_pass_the_gate() -> None:
    some = msgspec.structs.replace(GOOD, grade=None, whole_corpus=False)
    for before in (None, card_of(GOOD)):
        found = judge_grade_delta(DEFAULT, some, before)
        assert not found.passed
        assert found.detail == "no grade: only some rules were selected"
