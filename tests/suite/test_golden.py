"""Diffs of golden texts: right, like those of `diff -u`, and bounded."""

from __future__ import annotations

import difflib
import random

import pytest

from mcptest.suite.golden import agree, is_all_volatile, unified, with_volatile_lines


def by_difflib(golden: str, actual: str) -> list[str]:
    old, new = golden.removesuffix("\n").split("\n"), actual.removesuffix("\n").split("\n")
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]


CASES = [
    ("a\n", "b\n"),
    ("a\nb\nc\n", "a\nx\nc\n"),
    ("a\n", "a\nb\n"),
    ("a\nb\n", "a\n"),
    ("\n", "a\n"),
    (
        "".join(f"{n}\n" for n in range(40)),
        "".join(f"{n}\n" for n in range(40) if n not in (5, 30)),
    ),
]


@pytest.mark.parametrize(("golden", "actual"), CASES)
def test_it_is_what_a_unified_diff_is(golden: str, actual: str) -> None:
    assert unified(golden, actual) == by_difflib(golden, actual)


def test_a_diff_takes_the_golden_text_to_the_answer() -> None:
    chance = random.Random(5)
    for _ in range(200):
        old = [chance.choice("abcd") for _ in range(chance.randrange(1, 30))]
        new = [chance.choice("abcd") for _ in range(chance.randrange(1, 30))]
        assert applied(old, unified("\n".join(old) + "\n", "\n".join(new) + "\n")) == new


def applied(old: list[str], diff: list[str]) -> list[str]:
    """As `patch` does it."""
    made: list[str] = []
    at = 0
    for line in diff:
        if line.startswith("@@"):
            begin, _, length = line.split()[1][1:].partition(",")
            start = int(begin) - (length != "0")
            made += old[at:start]
            at = start
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert old[at] == line[1:]
            made += [line[1:]] if line[0] == " " else []
            at += 1
    return made + old[at:]


def test_texts_without_a_line_in_common_are_shown_as_blocks() -> None:
    golden = "".join(f"old {n}\n" for n in range(20_000))
    actual = "".join(f"new {n}\n" for n in range(20_000))
    lines = unified(golden, actual)
    assert lines[0] == "@@ -1,20000 +1,20000 @@"
    assert len(lines) == 40_001


def test_a_long_line_is_shown_where_it_differs() -> None:
    minus, plus = unified("x" * 100_000 + "old\n", "x" * 100_000 + "new\n")[1:]
    assert minus == "-…" + "x" * 60 + "old"
    assert plus == "+…" + "x" * 60 + "new"


def test_volatile_lines_agree_with_anything_but_more_lines() -> None:
    assert agree("a\n<volatile>\nc\n", "a\nwhatever\nc\n")
    assert not agree("a\n<volatile>\nc\n", "a\nwhatever\nd\n")
    assert not agree("a\n<volatile>\nc\n", "a\nwhat\never\nc\n")
    assert not agree("a\n<volatile> b\n", "a\nc b\n")
    diff = unified("a\n<volatile>\nc\n", "a\nwhatever\nd\n")
    assert [line for line in diff if line[0] in "+-"] == ["-c", "+d"]


def test_what_differs_between_two_answers_becomes_volatile() -> None:
    assert with_volatile_lines("a\nb\n", "a\nc\n") == "a\n<volatile>\n"
    assert with_volatile_lines("a\nb\n", "a\nb\nc\n") == "<volatile>\n"
    assert with_volatile_lines("a\n", "b\n") == "<volatile>\n"
    assert is_all_volatile(with_volatile_lines("a\n", "b\n"))
    assert not is_all_volatile("a\n<volatile>\n")
