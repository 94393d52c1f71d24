"""The check of words finds what the style bans, and finds nothing in what people read."""

from __future__ import annotations

import argparse

import pytest

from tests.meta import words


def test_what_people_read_has_no_finding_that_is_not_listed_as_open() -> None:
    assert [str(one) for one in words.findings()] == []


@pytest.mark.parametrize(
    "text",
    [
        "--header K=V may repeat",
        "the same seed gives the same inputs (by chance)",
        "capped: at best B+",
        "tools that say that they only read",
        "a line that is no JSON",
        "runs with the manners of CI",
    ],
)
def test_a_banned_phrase_is_found_with_what_to_say_instead(text: str) -> None:
    ((line, said),) = words.banned_in(f"fine\n{text}\n")
    assert line == 2
    assert ": " in said


def test_code_comments_and_targets_of_links_are_no_prose() -> None:
    page = "`may repeat`\n```\nmay repeat\n```\n<!-- may repeat -->\n[a](may repeat)\nmay repeat\n"
    assert [line for line, _ in words.banned_in(words.prose_of(page))] == [7]


def test_a_long_sentence_is_found_where_it_begins() -> None:
    long = " ".join(["word"] * (words.LONGEST + 1))
    page = f"Short. Also short.\n\n- an item\n- {long}.\n\n| {long} |\n"
    ((line, said),) = words.too_long(page)
    assert (line, said.startswith(f"a sentence of {words.LONGEST + 1} words")) == (4, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Write a report", "begins with"),
        ("write a report.", "ends with a period"),
        ("stop after T; default 30s", "(default: X)"),
        ("only this tool; may repeat", "(repeatable)"),
        (" ".join(["word"] * 31), "a sentence of 31 words"),
    ],
)
def test_help_that_is_out_of_form_is_found(text: str, problem: str) -> None:
    (said,) = words.problems_of_option(text)
    assert problem in said


@pytest.mark.parametrize(
    "text",
    [
        "write a JUnit report",
        "maximum time (default: 15s)",
        "JSON on stdout",
        "a tool (repeatable)",
    ],
)
def test_help_in_form_is_left_alone(text: str) -> None:
    assert list(words.problems_of_option(text)) == []


def test_options_of_actions_are_read_too() -> None:
    parser = argparse.ArgumentParser()
    action = parser.add_subparsers().add_parser("action")
    action.add_argument("--one", help="Ends badly.")
    assert len(list(words.problems_of_help(parser))) == 2


def test_an_open_entry_that_is_done_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "in_pages", lambda: iter([words.Finding("a.md", 1, "length", "x")]))
    monkeypatch.setattr(words, "in_code", lambda: iter(()))
    monkeypatch.setattr(words, "in_help", lambda: iter(()))
    monkeypatch.setattr(words, "open_entries", lambda: [("a.*", "length"), ("b.md", "length")])
    assert [one.message for one in words.findings()] == ["nothing is open there: b.md length"]
