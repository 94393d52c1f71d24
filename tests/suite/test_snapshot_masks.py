"""Masks hide what differs in every run, and nothing else."""

from __future__ import annotations

import pytest

from mcptest.suite.golden import BUILT_IN, Masks, mask_problem, names_in, protected

ALL = Masks()

HIDDEN = [
    ("at 2026-11-16T04:05:14Z.", "at <timestamp>."),
    ("at 2026-11-16 04:05:14.123456+01:00", "at <timestamp>"),
    ("at 2026-11-16 04:05", "at <timestamp>"),
    ("Date: Mon, 16 Nov 2026 04:05:14 GMT", "Date: <timestamp>"),
    ("Mon Nov 16 2026 04:05:14 GMT+0000 (Coordinated Universal Time)", "<timestamp>"),
    ("Mon Nov 16 04:05:14 UTC 2026", "<timestamp>"),
    ('{"createdAt": 1789000000123}', '{"createdAt": <timestamp>}'),
    ('{"updated_at":1789000000.25}', '{"updated_at":<timestamp>}'),
    ("3f2b8c1e-0d4a-4b6c-9e8f-001122334455", "<uuid>"),
    ('"id": "3F2B8C1E-0D4A-4B6C-9E8F-001122334455"', '"id": "<uuid>"'),
    ('"requestId": "01HZXK3V9QG5T8M2N4P6R7S0AB"', '"requestId": "<id>"'),
    ('"session_id":"9f86d081884c7d65"', '"session_id":"<id>"'),
    ("'id': 'msg_01XFDUDYJgAACzvnptvVoYEL'", "'id': '<id>'"),
    ("it took 12.5 ms", "it took <duration> ms"),
    ("done in 3s", "done in <duration>s"),
    ('"duration_ms": 17', '"duration_ms": <duration>'),
    ('"elapsedSeconds": 0.0031', '"elapsedSeconds": <duration>'),
]
KEPT = [
    "2026-11-16 is a date, and 04:05 is a time",
    '"id": 5',
    '"id": "bob"',
    '"color": "9f86d081884c7d65"',
    "wait 30 s and call again in 5 minutes",
    '"width": 1789000000123',
    "version 2025.11.25",
    "Mondays",
]


@pytest.mark.parametrize(("text", "masked"), HIDDEN)
def test_what_differs_in_every_run_is_hidden(text: str, masked: str) -> None:
    assert ALL.apply(text) == masked


@pytest.mark.parametrize("text", KEPT)
def test_what_is_part_of_the_answer_stays(text: str) -> None:
    assert ALL.apply(text) == text


@pytest.mark.parametrize(("text", "masked"), HIDDEN)
def test_hiding_twice_changes_nothing(text: str, masked: str) -> None:
    assert ALL.apply(masked) == masked


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_mask_that_is_not_in_use_hides_nothing(name: str) -> None:
    others = Masks(frozenset(BUILT_IN) - {name})
    for text, masked in HIDDEN:
        if f"<{name}>" in masked:
            assert f"<{name}>" not in others.apply(text)


def test_the_place_of_the_fixture_is_hidden_in_every_spelling() -> None:
    masks = Masks(paths=("/tmp/fix ture-1/data",))
    text = "/tmp/fix ture-1/data/a file:///tmp/fix%20ture-1/data/b %2Ftmp%2Ffix%20ture-1%2Fdata"
    assert masks.apply(text) == "<fixture>/a file://<fixture>/b <fixture>"


def test_a_pattern_of_the_user_hides_its_groups_or_all_of_its_match() -> None:
    whole = Masks(patterns=(r"build [0-9a-f]+",))
    part = Masks(patterns=(r"build (?P<build>[0-9a-f]+)",))
    assert whole.apply("see build 7ab, build 12f") == "see <masked>, <masked>"
    assert part.apply("see build 7ab, build 12f") == "see build <build>, build <build>"


def test_a_pattern_that_matches_nothing_at_all_hides_nothing() -> None:
    assert Masks(patterns=("x*",)).apply("abc") == "abc"


@pytest.mark.parametrize("pattern", ["", "(", "(?=a)", "a\nb"])
def test_a_pattern_that_can_not_be_a_mask_is_told_apart(pattern: str) -> None:
    assert mask_problem(pattern)


def test_the_masks_of_a_golden_text_are_those_that_it_shows() -> None:
    assert names_in("a <uuid> b <timestamp>") == {"uuid", "timestamp"}
    assert names_in(r"a \<uuid> b <b>") == set()


def test_a_peer_can_not_write_a_placeholder() -> None:
    names = ALL.names
    assert protected("<uuid> <b>", names) == r"\<uuid> <b>"
    assert protected(r"\<uuid>", names) == r"\\<uuid>"
    assert names_in(protected("<uuid>", names)) == set()


def test_a_hostile_text_is_gone_through_once() -> None:
    """A search that starts anew at each place would not end within the limit of a test."""
    text = '"aId": "' * 100_000 + "2026-11-16T" * 100_000
    assert ALL.apply(text) == text
