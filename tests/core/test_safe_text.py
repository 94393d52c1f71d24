"""A peer's text made safe to look at."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.safe_text import show, some_of

HARMFUL = st.sampled_from(
    [
        "\x1b",
        "\n",
        "\r",
        "\x07",
        "\x9b",
        "::",
        "##",
        "##[",
        "##vso[",
        " ",
        "\u202e",
        "\u2066",
        "\ufeff",
    ]
)
HOSTILE = st.lists(HARMFUL | st.text(max_size=5), max_size=20).map("".join)

OBEYED_BY_CI = re.compile(r"^\s*::|^\s*##|##\[|##vso\[|##teamcity\[", re.IGNORECASE)


def is_invisible(character: str) -> bool:
    """Control, format (bidirectional, zero width), surrogate, line or paragraph separator."""
    return unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or character in (
        "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
        "\u2060\u2066\u2067\u2068\u2069\ufeff"
    )


@given(HOSTILE | st.text(), st.integers(1, 300))
def test_nothing_invisible_and_no_workflow_command_survives(text: str, limit: int) -> None:
    shown = show(text, limit)
    assert not [character for character in shown if is_invisible(character)]
    assert not OBEYED_BY_CI.search(shown)
    assert len(shown) <= limit


@given(st.binary(max_size=300))
def test_any_bytes_can_be_shown(raw: bytes) -> None:
    shown = show(raw)
    assert not [character for character in shown if is_invisible(character)]
    assert len(shown) <= 200


@given(st.text(alphabet=st.characters(codec="ascii", min_codepoint=0x30), max_size=200))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    if "\x7f" not in text and "::" not in text:
        assert show(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("left\u202etfel", "left\\u202etfel"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("::set-env name=A::b", "\\::set-env name=A::b"),
        ("  ::error::x", "  \\::error::x"),
        ("x ##vso[task.setvariable]", "x #\\#vso[task.setvariable]"),
        ("std::vector", "std::vector"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("žluťoučký 🐎", "žluťoučký 🐎"),
    ],
)
def test_what_is_unsafe_becomes_visible(text: str | bytes, shown: str) -> None:
    assert show(text) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert show("x" * 50, 10) == "x" * 9 + "…"
    assert show("x" * 10, 10) == "x" * 10
    assert show(b"y" * 10_000_000, 10) == "y" * 9 + "…"


def test_of_many_names_the_first_are_told_and_how_many_others_there_are() -> None:
    assert some_of(["a", "b"], 2) == "a, b"
    assert some_of(["a", "b", "c"], 1) == "a and 2 more"
