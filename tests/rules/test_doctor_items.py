"""The table of what changes: complete, consistent, and each item with its probe."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from mcptest.commands.doctor.run import _LAST, PROBES
from mcptest.core.revision import TIMELINE, Revision
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import CorpusRule
from mcptest.rules.messages import is_meta_key
from mcptest.rules.migration import is_uri, items_between, migration_items
from mcptest.rules.primitives import is_plain_tool_name

A, B, C, D, E, DRAFT = TIMELINE


def ids(older: Revision, newer: Revision) -> set[str]:
    return {item.id for item in items_between(older, newer)}


def test_every_item_has_a_probe_and_every_probe_an_item() -> None:
    assert sorted(item.id for item in migration_items()) == sorted(PROBES)


def test_what_the_driver_says_about_items_is_about_items() -> None:
    assert {*_LAST} <= {item.id for item in migration_items()}
    assert {item.rests_on for item in migration_items()} == {"", "tools", "prompts", "resources"}


@pytest.mark.parametrize("item", migration_items(), ids=lambda item: item.id)
def test_rules_of_the_corpora_on_either_side_belong_to_an_item(item: object) -> None:
    assert isinstance(item, type(migration_items()[0]))
    before = TIMELINE[item.since.place - 1]
    assert any(item.id in rule.migration for rule in (*_corpus(item.since), *_corpus(before)))
    assert item.fix.endswith(".")
    assert item.looks_for
    assert item.change


def _corpus(revision: Revision) -> Collection[CorpusRule]:
    corpus = corpus_of(revision)
    assert corpus is not None
    return corpus.rules.values()


def test_the_last_step_has_everything_that_left_with_the_handshake() -> None:
    assert ids(D, E) == {
        *("discover", "request-meta", "version-error", "sessions", "ping", "logging"),
        *("subscriptions", "server-requests", "result-type", "cache-hints", "missing-resource"),
        *("error-codes", "tasks", "stable-lists", "protocol-headers", "param-headers"),
        *("http-methods", "http-status", "exit-on-eof", "transport"),
    }


def test_a_longer_way_has_the_items_of_every_step_that_still_hold() -> None:
    assert ids(D, E) < ids(B, E)
    assert {"origin", "batches", "structured-output"} <= ids(B, E)
    # the version header became one of three, and negotiation left with the handshake
    assert not {"agreement", "version-header", "declared-only"} & ids(A, E)


def test_batches_are_to_be_received_in_one_revision_only() -> None:
    assert "batches-received" in ids(A, B)
    assert "batches" not in ids(A, B)
    assert "batches-received" not in ids(A, C)
    assert "batches" in ids(A, C)


def test_nothing_but_the_transport_is_looked_at_between_equal_revisions() -> None:
    assert ids(E, DRAFT) == {"transport"}
    assert ids(D, DRAFT) == ids(D, E)


@pytest.mark.parametrize("key", ["progressToken", "com.example/name", "io.mcp/x.y-z", "a/b", "x/"])
def test_a_key_of_meta_has_an_optional_prefix(key: str) -> None:
    assert is_meta_key(key)


@pytest.mark.parametrize("key", ["-x", "a b", "1com.example/x", "a//b", "x-", "ä"])
def test_other_keys_of_meta_do_not_follow_the_grammar(key: str) -> None:
    assert not is_meta_key(key)


@pytest.mark.parametrize("uri", ["file:///a/b%20c", "note://x", "urn:isbn:1", "a+b.c:d?e#f"])
def test_a_uri_has_a_scheme_and_plain_characters(uri: str) -> None:
    assert is_uri(uri)


@pytest.mark.parametrize("uri", ["", "plain", "note://a b", "note://%zz", "://x", "note://ä"])
def test_other_texts_are_no_uris(uri: str) -> None:
    assert not is_uri(uri)


def test_names_of_tools_are_short_and_plain() -> None:
    assert is_plain_tool_name("a_b-c.D9")
    assert not is_plain_tool_name("")
    assert not is_plain_tool_name("a b")
    assert not is_plain_tool_name("x" * 129)


def test_the_page_has_a_row_for_every_item() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands" / "doctor.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{item.id}` | {item.since} | {item.change} | {item.looks_for} |"
        for item in migration_items()
    ]
