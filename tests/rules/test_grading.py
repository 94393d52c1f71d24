"""The grade: what moves the score, what caps the letter, and when there is none."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.judgement import RuleResult
from mcptest.core.revision import TIMELINE
from mcptest.core.verdict import Outcome, Severity
from mcptest.rules.corpus.reader import corpus_of, shipped_registry
from mcptest.rules.grading import (
    CAP_BY_BROKEN_MUSTS,
    CUT_OFFS,
    LETTERS,
    MUSTS_FOR_A_LETTER,
    RULES_FOR_A_LETTER,
    WEIGHTS,
    basic_rules,
    grade,
    letter_of,
    rank,
    score_of,
    shown_harmless_by,
)
from tests.support.compliance_results import (
    FAIL,
    INCONCLUSIVE,
    MAY,
    MUST,
    NOT_APPLICABLE,
    PASS,
    SHOULD,
    UNSEEN,
    result,
    results,
)

BASIC = basic_rules()
SECTIONS = ("tools", "lifecycle", "http")
IDS = st.sampled_from([*BASIC, "TOOLS-001", "TOOLS-002", "RES-101", "LOG-001"])
MIXED = st.lists(
    st.builds(
        RuleResult,
        id=IDS,
        title=st.just("a title"),
        section=st.sampled_from(SECTIONS),
        severity=st.sampled_from(Severity),
        outcome=st.sampled_from(Outcome),
        cause=st.sampled_from(("", "exited")),
    ),
    max_size=60,
)
RESULTS = st.builds(
    lambda passes, mixed: results(passes) + mixed, st.sampled_from((0, 40, 400)), MIXED
)
"""Any results at all, often after so many passes that there is a letter."""


def test_everything_observed_and_passed_is_a_plus() -> None:
    given = [*results(30), *results(10, severity=SHOULD)]
    found = grade(given)
    assert (found.letter, found.score, found.caps) == ("A+", 100.0, ())


def test_the_score_is_the_weighted_share_of_what_passed() -> None:
    given = [*results(3), *results(1, FAIL), *results(2, PASS, SHOULD), *results(1, FAIL, MAY)]
    gained = 3 * WEIGHTS[MUST] + 2 * WEIGHTS[SHOULD]
    possible = gained + WEIGHTS[MUST] + WEIGHTS[MAY]
    assert score_of(given) == pytest.approx(100 * gained / possible, abs=0.1)


def test_a_score_is_never_rounded_up_to_100() -> None:
    assert score_of([*results(5000), *results(1, FAIL, MAY)]) == 99.9


def test_failed_shoulds_alone_never_cost_the_a() -> None:
    given = [*results(60), *results(20, FAIL, SHOULD)]
    assert grade(given).letter == "A-"
    assert grade(given).caps == ()


@pytest.mark.parametrize(
    ("broken", "letter"), [(1, "B+"), (2, "B+"), (3, "C+"), (5, "C+"), (6, "D+"), (20, "D+")]
)
def test_failed_musts_cap_the_letter_by_their_number(broken: int, letter: str) -> None:
    found = grade([*results(2000), *results(broken, FAIL)])
    assert found.score > CUT_OFFS["A"]
    assert found.letter == letter
    assert found.caps[0].startswith(f"at best {letter}: {broken} MUST rule")


def test_any_failed_must_caps_below_every_a() -> None:
    assert min(CAP_BY_BROKEN_MUSTS) == 1
    assert all(rank(cap) > rank("A-") for cap in CAP_BY_BROKEN_MUSTS.values())


@pytest.mark.parametrize("rule", BASIC)
def test_a_failure_of_the_basic_protocol_is_f(rule: str) -> None:
    found = grade([*results(500), result(rule, FAIL)])
    assert found.letter == "F"
    assert found.caps[0] == f"F: {rule} is part of the basic protocol: {BASIC[rule]}"
    assert found.score > 99


def test_a_failure_of_the_basic_protocol_is_f_however_little_was_seen() -> None:
    assert grade([result("PROTO-001", FAIL), *results(100, UNSEEN)]).letter == "F"


def test_a_stray_answer_is_no_f_where_every_request_was_answered() -> None:
    """The Python SDK 1.x has an id of its own for what it can't read: nobody waits for that."""
    answered = [*results(500), result("MSG-006", FAIL), result("MSG-009", PASS)]
    assert grade(answered).letter == CAP_BY_BROKEN_MUSTS[1]
    waiting = [*results(500), result("MSG-006", FAIL), result("MSG-009", INCONCLUSIVE)]
    assert grade(waiting).letter == "F"


