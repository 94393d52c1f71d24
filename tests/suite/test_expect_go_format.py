"""Texts as Go prints them, and equality of JSON values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.suite.matching import (
    double_text,
    json_equal,
    loosely_equal,
    quote,
    quote_all,
    trim_space,
    value_text,
)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('y"z', r'"y\"z"'),
        ("back\\slash", r'"back\\slash"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x01\x7f", r'"\x01\x7f"'),
        ("\x80\xa0", r'"\u0080\u00a0"'),
        ("\u200b", r'"\u200b"'),
        ("é 日 😀", '"é 日 😀"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\ud800", r'"\ufffd"'),
    ],
)
def test_quoting_is_that_of_go(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_a_quoted_list_has_no_commas() -> None:
    assert quote_all(["x", 'y"z']) == r'["x" "y\"z"]'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (1.5, "1.5"),
        (-12.25, "-12.25"),
        (999999.0, "999999"),
        (999999.5, "999999.5"),
        (123456.789, "123456.789"),
        (1000000.0, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (1234567.5, "1.2345675e+06"),
        (9007199254740993.0, "9.007199254740992e+15"),
        (1e20, "1e+20"),
        (1e-300, "1e-300"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (100.0, "100"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_is_printed_as_go_does(number: float, text: str) -> None:
    assert double_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_digits_of_a_double_read_back(number: float) -> None:
    assert float(double_text(number)) == number


def test_values_are_printed_as_go_does() -> None:
    value = {"b": [1, "x", None, True], "a": {"c": 1.5}}
    assert value_text(value) == "map[a:map[c:1.5] b:[1 x <nil> true]]"
    assert value_text(1234567) == "1234567"
    assert value_text([1234567], numbers_as_doubles=True) == "[1.234567e+06]"
    assert value_text(10**400, numbers_as_doubles=True) == "+Inf"
    assert "bits" in value_text(10**5000)


def test_a_deep_value_is_printed_without_recursing_for_ever() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert "…" in value_text(deep)


def test_trimming_takes_what_go_calls_space() -> None:
    assert trim_space("\xa0\x85\u3000 a \t\n") == "a"
    assert trim_space("\x1ca\ufeff\u200b") == "\x1ca\ufeff\u200b"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 1.0, -0.0, 2**53, 2**53 + 1, float(2**53), math.nan, math.inf])
    | st.sampled_from(["", "1", "true", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(_JSON, _JSON, _JSON)
def test_typed_equality_is_an_equivalence(one: Any, two: Any, three: Any) -> None:
    assert json_equal(one, one)
    assert json_equal(one, two) == json_equal(two, one)
    if json_equal(one, two) and json_equal(two, three):
        assert json_equal(one, three)
    if json_equal(one, two):
        assert loosely_equal(one, two)


@pytest.mark.parametrize(
    ("one", "two", "typed", "loose"),
    [
        (1, 1.0, True, True),
        (1, True, False, False),
        (0, False, False, False),
        (1, "1", False, True),
        ("1", 1, False, True),
        (True, "true", False, True),
        ("<nil>", None, False, True),
        (None, "null", False, False),
        (1000000, 1000000, True, True),
        ("1e+06", 1000000, False, True),
        ("1000000", 1000000, False, True),
        ("[1 a]", [1, "a"], False, True),
        ([1, "a"], "[1 a]", False, False),
        (["1", "a"], [1, "a"], False, True),
        ({"a": 1}, {"a": "1"}, False, True),
        ({"a": 1}, {"a": 1, "b": 2}, False, False),
        ([1], [1, 2], False, False),
        ((1, 2), [1, 2], True, True),
        ({}, [], False, False),
        (2**53 + 1, float(2**53), False, False),
        ("a", "b", False, False),
    ],
)
def test_equality_typed_and_loose(one: Any, two: Any, typed: bool, loose: bool) -> None:
    assert json_equal(one, two) is typed
    assert loosely_equal(one, two) is loose
