"""Ten thousand tools: comparisons are counted, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcptest.rules.lint import overlap
from mcptest.rules.lint.finding import LintLimits
from mcptest.rules.lint.overlap import circles, free_text_flow
from mcptest.rules.lint.surface import NameMatches, surface_of

SHIPS = "barque brig cutter dhow galley junk ketch lugger pinnace schooner sloop yawl".split()  # noqa: SIM905 - a list of words reads better so


def varied(number: int) -> str:
    """Texts that have little in common."""
    words = [SHIPS[(number // 12**place) % 12] for place in range(4)]
    return " ".join(f"{word}{number * 7919 % 9973}" for word in words)


KINDS: dict[str, Callable[[int], str]] = {
    "the same": lambda number: "Returns what every other tool returns as well.",
    "from a template": lambda number: f"Returns the record {number} of the ledger of the harbour.",
    "varied": varied,
    "empty": lambda number: "a",
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_comparisons_grow_with_the_number_of_descriptions_not_with_its_square(kind: str) -> None:
    count = 2_000
    texts = [KINDS[kind](number) for number in range(count)]
    pairs = list(overlap.candidates(texts))
    assert len(pairs) <= count * overlap.MOST_EACH
    assert len(pairs) == len(set(pairs))
    assert all(one < other for one, other in pairs)


def test_a_few_descriptions_are_compared_pair_by_pair() -> None:
    count = overlap.EXHAUSTIVE
    assert len(list(overlap.candidates(["x"] * count))) == count * (count - 1) // 2


def test_near_duplicates_are_found_among_thousands() -> None:
    texts = [varied(number) for number in range(3_000)]
    originals = range(0, 3_000, 60)
    for place in originals:
        story = f"Books a berth for the {varied(place)} at {place}, sends the papers to the pilot"
        texts[place] = f"{story} and returns a receipt."
        texts[place + 31] = f"{story} and later returns a receipt."
    found = {(one, other) for one, other, _ in overlap.similar_pairs(texts, 0.8)}
    assert {(place, place + 31) for place in originals} <= found


def many(count: int, **properties: Any) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": properties}
    return [{"name": f"t{number}", "inputSchema": schema} for number in range(count)]


def test_one_parameter_of_every_tool_is_one_finding_each_and_one_circle() -> None:
    surface = surface_of(many(3_000, harbour={"type": "string"}))
    flows = list(free_text_flow(surface, LintLimits()))
    assert len(flows) == 3_000
    assert all(len(one.message) < 200 for one in flows)
    assert len(list(circles(surface, LintLimits()))) == 1


def test_names_are_matched_by_case_separators_words_and_parts() -> None:
    matches = NameMatches(["userZone", "user_zone", "zone_user", "zone", "other"])
    assert {"userzone", "user_zone", "zone_user"} <= set(matches.same("user_zone"))
    assert "zone" in set(matches.related("user_zone"))
    assert set(matches.related("other")) == set()


def test_a_name_of_a_million_letters_is_matched_by_its_beginning() -> None:
    matches = NameMatches(["a" * 1_000_000, "aaa"])
    assert list(matches.related("aaa")) == ["a" * 1_000_000]
