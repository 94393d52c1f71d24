"""Options that several commands share."""

from __future__ import annotations

import argparse

import pytest

from mcptest.commands.options import (
    add_server_options,
    duration,
    pairs,
    server_words,
    startup_of,
    wanted_revision,
)
from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision


@pytest.mark.parametrize(
    ("word", "option", "pair"),
    [
        ("K=V", "--env", ("K", "V")),
        ("K=a=b", "--env", ("K", "a=b")),
        ("K=", "--env", ("K", "")),
        ("K= v ", "--env", ("K", " v ")),
        ("K=a:b", "--env", ("K", "a:b")),
        ("X-A=b", "--header", ("X-A", "b")),
        ("X-A: b", "--header", ("X-A", "b")),
        ("Authorization: Bearer a=b", "--header", ("Authorization", "Bearer a=b")),
        ("X-Url=http://h/", "--header", ("X-Url", "http://h/")),
    ],
)
def test_a_pair_is_read_in_the_ways_people_write_it(
    word: str, option: str, pair: tuple[str, str]
) -> None:
    assert pairs([word], option) == dict([pair])


@pytest.mark.parametrize("word", ["", "K", "=V", " =V", ": v"])
def test_what_is_no_pair_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="takes K=V"):
        pairs([word], "--header")


def test_a_refused_pair_does_not_show_what_may_be_a_secret() -> None:
    with pytest.raises(UsageError) as caught:
        pairs(["Authorization Bearer s3cr3t"], "--header")
    assert "Authorization" in caught.value.message
    assert "s3cr3t" not in caught.value.message


def test_the_last_of_two_values_counts() -> None:
    assert pairs(["A=1", "A=2"], "--env") == {"A": "2"}


def test_headers_of_both_spellings_come_together() -> None:
    parser = argparse.ArgumentParser()
    add_server_options(parser)
    words = ["--server", "http://h/", "--header", "A=1", "--headers", "B=2,C=3"]
    arguments = parser.parse_args(words)
    arguments.server_command = []
    assert server_words(arguments).headers == {"A": "1", "B": "2", "C": "3"}


def test_auto_means_find_out() -> None:
    assert wanted_revision("auto") is None
    assert wanted_revision("v2025-06-18") is Revision.V2025_06_18


def test_a_bad_duration_names_its_option() -> None:
    with pytest.raises(UsageError, match=r"^--timeout: invalid duration: 'soon'$"):
        duration("soon", "--timeout")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("", 30.0),
        ("--timeout 2s", 2.0),
        ("--timeout 15s", 15.0),
        ("--timeout 2m", 120.0),
        ("--startup-timeout 5s", 5.0),
        ("--timeout 2s --startup-timeout 1m", 60.0),
        ("--startup-timeout 1m --timeout 2s", 60.0),
    ],
)
def test_a_start_takes_no_longer_than_a_request_may_unless_it_is_said(
    words: str, seconds: float
) -> None:
    parser = argparse.ArgumentParser()
    add_server_options(parser)
    parser.set_defaults(timeout="15s")
    assert startup_of(parser.parse_args(words.split())) == seconds
