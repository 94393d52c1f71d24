"""The baseline: what is red, what is known, what is flaky, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.judgement import PastRun
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.report.scorecards import RUNS_KEPT, history_beside, read_history, save_history
from mcptest.rules.corpus.known_failures import (
    RUNS_FOR_A_RATE,
    KnownFailure,
    KnownFailures,
    hold_against,
    known_failures_from,
    load_known_failures,
)
from mcptest.suite.reading import SuiteError, SuiteProblem, parse_yaml
from tests.support.compliance_results import (
    FAIL,
    INCONCLUSIVE,
    NEWEST,
    NOT_APPLICABLE,
    PASS,
    SHOULD,
    UNSEEN,
    judgement,
    result,
)

OTHER = Revision.V2026_07_28


def load(folder: Path, text: str, **more: object) -> KnownFailures:
    path = folder / "known.yml"
    path.write_text(text)
    return load_known_failures(path, **more)  # type: ignore[arg-type]  # passed on


def problems(folder: Path, text: str) -> list[SuiteProblem]:
    with pytest.raises(SuiteError) as caught:
        load(folder, text)
    assert caught.value.exit_code is ExitCode.USAGE
    return list(caught.value.problems)


def known(*entries: KnownFailure | str) -> KnownFailures:
    return KnownFailures(
        tuple(KnownFailure(one, "a reason") if isinstance(one, str) else one for one in entries)
    )


# -- the file ------------------------------------------------------------------------------

FORMS = {
    "a list": """\
- TOOLS-007
- rule_id: RES-102
  reason: the  library
    is old
  tracking: https://example.com/1
""",
    "a list under server": """\
server:
  - TOOLS-007
  - {rule_id: RES-102, reason: the library is old, tracking: "https://example.com/1"}
""",
    "a mapping": """\
TOOLS-007:
RES-102: {reason: the library is old, tracking: "https://example.com/1"}
""",
    "a mapping under server": """\
server:
  RES-102: {reason: the library is old, tracking: "https://example.com/1"}
