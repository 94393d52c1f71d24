"""Every way in which a suite can be wrong, and the words that people get to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcptest.core.errors import ExitCode
from mcptest.suite.reading import (
    PROBLEMS_PER_FILE,
    PROBLEMS_SHOWN,
    Place,
    SuiteError,
    SuiteProblem,
    SuiteSource,
    describe_problems,
    did_you_mean,
    render,
)
from tests.support.suites import problems_in

BAD = Path(__file__).parents[1] / "suites_bad"
CASES = sorted(path.stem for path in BAD.glob("*.yaml"))


@pytest.mark.parametrize("case", CASES)
def test_a_bad_suite_is_refused_with_these_words(case: str) -> None:
    suite = BAD / f"{case}.yaml"

    said = problems_in(suite.read_bytes(), suite.name)

    assert said + "\n" == (BAD / f"{case}.expected").read_text(encoding="utf-8")


def test_every_expectation_has_its_bad_suite() -> None:
    assert sorted(path.stem for path in BAD.glob("*.expected")) == CASES
    assert len(CASES) > 100


def test_a_suite_error_is_a_usage_error_that_carries_all_problems() -> None:
    problems = [
        SuiteProblem(Place("a.yaml", 1, 2), "one"),
        SuiteProblem(Place("b.yaml"), "two", "hint"),
    ]

    error = SuiteError(problems)

    assert error.exit_code is ExitCode.USAGE
    assert error.problems == tuple(problems)
    assert error.message == (
        "2 problems in 2 files; nothing was run\n\na.yaml: one\n\nb.yaml: two\n  hint"
    )


def test_only_the_first_problems_of_a_file_are_kept_and_the_rest_is_counted() -> None:
    source = SuiteSource("a.yaml", "x\n" * 500)
    for line in range(1, 301):
        source.report("bad", line, 1)

    problems = source.finish()

    assert len(problems) == PROBLEMS_PER_FILE + 1
    assert problems[-1].message == f"{300 - PROBLEMS_PER_FILE} more problems in this file"
    assert source.errors == 300


def test_the_same_problem_at_the_same_place_is_said_once() -> None:
    source = SuiteSource("a.yaml", "x\n")
    source.report("bad", 1, 1)
    source.report("bad", 1, 1)

    assert len(source.finish()) == 1


def test_problems_stand_in_the_order_of_the_file() -> None:
    source = SuiteSource("a.yaml", "one\ntwo\n")
    source.report("second", 2, 1)
    source.report("first", 1, 3)

    assert [problem.message for problem in source.finish()] == ["first", "second"]


def test_a_very_long_list_of_problems_is_cut_when_shown() -> None:
    problems = [SuiteProblem(Place("a.yaml", n, 1), "bad") for n in range(PROBLEMS_SHOWN + 5)]

    text = describe_problems(problems)

    assert text.endswith("… and 5 more problems")


def test_a_warning_says_that_it_is_one() -> None:
    problem = SuiteProblem(Place("a.yaml", 1, 1), "look", source="x", severity="warning")

    assert render(problem).startswith("a.yaml:1:1: warning: look\n")


def test_nothing_in_a_file_reaches_a_terminal_as_a_command() -> None:
    problem = SuiteProblem(Place("\x1b]0;x\x07.yaml", 1, 3), "bad", source="a \x1b[2Jb \u202ec")

    said = render(problem)

    assert said.isprintable() or all(c.isprintable() or c == "\n" for c in said)


def test_the_caret_stays_below_its_character_in_a_very_long_line() -> None:
    line = "a" * 5_000 + "HERE" + "b" * 5_000
    _, text, caret = render(SuiteProblem(Place("f", 1, 5_001), "bad", source=line, width=4)).split(
        "\n"
    )

    start = caret.index("^")
    assert text[start : start + 4] == "HERE"
    assert caret.count("^") == 4
    assert len(text) < 400


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("contians", "did you mean contains?"),
        ("not-error", "did you mean not_error?"),
        ("Contains", "did you mean contains?"),
        ("xyz", "known here: contains, not_error"),
        ("contains" * 1000, "known here: contains, not_error"),
    ],
)
def test_the_nearest_name_is_offered(word: str, hint: str) -> None:
    assert did_you_mean(word, ["contains", "not_error"]) == hint
