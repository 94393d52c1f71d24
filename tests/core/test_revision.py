"""The timeline of revisions, half-open windows over it, and reading a revision's name."""

from __future__ import annotations

import itertools

import pytest

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.revision import (
    EVERY_REVISION,
    HANDSHAKE_ERA,
    HANDSHAKE_REVISIONS,
    STATELESS_ERA,
    STATELESS_REVISIONS,
    TIMELINE,
    Era,
    Revision,
    Window,
    parse_revision,
    revision_of_wire,
)


def test_the_timeline_is_in_order_and_the_draft_comes_last() -> None:
    assert [str(revision) for revision in TIMELINE] == [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
        "draft",
    ]
    for earlier, later in itertools.combinations(TIMELINE, 2):
        assert earlier < later
        assert earlier <= later
        assert later > earlier
        assert later >= earlier
        assert not later < earlier
    for revision in TIMELINE:
        assert revision <= revision
        assert not revision < revision


def test_the_eras_split_the_timeline_in_two() -> None:
    assert HANDSHAKE_REVISIONS + STATELESS_REVISIONS == TIMELINE
    assert {revision.era for revision in HANDSHAKE_REVISIONS} == {Era.HANDSHAKE}
    assert {str(revision) for revision in STATELESS_REVISIONS} == {"2026-07-28", "draft"}


def test_a_window_is_half_open_for_every_pair_of_ends() -> None:
    for since, until in itertools.product(TIMELINE, (*TIMELINE, None)):
        window = Window(since, until)
        end = len(TIMELINE) if until is None else TIMELINE.index(until)
        expected = set(TIMELINE[TIMELINE.index(since) : end])
        assert {revision for revision in TIMELINE if revision in window} == expected


def test_the_era_windows_meet_without_overlap() -> None:
    for revision in TIMELINE:
        assert revision in EVERY_REVISION
        assert (revision in HANDSHAKE_ERA) is not (revision in STATELESS_ERA)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (EVERY_REVISION, "every revision"),
        (STATELESS_ERA, "2026-07-28 and later"),
        (HANDSHAKE_ERA, "2024-11-05 to 2025-11-25"),
        (Window(Revision.V2025_03_26, Revision.V2025_06_18), "2025-03-26"),
        (Window(Revision.DRAFT, Revision.V2024_11_05), "no revision"),
    ],
)
def test_a_window_says_in_words_what_it_covers(window: Window, words: str) -> None:
    assert str(window) == words


@pytest.mark.parametrize("revision", TIMELINE)
def test_a_revision_is_read_from_its_name_with_or_without_a_v(revision: Revision) -> None:
    assert parse_revision(str(revision)) is revision
    assert parse_revision(f"v{revision}") is revision


@pytest.mark.parametrize("typo", ["2025-06-17", "", "v", "vv2025-06-18", "latest", "2025-06-18 "])
def test_a_typo_is_a_usage_error_that_names_every_accepted_value(typo: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_revision(typo)
    assert caught.value.exit_code is ExitCode.USAGE
    assert repr(typo) in caught.value.message
    for revision in TIMELINE:
        assert str(revision) in caught.value.hint


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        parse_revision("v2025-06-19")
    assert caught.value.hint.startswith("did you mean 2025-06-18?")


@pytest.mark.parametrize("version", [None, 20250618, "2025", "V2025-06-18", ["2025-06-18"], True])
def test_what_a_peer_names_on_the_wire_is_no_revision_unless_it_is_one(version: object) -> None:
    assert revision_of_wire(version) is None


def test_the_draft_speaks_as_the_newest_dated_revision() -> None:
    assert Revision.DRAFT.wire_version == "2026-07-28"
    dated = [revision for revision in TIMELINE if revision is not Revision.DRAFT]
    assert [revision.wire_version for revision in dated] == [str(revision) for revision in dated]
