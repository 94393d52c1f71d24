"""Matchers and targets: the engine under both forms of `expect`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.message import ABSENT
from mcptest.suite.matching import MATCHERS, match, matcher_problem
from mcptest.suite.observed import Observed, resolve, target_problem
from mcptest.suite.regex import RegexError, found_in, matches_whole, pattern_problem
from tests.e2e.driving import ended_after

# matcher, argument, values that match, values that do not
TABLE: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("exact", 1, [1, 1.0], [True, "1", 2, None, [1]]),
    ("exact", None, [None], [0, "", False, "null"]),
    ("exact", {"a": [1]}, [{"a": [1]}], [{"a": [True]}, {"a": [1], "b": 1}, {}]),
    ("not_exact", 1, [True, "1", None], [1, 1.0]),
    ("one_of", [1, "a", None], [1.0, "a", None], [True, "b", [1]]),
    ("equals_trimmed", " a ", ["a", "\n a\xa0"], ["b", "", 1, None, ["a"]]),
    ("contains", "b", ["abc", ["a", "b"]], ["xyz", "", ["bb"], 1, None, {"b": 1}]),
    ("contains", ["a", "c"], ["abc", ["c", "a"]], ["a", ["a"], "ab"]),
    ("contains", 1, [[1.0], [0, 1]], [[True], ["1"], "1", {}]),
    ("contains", {"a": 1}, [{"a": 1, "b": 2}, [{"a": 1}]], [{"a": 2}, {"b": 1}, [], "a"]),
    ("contains_any", ["x", "y"], ["ay", ["y"]], ["abc", [], 1]),
    ("not_contains", "x", ["abc", ["a"], {}], ["ax", ["x"], 1, None]),
    ("not_contains", ["x", "y"], ["abc"], ["ay", ["y"]]),
    ("icontains", "STRASSE", ["die Straße", "strasse"], ["Weg", 1, ["STRASSE"]]),
    ("in_order", ["a", "b"], ["xaxb", ["a", 1, "b"]], ["ba", "b", ["b", "a"], 1]),
    ("in_order", ["a", "a"], ["aa", ["a", "a"]], ["a", ["a"]]),
    ("regex", "^a.c$", ["abc"], ["abc\n", "a\nc", "xabc", 1, None]),
    ("regex", ["a", "b"], ["ab"], ["a", "b"]),
    ("regex", r"(?i)\pL", ["é"], ["1"]),
    ("not_regex", "a+", ["bbb", ""], ["a", 1]),
    ("schema", {"type": "integer", "minimum": 1}, [1, 1.0], [0, "1", None, 1.5]),
    ("schema", {"maxItems": 0}, [[], "not an array"], [[1]]),
    ("schema", False, [], [1, None]),
    ("type", "integer", [1, 1.0], [1.5, "1", True, None]),
    ("type", ["string", "null"], ["", None], [1, [], {}, False]),
    ("type", "number", [1, 1.5], [True, "1"]),
    ("exists", True, [None, 0, "", False], [ABSENT]),
    ("exists", False, [ABSENT], [None, 0, ""]),
    ("not_empty", True, ["a", [1], {"a": 1}, 0, False, "[ ]"], ["", " null ", "{}", [], {}, None]),
    ("minimum", 2, [2, 2.0, 3], [1.9, "3", None, True]),
    ("maximum", 2, [2, -1], [2.1, "1", None]),
    ("min_length", 2, ["ab", [1, 2], {"a": 1, "b": 2}, "日本"], ["a", [], 22, None]),
    ("max_length", 1, ["", "日", [1]], ["ab", [1, 2], 1, None]),
]


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [(name, argument, value) for name, argument, good, _ in TABLE for value in good],
)
def test_a_value_matches(name: str, argument: Any, value: Any) -> None:
    assert matcher_problem({name: argument}) is None
    assert match({name: argument}, value) is None


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [(name, argument, value) for name, argument, _, bad in TABLE for value in bad],
)
def test_a_value_does_not_match_and_the_reason_is_said(
    name: str, argument: Any, value: Any
) -> None:
    mismatch = match({name: argument}, value)
    assert mismatch is not None
    assert mismatch.message
    assert "\n" not in mismatch.message
    assert len(mismatch.message) < 1000


def test_every_matcher_is_in_the_table_and_has_a_sentence() -> None:
    assert {name for name, *_ in TABLE} == set(MATCHERS)
    assert all(matcher.about.endswith(".") for matcher in MATCHERS.values())


@pytest.mark.parametrize("name", sorted(set(MATCHERS) - {"exists"}))
def test_nothing_matches_a_value_that_is_not_there(name: str) -> None:
    argument = next(argument for known, argument, *_ in TABLE if known == name)
    mismatch = match({name: argument}, ABSENT, 'field "x" not found')
    assert mismatch is not None
    assert (mismatch.check, mismatch.message) == (name, 'field "x" not found')


def test_all_keys_of_a_matcher_have_to_hold() -> None:
    assert match({"minimum": 1, "maximum": 2}, 2) is None
    assert match({"minimum": 1, "maximum": 2}, 3) is not None
    assert match({"minimum": 1, "maximum": 2}, 0) is not None


@pytest.mark.parametrize(
    ("matcher", "problem"),
    [
        ({}, "checks nothing"),
        ({"exat": 1}, 'unknown matcher "exat", did you mean exact?'),
        ({"zzzz": 1}, "there are exact"),
        ({"regex": "("}, "error parsing regexp"),
        ({"regex": r"(?=a)"}, "error parsing regexp"),
        ({"regex": 1}, "expected a string, got number"),
        ({"regex": []}, "checks nothing"),
        ({"schema": {"type": "nope"}}, "not a JSON Schema"),
        ({"schema": 1}, "not a JSON Schema"),
        ({"type": "float"}, "expected one of null"),
        ({"minimum": True}, "expected a number, got boolean"),
        ({"min_length": -1}, "whole number"),
        ({"max_length": 1.5}, "whole number"),
        ({"exists": "yes"}, "expected a boolean"),
        ({"not_empty": False}, "only true"),
        ({"contains": []}, "checks nothing"),
        ({"contains": {}}, "checks nothing"),
        ({"contains_any": "x"}, "expected a list"),
        ({"one_of": []}, "checks nothing"),
        ({"in_order": "ab"}, "expected a list"),
        ({"icontains": [1]}, "expected a string"),
        ({"equals_trimmed": None}, "expected a string"),
    ],
)
def test_an_argument_that_can_not_be_meant_is_refused(
    matcher: dict[str, Any], problem: str
) -> None:
    assert problem in (matcher_problem(matcher) or "")


def test_the_schema_of_each_argument_agrees_with_its_check() -> None:
    import jsonschema_rs

    arguments = [
        1,
        -1,
        1.5,
        True,
        False,
        None,
        "a",
        [],
        ["a"],
        [1],
        {},
        {"a": 1},
        "string",
        ["null"],
    ]
    for matcher in MATCHERS.values():
        validator = jsonschema_rs.Draft202012Validator(matcher.argument.schema)
        for argument in arguments:
            by_schema = validator.is_valid(argument)
            by_check = matcher.argument.problem(argument) is None
            # what only the check can know: whether a schema or a pattern compiles
            assert by_schema or not by_check, (matcher.name, argument)
            if matcher.name != "schema":
                assert by_schema == by_check, (matcher.name, argument)


def test_a_value_that_is_no_json_fails_a_schema_instead_of_crashing() -> None:
    for value in ("\ud800", float("nan")):
        assert match({"schema": {"type": ["string", "array", "number"]}}, value) is not None
    assert match({"schema": {"type": "integer"}}, 10**400) is None


# -- regular expressions -----------------------------------------------------------------------


def test_a_regex_never_backtracks() -> None:
    with ended_after(60):
        assert not found_in(r"^(a+)+$", "a" * 100_000 + "b")
        assert not found_in(r"(x+x+)+y", "x" * 100_000)
        assert not matches_whole(r"(.*)*a", "b" * 100_000)


def test_a_bad_pattern_is_one_error_and_says_nothing_on_stderr(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(RegexError, match="error parsing regexp"):
        found_in("(", "x")
    assert "longer" in str(pattern_problem("a" * 20_000))
    assert pattern_problem("((a{1000}){1000}){1000}") is not None
    assert capfd.readouterr() == ("", "")


@given(st.text(max_size=15), st.text(max_size=15))
def test_any_pattern_is_taken_or_refused(pattern: str, text: str) -> None:
    if pattern_problem(pattern) is None:
        assert isinstance(found_in(pattern, text), bool)


def test_text_that_is_not_unicode_can_be_searched() -> None:
    assert found_in("a", "\ud800a")


# -- targets -----------------------------------------------------------------------------------

ANSWER = Observed(
    "tools/call",
    result={
        "content": [{"type": "text", "text": '{"n": 1, "l": [1, 2]}'}],
        "structuredContent": {"n": 2},
    },
    duration=0.5,
    progress=3,
    notifications=({"method": "notifications/progress", "params": {"progress": 1}},),
)


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("text", '{"n": 1, "l": [1, 2]}'),
        ("$.n", 1),
        ("$", {"n": 1, "l": [1, 2]}),
        ("$.l[*]", [1, 2]),
        ("$['n']", 1),
        ("result.content[0].type", "text"),
        ("result.isError", ABSENT),
        ("structured", {"n": 2}),
        ("structured.n", 2),
        ("structured..n", [2]),
        ("is_error", False),
        ("error", ABSENT),
        ("error.code", ABSENT),
        ("duration", 0.5),
        ("progress", 3),
        ("notifications", list(ANSWER.notifications)),
        ("notifications[0].method", "notifications/progress"),
        ("notifications[*].params.progress", [1]),
    ],
)
def test_a_target_leads_to(target: str, value: Any) -> None:
    assert target_problem(target) is None
    found, missing = resolve(target, ANSWER)
    assert found == value
    assert (found is ABSENT) <= bool(missing)


def test_targets_of_an_error() -> None:
    answer = Observed("tools/call", error={"code": -32602, "message": "no"})
    assert resolve("error.code", answer) == (-32602, "")
    assert resolve("text", answer) == ("no", "")
    assert resolve("result", answer)[0] is ABSENT
    assert resolve("progress", answer) == (ABSENT, "progress was not captured")
    assert "not valid JSON" in resolve("$.a", answer)[1]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("resutl.content", 'unknown target "resutl.content", did you mean result?'),
        ("nothing like it", "there are text"),
        ("", "unknown target"),
        ("text.x", "has no parts"),
        ("result.content[", "expected"),
        ("result!", "unknown target"),
        ("$x", "unknown target"),
    ],
)
def test_a_target_that_can_not_be_meant_is_refused(target: str, problem: str) -> None:
    assert problem in (target_problem(target) or "")
    assert target_problem(target) is not None


def test_the_nearest_targets_are_named() -> None:
    assert str(target_problem("structred.x")).endswith("did you mean structured?")