def test_a_rule_that_shows_a_basic_failure_harmless_exists() -> None:
    assert set(shown_harmless_by()) <= set(BASIC)
    assert set(shown_harmless_by().values()) <= set(shipped_registry())


def test_a_basic_rule_that_is_only_recommended_is_no_f() -> None:
    assert grade([*results(100), result("MSG-001", FAIL, SHOULD)]).letter == "A"


def test_every_basic_rule_is_a_must_of_some_corpus() -> None:
    corpora = [corpus for corpus in map(corpus_of, TIMELINE) if corpus is not None]
    for name in BASIC:
        found = [corpus.rules[name] for corpus in corpora if name in corpus.rules]
        assert found, name
        assert all(rule.severity is MUST for rule in found), name


def test_every_corpus_has_basic_rules() -> None:
    for corpus in map(corpus_of, TIMELINE):
        assert corpus is not None
        assert len(BASIC.keys() & corpus.rules.keys()) >= 4, corpus.version


def test_musts_that_a_root_cause_kept_from_being_judged_cap_the_letter() -> None:
    unjudged = [result(f"X-{n}", INCONCLUSIVE, cause="exited") for n in range(3)]
    found = grade([*results(100), *unjudged])
    assert found.letter == "B+"
    assert found.caps == ("at best B+: 3 MUST rules could not be judged",)
    assert found.score == 100.0


@pytest.mark.parametrize(
    "harmless",
    [
        result("X-1", INCONCLUSIVE),
        result("X-1", INCONCLUSIVE, SHOULD, cause="exited"),
        result("X-1", UNSEEN),
        result("X-1", NOT_APPLICABLE),
    ],
)
def test_other_rules_that_were_not_judged_do_not(harmless: RuleResult) -> None:
    assert grade([*results(100), harmless]).letter == "A+"


def test_a_plus_needs_half_of_the_applicable_rules() -> None:
    seen = results(40)
    assert grade([*seen, *results(40, UNSEEN)]).letter == "A+"
    found = grade([*seen, *results(41, UNSEEN)])
    assert found.letter == "A"
    assert found.caps == ("at best A: 40 of 81 applicable rules were observed",)


def test_what_does_not_apply_is_no_gap() -> None:
    assert grade([*results(40), *results(500, NOT_APPLICABLE)]).letter == "A+"


@pytest.mark.parametrize(
    "given",
    [
        [],
        results(100, INCONCLUSIVE),
        [*results(RULES_FOR_A_LETTER - 1), *results(30, INCONCLUSIVE)],
        [*results(MUSTS_FOR_A_LETTER - 1), *results(50, PASS, SHOULD)],
        [*results(20), *results(81, UNSEEN)],
    ],
)
def test_too_little_observed_is_no_letter(given: list[RuleResult]) -> None:
    found = grade(given)
    assert found.letter == ""
    [why] = found.caps
    assert why.startswith("no letter: ")


def test_a_server_that_fell_silent_gets_no_letter_for_its_handshake() -> None:
    seen = [result(f"X-{n}", PASS) for n in range(40)]
    lost = [result(f"Y-{n}", INCONCLUSIVE, cause="silence") for n in range(11)]
    assert grade([*seen, *lost[:10]]).letter == "B+"
    found = grade([*seen, *lost])
    assert found.letter == ""
    assert "11 MUST rules could not be judged and 40 were observed" in found.caps[0]


