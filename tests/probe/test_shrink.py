"""Inputs become small, and what comes out still fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcptest.probe.shrink import Shrinker, simpler_json

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def shrunk(value: Any, fails: Callable[[Any], bool], *, tries: int) -> tuple[Any, int]:
    shrinker = Shrinker[Any, bool](lambda one: fails(one) or None, most=tries)
    return shrinker.smallest(value, simpler_json), shrinker.tries


def test_what_does_not_matter_is_left_out() -> None:
    value = {"a": "x" * 5_000, "b": [1, 2, {"c": None}], "d": 12}
    smallest, tries = shrunk(value, lambda one: "b" in one, tries=200)
    assert smallest == {"b": []}
    assert tries < 60


def test_a_long_text_becomes_as_short_as_it_may() -> None:
    smallest, _ = shrunk({"a": "A" * 10_240}, lambda one: len(one.get("a", "")) > 255, tries=200)
    assert 255 < len(smallest["a"]) < 400


def test_the_number_of_tries_is_kept() -> None:
    asked: list[Any] = []

    def fails(one: Any) -> bool:
        asked.append(one)
        return True

    shrunk({str(n): [n] * 9 for n in range(50)}, fails, tries=7)
    assert len(asked) <= 7


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=5), st.integers(0, 3))
def test_whatever_comes_out_fails_and_it_always_ends(value: dict[str, Any], size: int) -> None:
    def fails(one: Any) -> bool:
        return isinstance(one, dict) and len(one) >= min(size, len(value))

    smallest, _ = shrunk(value, fails, tries=500)
    assert fails(smallest)
    assert len(smallest) == min(size, len(value))
