"""Every rule with a row has an exchange that violates it and one that conforms, judged offline."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

from mcptest.core.revision import TIMELINE, revision_of_label
from mcptest.core.verdict import Side
from mcptest.probe.compliance.questions import filled_conditions, filled_expectations
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import Row, unmet
from mcptest.suite.observed import SeenExchange, judge_exchange
from tests.mutants.exchanges import KEPT, Sighting, exchange_from

CONFORMING_BY_HAND: dict[str, Any] = {
    "HTTP-130": {"transport": {"transport": "http"}, "result": {}},
    "JSONRPC-012": {
        "result": {
            "tools": [],
            "_meta": {"io.modelcontextprotocol/related-task": {}, "com.me/x": 1},
        }
    },
}
"""Where the healthy demo shows nothing: it does not serve that revision over HTTP+SSE, and it
sends no `_meta` in the revision in which the rule begins."""


@functools.cache
def sightings() -> dict[str, Sighting]:
    kept = msgspec.json.decode(KEPT.read_bytes(), type=list[Sighting])
    return {one.rule: one for one in kept}


def rules_with_rows() -> set[str]:
    corpora = [corpus for corpus in map(corpus_of, TIMELINE) if corpus is not None]
    return {
        rule.id
        for corpus in corpora
        for rule in corpus.rules.values()
        if rule.row is not None and (rule.entry is None or rule.entry.side is not Side.CLIENT)
    }


def row_of(seen: Sighting) -> Row:
    revision = revision_of_label(seen.revision)
    assert revision is not None
    corpus = corpus_of(revision)
    assert corpus is not None
    row = corpus.rules[seen.rule].row
    assert row is not None
    return row


def is_judged_right(seen: Sighting, kept: Any) -> bool:
    """Whether the exchange passes; it must be one that the rule applies to."""
    row, exchange = row_of(seen), exchange_from(kept)
    assert unmet(filled_conditions(row.when, seen.known), exchange) is None
    return judge_exchange(filled_expectations(row.expect, seen.known), exchange).passed


def test_every_rule_with_a_row_has_its_pair() -> None:
    assert sightings().keys() == rules_with_rows()


@pytest.mark.parametrize("rule", sorted(sightings()))
def test_the_conforming_exchange_passes_and_the_violating_one_fails(rule: str) -> None:
    seen = sightings()[rule]
    assert is_judged_right(seen, CONFORMING_BY_HAND.get(rule, seen.conforming))
    assert not is_judged_right(seen, seen.violating)


@pytest.mark.parametrize("rule", sorted(sightings()))
def test_nothing_at_all_never_passes(rule: str) -> None:
    """Silence breaks the rule, or leaves it unobserved."""
    seen = sightings()[rule]
    row = row_of(seen)
    unseen = unmet(filled_conditions(row.when, seen.known), SeenExchange()) is not None
    assert (
        unseen
        or not judge_exchange(filled_expectations(row.expect, seen.known), SeenExchange()).passed
    )
