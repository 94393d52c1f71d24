"""Messages by strategy: the valid ones are valid and the invalid ones are not, by our readers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import mcptest
from mcptest.core.message import ABSENT
from mcptest.core.revision import STATELESS_REVISIONS, TIMELINE, Revision
from mcptest.probe.properties.message_strategies import sent_by_client, told_by_client
from mcptest.probe.properties.mutations import MUTATIONS
from mcptest.rules.catalogue import all_rules
from mcptest.rules.corpus.registry import load_registry
from mcptest.strategies import (
    Crafted,
    Offer,
    batches,
    invalid_messages,
    mutations,
    notifications,
    offer,
    requests,
    responses,
)
from tests.properties.message_faults import faults

CORPORA = Path(mcptest.__file__).parent / "compliance"
SHOP = offer(
    tools=[
        {
            "name": "buy",
            "inputSchema": {
                "type": "object",
                "properties": {"count": {"type": "integer", "minimum": 1}},
                "required": ["count"],
            },
        }
    ],
    prompts=[{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}],
    resources=[{"uri": "shop://a", "name": "a"}],
    capabilities={"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}},
)


def drawn(strategy: st.SearchStrategy[Crafted], examples: int = 40) -> list[Crafted]:
    found: list[Crafted] = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(message: Crafted) -> None:
        found.append(message)

    collect()
    return found


@pytest.mark.parametrize("revision", TIMELINE, ids=str)
def test_every_valid_message_is_valid_in_its_revision(revision: Revision) -> None:
    strategies = (requests(revision), notifications(revision), requests(revision, SHOP))
    more = (responses(revision), batches(revision))
    for strategy in (*strategies, *(one for one in more if not one.is_empty)):
        for message in drawn(strategy):
            assert message.valid
            assert faults(message.raw, revision) == ()
            assert b"\n" not in message.raw


@pytest.mark.parametrize("revision", TIMELINE, ids=str)
def test_every_mutation_is_invalid_in_the_revisions_that_it_claims(revision: Revision) -> None:
    names = mutations(revision)
    seen: Counter[str] = Counter()

    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[invalid_messages(revision, only=[name]) for name in names]))
    def draw(messages: tuple[Crafted, ...]) -> None:
        for name, message in zip(names, messages, strict=True):
            seen[name] += 1
            assert message.mutation == name
            assert not message.valid
            assert faults(message.raw, revision), message.raw[:200]
            assert b"\n" not in message.raw

    draw()
    assert min(seen[name] for name in names) >= 5


def test_every_mutation_is_one_somewhere() -> None:
    used = {name for revision in TIMELINE for name in mutations(revision)}
    assert used == set(MUTATIONS)


def test_an_array_is_no_mutation_where_there_are_batches() -> None:
    assert "array" not in mutations(Revision.V2025_03_26)
    assert "array" in mutations(Revision.V2025_06_18)
    assert "meta-missing" not in mutations(Revision.V2025_11_25)


def test_the_rules_of_a_mutation_exist() -> None:
    known = {rule.id for rule in all_rules()} | set(load_registry(CORPORA / "registry.yml"))
    named = {rule for mutation in MUTATIONS.values() for rule in mutation.rules}
    assert named <= known


@pytest.mark.parametrize(
    "revision", [Revision.V2024_11_05, Revision.V2025_11_25, *STATELESS_REVISIONS]
)
def test_every_method_of_a_client_is_drawn(revision: Revision) -> None:
    methods = [*sent_by_client(revision)]
    assert len(methods) >= 10

    @settings(max_examples=3, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[requests(revision, methods=[method]) for method in methods]))
    def draw(messages: tuple[Crafted, ...]) -> None:
        assert [message.method for message in messages] == methods

    draw()
    told = {message.method for message in drawn(notifications(revision), 60)}
    assert told == set(told_by_client(revision))


def test_an_offer_limits_requests_to_what_is_there() -> None:
    for message in drawn(requests(Revision.V2025_11_25, SHOP), 200):
        value = msgspec.json.decode(message.raw)
        params = value.get("params", {})
        if message.method == "tools/call":
            assert params["name"] == "buy"
            assert params["arguments"]["count"] >= 1
        elif message.method == "resources/read":
            assert params["uri"] == "shop://a"
        elif message.method == "prompts/get":
            assert "who" in params["arguments"]
        assert message.method not in {"initialize", "logging/setLevel", "tasks/list"}


def test_an_empty_offer_leaves_what_every_server_answers() -> None:
    assert {one.method for one in drawn(requests("2025-11-25", Offer()))} == {"ping"}
    assert {one.method for one in drawn(requests("2026-07-28", Offer()))} == {"server/discover"}


def test_methods_can_be_chosen() -> None:
    assert {one.method for one in drawn(requests(methods=["ping"]))} == {"ping"}


def smallest(strategy: st.SearchStrategy[Crafted], wanted: Any = lambda message: True) -> bytes:
    return find(strategy, wanted, settings=settings(max_examples=500)).raw


def test_messages_shrink_to_the_smallest() -> None:
    assert smallest(requests(methods=["ping"])) == b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert smallest(invalid_messages(only=["id-null"])) == (
        b'{"jsonrpc":"2.0","id":null,"method":"ping","params":{}}'
    )
    assert smallest(invalid_messages(only=["jsonrpc-missing"])) == (
        b'{"id":1,"method":"ping","params":{}}'
    )
    assert smallest(invalid_messages("2026-07-28", only=["meta-missing"])) == (
        b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}'
    )


def test_a_batch_names_the_ids_that_are_owed_an_answer() -> None:
    for message in drawn(batches(), 30):
        asked = [one["id"] for one in msgspec.json.decode(message.raw) if "id" in one]
        assert message.identifier == tuple(asked)
        assert len(set(asked)) == len(asked)


def test_an_id_that_can_not_be_read_is_not_expected_back() -> None:
    for message in drawn(invalid_messages(only=["id-object", "id-fraction", "not-json"])):
        assert message.identifier is ABSENT
    for message in drawn(invalid_messages(only=["unknown-method"]), 20):
        assert message.identifier == msgspec.json.decode(message.raw)["id"]


def test_an_unknown_mutation_is_told() -> None:
    with pytest.raises(ValueError, match="unknown mutation nonsense"):
        invalid_messages(only=["nonsense"])
