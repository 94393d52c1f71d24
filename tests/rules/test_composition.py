"""Several servers behind one client: names and ids that get in each other's way."""

from __future__ import annotations

from typing import Any

from mcptest.rules.composition import COMPOSITION_RULES, Hazard, compose
from mcptest.rules.judge import JudgedSession, judge
from tests.rules.captures import call, full, handshake, public


def session(label: str, *names: str, first: int = 1, **facts: Any) -> JudgedSession:
    tools = [{"name": name} for name in names]
    prompts = [{"name": f"prompt of {name}"} for name in names]
    resources = [{"uri": f"x:{name}", "name": name} for name in names]
    parts = [
        call(first, "tools/list", {}, {"tools": tools}),
        call(first + 1, "prompts/list", {}, {"prompts": prompts}),
        call(first + 2, "resources/list", {}, {"resources": resources}),
    ]
    return judge(full(parts, label=label, **facts), [])


def public_session(label: str, *ids: Any) -> JudgedSession:
    exchanges = [({"jsonrpc": "2.0", "id": one, "method": "ping"}, None) for one in ids]
    return judge(public(*exchanges, label=label), [])


def ids_of(hazards: list[Hazard]) -> list[str]:
    return [hazard.id for hazard in hazards]


def test_one_session_has_no_composition() -> None:
    assert compose([session("a", "add", "add")]) == []


def test_a_shared_tool_prompt_and_resource_name_their_servers() -> None:
    hazards = compose([session("a", "add", "x"), session("b", "add", "y"), session("c", "z")])
    assert ids_of(hazards) == ["COMP-001", "COMP-003", "COMP-004"]
    assert hazards[0].names == ("add",)
    assert hazards[0].servers == ("a", "b")
    assert "'add' is offered by a and b" in hazards[0].message


def test_prefixed_names_do_not_collide() -> None:
    assert compose([session("a", "a__add"), session("b", "b__add")]) == []


def test_public_captures_collide_on_equal_ids() -> None:
    [hazard] = compose([public_session("a", 1, "x", 2), public_session("b", "x", 2, "1")])
    assert hazard.id == "COMP-002"
    assert set(hazard.names) == {"2", '"x"'}
    assert hazard.total == 2
    assert hazard.servers == ("a", "b")


def test_separate_transports_do_not_collide() -> None:
    sessions = [public_session("a", 1), public_session("b", 1)]
    assert compose(sessions, separate=True) == []


def test_full_captures_collide_only_on_a_shared_channel() -> None:
    assert compose([session("a"), session("b")]) == []
    assert compose([session("a", channel="1"), session("b", channel="2")]) == []
    [hazard] = compose([session("a", channel="1"), session("b", channel="1")])
    assert hazard.total == 3
    assert compose([session("a", channel="1"), session("b", channel="1", first=50)]) == []


def test_many_shared_ids_are_counted_and_few_are_named() -> None:
    [hazard] = compose([public_session("a", *range(500)), public_session("b", *range(500))])
    assert hazard.total == 500
    assert len(hazard.names) == 10
    assert "and 490 more" in hazard.message


def test_equal_labels_are_told_apart() -> None:
    [hazard] = compose([public_session("same", 1), public_session("same", 1)])
    assert hazard.servers == ("same #1", "same #2")


def test_a_handshake_alone_shares_nothing_but_its_id() -> None:
    sessions = [judge(full(handshake(), label=one, channel="c"), []) for one in "ab"]
    assert ids_of(compose(sessions)) == ["COMP-002"]
    assert set(COMPOSITION_RULES) == {"COMP-001", "COMP-002", "COMP-003", "COMP-004"}