TOOLS-007:
""",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_entries(tmp_path: Path, text: str) -> None:
    found = load(tmp_path, text)
    assert set(found.entries) == {
        KnownFailure("TOOLS-007"),
        KnownFailure("RES-102", "the library is old", "https://example.com/1"),
    }


def test_a_text_after_a_rule_is_its_reason(tmp_path: Path) -> None:
    assert load(tmp_path, "RES-102: too old").entries == (KnownFailure("RES-102", "too old"),)


def test_entries_may_be_about_one_revision(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "server: [RES-102]\n"
        "v2025-11-25: [{rule_id: RES-102, reason: own}]\n"
        "2026-07-28: [LOG-001]\n",
    )
    assert found.of(NEWEST)["RES-102"].reason == "own"
    assert found.of(Revision.V2024_11_05)["RES-102"].reason == ""
    assert "LOG-001" not in found.of(NEWEST)
    assert set(found.of(OTHER)) == {"RES-102", "LOG-001"}


def test_a_flaky_rule_has_its_limit(tmp_path: Path) -> None:
    found = load(tmp_path, "- {rule_id: RES-102, flaky: {max_rate: 0.3}}\n- TOOLS-007\n")
    assert found.entries[0].max_rate == 0.3
    assert found.flaky_rules == {"RES-102"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "{}", "server:\n", "server: []\n"])
def test_a_baseline_may_be_empty(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).entries == ()


def test_every_entry_knows_its_place(tmp_path: Path) -> None:
    found = load(tmp_path, "server:\n  - TOOLS-007\n  - rule_id: RES-102\n")
    places = [(one.place.line, one.place.column) for one in found.entries]
    assert places == [(2, 5), (3, 14)]


def test_an_unknown_rule_is_an_error_with_its_place_and_the_nearest_name(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "server:\n  - TOOLS-007\n  - rule_id: TOLS-007\n")
    assert (problem.place.line, problem.place.column) == (3, 14)
    assert problem.message == "unknown rule TOLS-007"
    assert problem.hint == "did you mean TOOLS-007?"
    assert problem.width == len("TOLS-007")


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("- tools-007\n", 1, "unknown rule tools-007", "did you mean TOOLS-007?"),
        ("- WHATEVER\n", 1, "unknown rule WHATEVER", "`mcptest compliance rules` lists all rules"),
        ("WHATEVER: {reason: x}\n", 1, "unknown rule WHATEVER", "lists all rules"),
        ("- TOOLS-007\n- TOOLS-007\n", 2, "TOOLS-007 is listed twice", "first in line 1"),
        ("- {reason: x}\n", 1, "rule_id is missing from a known failure", ""),
        ("- {rule_id: RES-102, why: x}\n", 1, "unknown key why in a known failure", ""),
        ("- [RES-102]\n", 1, "a known failure must be a rule or a mapping, not a list", ""),
        ("-\n", 1, "a known failure must be a rule or a mapping, not nothing", ""),
        ("just words\n", 1, "a baseline must be a list or a mapping of rules", ""),
        ("server: yes please\n", 1, "server must be a list or a mapping of rules", ""),
        ("serve: [RES-102]\n", 1, "unknown key serve in a baseline", "did you mean server?"),
        ("v2025-11-24: {RES-102: x}\n", 1, "unknown key v2025-11-24 in a baseline", "v20"),
        ("RES-102: [x]\n", 1, "RES-102 must be a mapping or a reason, not a list", ""),
        ("RES-102: {rule_id: RES-102}\n", 1, "the key already names the rule RES-102", ""),
        ("v2024-11-05: [PROTO-010]\n", 1, "v2024-11-05 has no rule PROTO-010", "v2026-07-28"),
        ("- {rule_id: RES-102, flaky: {}}\n", 1, "max_rate is missing from flaky", ""),
        ("- {rule_id: RES-102, flaky: true}\n", 1, "flaky must be a mapping", ""),
        ("- {rule_id: RES-102, flaky: {max_rate: 1}}\n", 1, "between 0 and 1, not 1", ""),
        ("- {rule_id: RES-102, flaky: {max_rate: 0}}\n", 1, "between 0 and 1, not 0", ""),
        ("- {rule_id: RES-102, flaky: {max_rate: nan}}\n", 1, "between 0 and 1, not nan", ""),
        ("- {rule_id: RES-102, flaky: {max_rate: often}}\n", 1, "between 0 and 1", ""),
        ("a: [\n", 2, "", ""),
    ],
)
def test_mistakes_have_their_place(
    tmp_path: Path, text: str, line: int, message: str, hint: str
) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.place.line == line
    assert message in problem.message
    assert hint in problem.hint


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "- NO-001\n- TOOLS-007\n- NO-002\n- {}\n")) == 3


def test_a_baseline_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="can't be read"):
        load_known_failures(tmp_path / "none.yml")


def test_tests_of_a_suite_may_be_listed_when_they_are_named(tmp_path: Path) -> None:
    text = "- my own test\n"
    assert load(tmp_path, text, also=["my own test"]).entries[0].rule_id == "my own test"
    assert len(problems(tmp_path, text)) == 1


# -- the gate ------------------------------------------------------------------------------


def test_nothing_failed_and_nothing_known_is_green() -> None:
    found = hold_against(known(), judgement(result("A-1"), result("A-2", UNSEEN)))
    assert (found.name, found.passed, found.detail) == ("baseline", True, "no failures")


@pytest.mark.parametrize("severity", ["MUST", "SHOULD"])
def test_a_new_failure_is_red(severity: str) -> None:
    bad = result("A-1", FAIL) if severity == "MUST" else result("A-1", FAIL, SHOULD)
    found = hold_against(known("A-2"), judgement(bad, result("A-2", FAIL)))
    assert not found.passed
    assert found.detail == "1 new, 1 known"
    assert found.lines[0] == f"new failure: A-1 the title of A-1 ({severity})"


def test_a_known_failure_is_green() -> None:
    found = hold_against(known("A-1"), judgement(result("A-1", FAIL), result("A-2")))
    assert (found.passed, found.detail, found.lines) == (True, "1 known", ())


def test_a_known_failure_without_a_reason_is_told() -> None:
    found = hold_against(known(KnownFailure("A-1")), judgement(result("A-1", FAIL)))
    assert found.passed
    assert found.lines == ("note: A-1 is listed without a reason",)


def test_a_listed_rule_that_passes_is_red_and_says_where_it_stands(tmp_path: Path) -> None:
    listed = load(tmp_path, "server:\n  - RES-102\n")
    found = hold_against(listed, judgement(result("RES-102")))
    assert not found.passed
    assert found.detail == "1 stale"
    place = f"{tmp_path / 'known.yml'}:2:5"
    [line] = found.lines
    assert line == f"stale: RES-102 the title of RES-102 passes; remove it: {place}"


@pytest.mark.parametrize("outcome", [UNSEEN, NOT_APPLICABLE, INCONCLUSIVE])
def test_a_listed_rule_that_was_not_judged_is_neither_known_nor_stale(outcome: Outcome) -> None:
    found = hold_against(known("A-1"), judgement(result("A-1", outcome), result("A-2")))
    assert found.passed
    assert found.lines == (f"note: A-1 is listed and was {outcome.value.replace('_', ' ')}",)


def test_a_rule_that_a_root_cause_kept_from_being_judged_is_red_unless_it_is_listed() -> None:
    judged = judgement(result("A-1", INCONCLUSIVE, cause="exited"), result("A-2"))
    found = hold_against(known(), judged)
    assert not found.passed
    assert found.lines == ("not judged: A-1 the title of A-1, because of exited",)
    assert hold_against(known("A-1"), judged).passed


def test_a_server_of_which_nothing_was_observed_is_never_green() -> None:
    for judged in (
        judgement(),
        judgement(result("A-1", UNSEEN)),
        judgement(result("A-1", INCONCLUSIVE)),
    ):
        found = hold_against(known("A-1"), judged)
        assert not found.passed
        assert found.lines[0].startswith("nothing was observed")


def test_an_entry_of_another_revision_does_not_hold() -> None:
    entry = KnownFailure("A-1", "why", revision=OTHER)
    assert not hold_against(known(entry), judgement(result("A-1", FAIL))).passed
    assert hold_against(known(entry), judgement(result("A-1"))).passed


def test_a_listed_rule_that_this_run_did_not_ask_for_is_not_stale() -> None:
    assert hold_against(known("A-1"), judgement(result("A-2"))).passed


# -- flaky rules ---------------------------------------------------------------------------

FLAKY = KnownFailure("A-1", "a race", max_rate=0.3)


def runs(pattern: str, revision: Revision = NEWEST) -> list[PastRun]:
    """`..x` is two passes and then a failure; `?` a run that did not see the rule."""
    outcome = {".": PASS, "x": FAIL, "?": UNSEEN}
    return [PastRun(revision, {"A-1": outcome[one]}) for one in pattern]


@pytest.mark.parametrize("now", [PASS, FAIL])
def test_a_flaky_rule_is_red_neither_way_before_there_is_a_rate(now: Outcome) -> None:
    found = hold_against(known(FLAKY), judgement(result("A-1", now), result("A-2")))
    assert found.passed
    failed = int(now is FAIL)
    assert found.lines == (
        f"flaky: A-1 the title of A-1 failed in {failed} of 1 runs; judged from 5 runs on",
    )


@pytest.mark.parametrize(
    ("past", "now", "passed"),
    [
        ("...." * 2 + ".", FAIL, True),  # 1 of 10
        ("xx.......", FAIL, True),  # 3 of 10, which is the limit
        ("xxx......", FAIL, False),  # 4 of 10
        ("xxx......", PASS, True),
        ("xxxx.....", PASS, False),
        ("xxxx", FAIL, False),
        ("xxx", FAIL, True),  # 4 of 4: too few to say
        ("????????xx", FAIL, True),  # 3 of 3: what was not seen is no run
        (".........", PASS, True),
    ],
)
def test_a_flaky_rule_is_red_when_it_fails_more_often_than_it_may(
    past: str, now: Outcome, passed: bool
) -> None:
    judged = judgement(result("A-1", now), result("A-2"))
    found = hold_against(known(FLAKY), judged, runs(past))
    assert found.passed is passed
    assert found.lines[0].startswith("flaky: " if passed else "too often: ")
    if not passed:
        assert found.detail == "1 flaky too often"


def test_runs_of_another_revision_do_not_count() -> None:
    judged = judgement(result("A-1", FAIL), result("A-2"))
    assert hold_against(known(FLAKY), judged, runs("xxxxxx", OTHER)).passed
    assert not hold_against(known(FLAKY), judged, runs("xxxxxx")).passed


def test_the_history_remembers_flaky_rules_alone(tmp_path: Path) -> None:
    path = history_beside(tmp_path / "known.yml")
    assert path.name == "known.yml.history.json"
    assert read_history(path) == ()
    judged = judgement(result("A-1", FAIL), result("A-2", FAIL))
    first = save_history(path, known(FLAKY), judged)
    assert first == read_history(path) == (PastRun(NEWEST, {"A-1": FAIL}),)
    save_history(path, known(FLAKY), judgement(result("A-1")), first)
    assert [run.outcomes["A-1"] for run in read_history(path)] == [FAIL, PASS]


def test_without_flaky_rules_no_history_is_written(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    assert save_history(path, known("A-1"), judgement(result("A-1", FAIL))) == ()
    assert not path.exists()


def test_the_history_stays_small_for_each_revision(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    past = [*runs("x", OTHER), *runs("x" + "." * RUNS_KEPT)]
    save_history(path, known(FLAKY), judgement(result("A-1")), past)
    kept = read_history(path)
    assert [run.revision for run in kept] == [OTHER] + [NEWEST] * RUNS_KEPT
    assert all(run.outcomes["A-1"] is PASS for run in kept[1:])


def test_a_history_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    path.write_text('{"format": "mcptest.flaky-history/1", "runs": 3}')
    with pytest.raises(UsageError) as caught:
        read_history(path)
    assert "remove it to start over" in caught.value.hint
    path.write_text("my notes")
    with pytest.raises(UsageError, match="is not overwritten"):
        save_history(path, known(FLAKY), judgement(result("A-1")))
    assert path.read_text() == "my notes"


def test_enough_runs_for_a_rate_are_fewer_than_are_kept() -> None:
    assert 1 < RUNS_FOR_A_RATE <= RUNS_KEPT


# -- writing it anew -----------------------------------------------------------------------


def again(folder: Path, text: str) -> KnownFailures:
    return load(folder, text, also=["A-1", "A-2", "A-3", "A-4"])


def test_a_new_baseline_makes_the_run_green(tmp_path: Path) -> None:
    judged = judgement(
        result("A-1", FAIL),
        result("A-2"),
        result("A-3", INCONCLUSIVE, cause="exited"),
        result("A-4", UNSEEN),
    )
    found = again(tmp_path, known_failures_from(judged))
    assert found.entries == (
        KnownFailure("A-1"),
        KnownFailure("A-3", "could not be judged: exited"),
    )
    assert hold_against(found, judged).passed


def test_a_server_without_failures_has_an_empty_baseline(tmp_path: Path) -> None:
    text = known_failures_from(judgement(result("A-1")))
    assert text.endswith("server: []\n")
    assert again(tmp_path, text).entries == ()


def test_reasons_stay_while_the_rule_fails_and_what_passes_goes(tmp_path: Path) -> None:
    earlier = known(
        KnownFailure("A-1", "because", "https://example.com"),
        KnownFailure("A-2", "was broken"),
        KnownFailure("A-3", "a race", max_rate=0.25),
        KnownFailure("A-4", "not run now"),
    )
    judged = judgement(result("A-1", FAIL), result("A-2"), result("A-3"))
    found = again(tmp_path, known_failures_from(judged, earlier))
    assert found.entries == tuple(one for one in earlier.entries if one.rule_id != "A-2")


def test_several_revisions_get_entries_of_their_own(tmp_path: Path) -> None:
    earlier = known(KnownFailure("A-1", "because"), KnownFailure("A-2", "everywhere"))
    judged = (
        judgement(result("A-1"), result("A-2", FAIL), result("A-3", FAIL)),
        judgement(result("A-1", FAIL), result("A-2", FAIL), revision=OTHER),
    )
    found = again(tmp_path, known_failures_from(judged, earlier))
    assert set(found.entries) == {
        KnownFailure("A-2", "everywhere"),
        KnownFailure("A-3", revision=NEWEST),
        KnownFailure("A-1", "because", revision=OTHER),
    }
    assert all(hold_against(found, one).passed for one in judged)


def test_two_runs_of_one_revision_do_not_list_a_rule_twice(tmp_path: Path) -> None:
    judged = judgement(result("A-1", FAIL))
    found = again(tmp_path, known_failures_from((judged, judged)))
    assert found.entries == (KnownFailure("A-1", revision=NEWEST),)


def test_entries_of_other_revisions_stay(tmp_path: Path) -> None:
    earlier = known(KnownFailure("A-1", "old", revision=OTHER))
    found = again(tmp_path, known_failures_from(judgement(result("A-1")), earlier))
    assert found.entries == earlier.entries


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40
)


@given(reason=TEXTS, name=TEXTS)
def test_any_reason_and_any_name_come_back_as_they_were(reason: str, name: str) -> None:
    earlier = known(KnownFailure(name, reason, reason))
    text = known_failures_from(judgement(result(name, FAIL)), earlier)
    root, source = parse_yaml(text.encode(), "known.yml")
    assert source.errors == 0, text
    [item] = root.entries["server"][1].items  # type: ignore[union-attr]  # a mapping with a list
    assert item.entries["rule_id"][1].text == name
    assert item.entries["reason"][1].text == reason
