"""Every rule with a row has an exchange that violates it and one that conforms, judged offline."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import msgspec
import pytest

from mcptest.core.revision import TIMELINE, revision_of_label
from mcptest.core.verdict import Side
from mcptest.probe.compliance.questions import filled_conditions, filled_expectations
from mcptest.rules.corpus.explanation import explanations
from mcptest.rules.corpus.probes import all_probes
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


# -- Why an exchange breaks a rule, in words ----------------------------------------------------

OUR_WORDS = re.compile(
    r"\b(exchange|steps|probe|asked|transport_observation)[.:\[]|fits? the schema|required property"
    r"|\b(exact|type|regex|schema|max_length|one_of): |\bnull\b|there is no result|\bis no\b"
)
"""The notation of rows: targets, matchers and what a validator says."""


def whys(seen: Sighting, exchange: SeenExchange) -> list[str]:
    row = row_of(seen)
    asked = dataclasses.replace(row, expect=filled_expectations(row.expect, seen.known))
    failures = judge_exchange(asked.expect, exchange).failures
    return [one.message for one in explanations(asked, failures, exchange)]


@pytest.mark.parametrize("rule", sorted(sightings()))
def test_why_is_a_sentence_about_the_server(rule: str) -> None:
    seen = sightings()[rule]
    assert seen.violating is not None
    told = whys(seen, exchange_from(seen.violating))
    assert told
    for why in [*told, *whys(seen, SeenExchange())]:
        assert why.startswith(("the server ", "the server's ")), why
        assert not OUR_WORDS.search(why), why


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (
            "JSONRPC-002",
            "the server did not answer; expected error -32700, or over HTTP an error status",
        ),
        ("HTTP-111", "the server did not answer; expected HTTP 400 and error -32020"),
        ("STDIO-102", "the server did not answer the next request; expected a result"),
        ("TOOLS-006", "the server did not answer; expected isError: true"),
    ],
)
def test_silence_is_told_with_what_was_expected(rule: str, why: str) -> None:
    assert whys(sightings()[rule], SeenExchange()) == [why]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("JSONRPC-002", "the server answered with error -32603; expected error -32700"),
        ("HTTP-104", "the server answered with HTTP 404; expected HTTP 400"),
        ("TOOLS-006", "the server returned a result without isError; expected isError: true"),
        ("PROTO-005", "the server offered 2024-11-05, although it supports 2025-11-25"),
        ("SSE-101", "the server sent events other than endpoint and message: surprise"),
        (
            "SAMPLE-001",
            "the server sent sampling/createMessage; expected no sampling/createMessage request",
        ),
        (
            "TOOLS-011",
            (
                'the server returned "yes" as tools[8].annotations.readOnlyHint; '
                "expected booleans as hints, and a string as title"
            ),
        ),
        (
            "HTTP-127",
            (
                "the server answered subscriptions/listen without the X-Accel-Buffering header; "
                "expected X-Accel-Buffering: no"
            ),
        ),
    ],
)
def test_what_came_is_told_with_what_was_expected(rule: str, why: str) -> None:
    seen = sightings()[rule]
    assert seen.violating is not None
    assert whys(seen, exchange_from(seen.violating)) == [why]


def test_a_part_of_many_items_is_not_shown_whole() -> None:
    seen = sightings()["TOOLS-016"]
    assert seen.violating is not None
    (why,) = whys(seen, exchange_from(seen.violating))
    assert why.startswith("the server returned an array of 10 items as tools; expected ")


def test_every_fact_that_a_rule_looks_at_has_a_sentence() -> None:
    rows = [row_of(one) for one in sightings().values()]
    looked_at = {
        (row.check.probe, one.target.split(".")[1])
        for row in rows
        for one in row.expect
        if one.target.startswith("probe.")
    }
    told = {(probe.name, fact) for probe in all_probes().values() for fact in probe.failures}
    assert told == looked_at


def test_sentences_about_probes_name_facts_and_steps_that_there_are() -> None:
    for probe in all_probes().values():
        named = re.findall(r"\{(\w+)\}", " ".join(probe.failures.values()))
        assert {*named, *probe.failures} <= {*probe.facts}, probe.name
        assert {*probe.steps_in_words} <= {*probe.step_names}, probe.name