def test_a_server_that_answered_nothing_gets_no_grade_and_no_points() -> None:
    dead = [result(f"X-{n}", INCONCLUSIVE, cause="exited") for n in range(150)]
    found = grade(dead)
    assert (found.letter, found.score) == ("", 0.0)
    assert "0 of 150 applicable rules were observed" in found.caps[0]


def test_sections_have_scores_and_letters_of_their_own() -> None:
    found = grade(
        [
            *results(30),
            result("A-1", FAIL, section="logging"),
            result("A-2", section="logging"),
            result("A-3", UNSEEN, section="logging"),
            result("B-1", UNSEEN, section="prompts"),
            result("C-1", NOT_APPLICABLE, section="tasks"),
        ]
    )
    by_name = {one.section: one for one in found.sections}
    assert list(by_name) == ["logging", "prompts", "tools"]
    logging = by_name["logging"]
    assert (logging.grade, logging.score) == ("F", 50.0)
    assert (logging.passed, logging.failed, logging.not_observed) == (1, 1, 1)
    assert (by_name["prompts"].grade, by_name["prompts"].not_observed) == ("", 1)
    assert (by_name["tools"].grade, by_name["tools"].score) == ("A+", 100.0)


@pytest.mark.parametrize(
    ("score", "letter"),
    [(100, "A+"), (99.9, "A"), (95, "A"), (94.9, "A-"), (87, "B+"), (60, "D-"), (59.9, "F")],
)
def test_cut_offs(score: float, letter: str) -> None:
    assert letter_of(score) == letter


def test_no_letter_ranks_below_every_letter() -> None:
    assert sorted(["F", "", "A", "A+", "B-"], key=rank) == ["A+", "A", "B-", "F", ""]


def changed(given: list[RuleResult], at: int, outcome: Outcome) -> list[RuleResult]:
    old = given[at]
    new = RuleResult(old.id, old.title, old.section, old.severity, outcome, cause=old.cause)
    return [*given[:at], new, *given[at + 1 :]]


@given(RESULTS, st.data())
def test_repairing_a_failure_never_lowers_score_or_letter(
    given: list[RuleResult], data: st.DataObject
) -> None:
    failing = [at for at, one in enumerate(given) if one.failed]
    if not failing:
        return
    before = grade(given)
    after = grade(changed(given, data.draw(st.sampled_from(failing)), PASS))
    assert after.score >= before.score
    # An F for the basic protocol stands however little was seen, so its repair may leave no letter.
    if after.letter:
        assert rank(after.letter) <= rank(before.letter)


@given(RESULTS, st.sampled_from([UNSEEN, NOT_APPLICABLE, INCONCLUSIVE]), st.sampled_from(Severity))
def test_what_was_not_judged_never_moves_the_score_and_never_lifts_the_letter(
    given: list[RuleResult], outcome: Outcome, severity: Severity
) -> None:
    before = grade(given)
    after = grade([*given, result("NEW-001", outcome, severity, cause="exited")])
    assert after.score == before.score
    assert not after.letter or rank(after.letter) >= rank(before.letter)


@given(RESULTS)
def test_a_grade_is_always_well_formed_and_no_better_than_its_score(
    given: list[RuleResult],
) -> None:
    found = grade(given)
    assert 0 <= found.score <= 100
    assert found.letter in {"", *LETTERS}
    if found.letter:
        assert rank(found.letter) >= rank(letter_of(found.score))
        assert bool(found.caps) == (found.letter != letter_of(found.score))
    broken = any(one.failed and one.severity is MUST for one in given)
    assert not (broken and found.letter.startswith("A"))


@given(RESULTS, st.randoms(use_true_random=False))
def test_the_order_of_the_results_does_not_count(
    given: list[RuleResult], chance: random.Random
) -> None:
    shuffled = list(given)
    chance.shuffle(shuffled)
    assert grade(shuffled) == grade(given)
