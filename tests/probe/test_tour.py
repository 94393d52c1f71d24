"""A tour asks what is safe, tells the truth about each answer, and survives all but an exit."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.capture import StreamEnd
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Limits
from mcptest.core.revision import Revision
from mcptest.probe.tour import SessionBegan, StepTaken, Wishes, tour
from mcptest.session.client import Client
from tests.support.scripted import (
    PREFIX,
    Reaction,
    Scripted,
    VirtualTime,
    discovered,
    error,
    http,
    initialized,
    notification,
    raw,
    result,
)

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
READS = {"name": "reads", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
WRITES = {"name": "writes", "inputSchema": SCHEMA}


def toured(
    clock: VirtualTime,
    wishes: Wishes = Wishes(),  # noqa: B008 - frozen
    *,
    new: bool = False,
    name: Any = "stdio",
    capabilities: Any = None,
    **reactions: Reaction,
) -> tuple[list[Any], Scripted]:
    """The events of a tour through a server with these reactions."""
    declared = capabilities or {}
    begin = discovered(**declared) if new else initialized(**declared)
    if name == "http":
        begin = http(200, begin)
    table = {"server/discover" if new else "initialize": begin, "ping": result({})}
    table |= {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    server = Scripted(clock, table, name=name)
    revision = Revision.V2026_07_28 if new else Revision.V2025_11_25
    client = Client(server, revision=revision, limits=Limits(pages=5, items=50), timeout=5)
    return list(tour(client.connect(), wishes)), server


def step(events: list[Any], what: str) -> StepTaken:
    return next(each for each in events if isinstance(each, StepTaken) and each.what == what)


def test_a_bare_server_is_greeted_and_pinged_and_nothing_else(clock: VirtualTime) -> None:
    events, server = toured(clock)
    assert events == [
        SessionBegan(Revision.V2025_11_25, "scripted", (), reason="requested with --spec-version"),
        StepTaken("ping", "done"),
    ]
    assert server.methods[2:] == ["ping"]


def test_the_new_era_has_no_ping(clock: VirtualTime) -> None:
    events, server = toured(clock, new=True)
    assert server.methods == ["server/discover"]
    assert len(events) == 1


@pytest.mark.parametrize("capability", [None, True, [], "yes"])
def test_a_capability_that_is_no_object_is_not_declared(
    clock: VirtualTime, capability: Any
) -> None:
    _, server = toured(clock, capabilities={"tools": capability})
    assert "tools/list" not in server.methods


def test_only_a_tool_that_says_it_reads_is_called(clock: VirtualTime) -> None:
    events, server = toured(
        clock,
        capabilities={"tools": {}},
        tools__list=result({"tools": [WRITES, READS]}),
        tools__call=result({"content": []}),
    )
    assert step(events, "tools/list").detail == "2 in 1 page"
    assert step(events, "tools/call reads").outcome == "done"
    assert server.last("tools/call").message["params"]["arguments"] == {"n": 0}
    assert server.methods.count("tools/call") == 1


@pytest.mark.parametrize(
    "tool",
    [
        WRITES,
        {**READS, "annotations": {"readOnlyHint": "true"}},
        {**READS, "annotations": {"readOnlyHint": 1}},
        {**READS, "annotations": None},
        {**READS, "name": 5},
        {**READS, "inputSchema": None},
        {**READS, "inputSchema": {"type": "no such type"}},
        {**READS, "inputSchema": {"type": "object", "not": {}}},
        5,
        None,
    ],
)
def test_no_other_tool_is_called(clock: VirtualTime, tool: Any) -> None:
    events, server = toured(
        clock, capabilities={"tools": {}}, tools__list=result({"tools": [tool]})
    )
    assert "tools/call" not in server.methods
    assert step(events, "tools/call").outcome == "skipped"
    assert "--call" in step(events, "tools/call").detail


def test_named_tools_are_called_as_asked(clock: VirtualTime) -> None:
    events, server = toured(
        clock,
        Wishes(calls=(("writes", {"n": 1}), ("other", {}))),
        capabilities={"tools": {}},
        tools__list=result({"tools": []}),
        tools__call=result({"isError": True, "content": []}),
    )
    assert step(events, "tools/call writes").detail == "isError"
    assert server.last("tools/call").message["params"]["name"] == "other"


def test_a_refusal_is_told_as_one(clock: VirtualTime) -> None:
    events, _ = toured(clock, ping=error(-32601, "Method\nnot found"))
    assert step(events, "ping") == StepTaken("ping", "refused", "-32601 Method\\nnot found")


def test_an_answer_that_is_no_message_is_told_as_one(clock: VirtualTime) -> None:
    events, _ = toured(clock, ping=raw(b'{"jsonrpc":"2.0","id":2,"result":{},"error":{}}'))
    assert step(events, "ping").outcome == "malformed"
    assert "both result and error are present" in step(events, "ping").detail


def test_silence_fails_one_step_and_the_tour_goes_on(clock: VirtualTime) -> None:
    events, _ = toured(
        clock, capabilities={"tools": {}, "prompts": {}}, prompts__list=result({"prompts": []})
    )
    assert step(events, "tools/list").outcome == "failed"
    assert "did not answer tools/list within 5s" in step(events, "tools/list").detail
    assert step(events, "prompts/list").outcome == "done"


def test_a_stream_that_ends_without_an_answer_fails_one_step_only(clock: VirtualTime) -> None:
    events, _ = toured(
        clock,
        new=True,
        name="http",
        capabilities={"tools": {}, "prompts": {}},
        tools__list=lambda sent: [StreamEnd(stream=sent.stream or 0)],
        prompts__list=http(200, result({"prompts": []})),
    )
    assert step(events, "tools/list").outcome == "failed"
    assert step(events, "prompts/list").outcome == "done"


def test_a_server_that_is_gone_ends_the_tour(clock: VirtualTime) -> None:
    gone = PeerError(ErrorKind.EXITED, "the server exited with code 9")
    with pytest.raises(PeerError, match="code 9"):
        toured(clock, capabilities={"tools": {}}, tools__list=lambda sent: [gone])


@pytest.mark.parametrize(
    ("tools", "outcome"), [(None, "failed"), (5, "malformed"), ({"a": 1}, "malformed")]
)
def test_a_list_that_is_none_fails_its_step(clock: VirtualTime, tools: Any, outcome: str) -> None:
    events, _ = toured(clock, capabilities={"tools": {}}, tools__list=result({"tools": tools}))
    assert step(events, "tools/list").outcome == outcome
    assert "not an array" in step(events, "tools/list").detail


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ({"tools": [], "nextCursor": ""}, "tools/list repeat"),
        ({"tools": [{}] * 51}, "tools/list names more than 50 items"),
    ],
)
def test_an_endless_list_is_malformed(clock: VirtualTime, page: Any, words: str) -> None:
    events, _ = toured(clock, capabilities={"tools": {}}, tools__list=result(page))
    assert step(events, "tools/list").outcome == "malformed"
    assert words in step(events, "tools/list").detail


def test_three_resources_are_read_and_the_first_is_subscribed_to(clock: VirtualTime) -> None:
    resources = [{"uri": f"file:///{n}"} for n in range(5)] + [{"uri": 5}, None]
    events, server = toured(
        clock,
        capabilities={"resources": {"subscribe": True}},
        resources__list=result({"resources": resources}),
        resources__templates__list=result({"resourceTemplates": []}),
        resources__read=result({"contents": []}),
        resources__subscribe=result({}),
        resources__unsubscribe=result({}),
    )
    assert server.methods.count("resources/read") == 3
    assert step(events, "subscription to file:///0").outcome == "done"


def test_named_resources_are_read_instead(clock: VirtualTime) -> None:
    _, server = toured(
        clock,
        Wishes(reads=("file:///mine",)),
        capabilities={"resources": {}},
        resources__list=result({"resources": [{"uri": "file:///other"}]}),
        resources__templates__list=result({"resourceTemplates": []}),
        resources__read=result({"contents": []}),
    )
    assert server.last("resources/read").message["params"]["uri"] == "file:///mine"
    assert server.methods.count("resources/read") == 1


SUBSCRIBABLE: dict[str, Reaction] = {
    "resources__list": result({"resources": [{"uri": "file:///a"}]}),
    "resources__templates__list": result({"resourceTemplates": []}),
    "resources__read": result({"contents": []}),
}


@pytest.mark.parametrize(
    ("subscribe", "unsubscribe"),
    [(error(-32601, "no"), result({})), (result({}), error(-32601, "no"))],
)
def test_a_refused_subscription_is_not_told_as_done(
    clock: VirtualTime, subscribe: Reaction, unsubscribe: Reaction
) -> None:
    events, _ = toured(
        clock,
        capabilities={"resources": {"subscribe": True}},
        resources__subscribe=subscribe,
        resources__unsubscribe=unsubscribe,
        **SUBSCRIBABLE,
    )
    assert step(events, "subscription to file:///a").outcome == "refused"


def test_a_refused_subscription_of_the_new_era_is_not_cancelled(clock: VirtualTime) -> None:
    events, server = toured(
        clock,
        new=True,
        capabilities={"resources": {"subscribe": True}},
        subscriptions__listen=error(-32601, "no"),
        **SUBSCRIBABLE,
    )
    assert step(events, "subscription to file:///a").outcome == "refused"
    assert server.methods[-1] == "subscriptions/listen"


def test_a_subscription_of_the_new_era_is_acknowledged_and_cancelled(clock: VirtualTime) -> None:
    def acknowledge(sent: Any) -> list[Any]:
        meta = {PREFIX + "subscriptionId": sent.message["id"]}
        return [notification("notifications/subscriptions/acknowledged", {"_meta": meta})]

    events, server = toured(
        clock,
        new=True,
        capabilities={"resources": {"subscribe": True}},
        subscriptions__listen=acknowledge,
        **SUBSCRIBABLE,
    )
    assert step(events, "subscription to file:///a").outcome == "done"
    assert server.methods[-1] == "notifications/cancelled"


@pytest.mark.parametrize(
    ("reaction", "outcome"),
    [(result({}), "done"), (error(-32602, "no"), "refused"), (lambda sent: [], "failed")],
)
def test_the_log_level_is_told_by_its_answer(
    clock: VirtualTime, reaction: Reaction, outcome: str
) -> None:
    events, _ = toured(clock, capabilities={"logging": {}}, logging__setLevel=reaction)
    assert step(events, "logging level").outcome == outcome


def test_the_first_prompt_is_asked_for_with_its_required_arguments(clock: VirtualTime) -> None:
    prompt = {
        "name": "p",
        "arguments": [
            {"name": "a", "required": True},
            {"name": "b"},
            {"name": 5, "required": True},
            7,
        ],
    }
    events, server = toured(
        clock,
        capabilities={"prompts": {}, "completions": {}},
        prompts__list=result({"prompts": [5, prompt]}),
        prompts__get=result({"messages": []}),
        completion__complete=result({"completion": {"values": []}}),
    )
    assert server.last("prompts/get").message["params"] == {"name": "p", "arguments": {"a": "a"}}
    assert step(events, "completion/complete").outcome == "done"


def test_names_of_a_server_are_made_safe_to_show(clock: VirtualTime) -> None:
    tool = {**READS, "name": "\x1b[2J::error"}
    events, server = toured(
        clock,
        capabilities={"tools": {}, "\x1b[1m": {}},
        tools__list=result({"tools": [tool]}),
        tools__call=result({}),
    )
    assert server.last("tools/call").message["params"]["name"] == "\x1b[2J::error"
    for event in events:
        assert "\x1b" not in str(event).replace("\\x1b", "")


def test_half_a_surrogate_pair_in_a_name_is_no_reason_to_fail(clock: VirtualTime) -> None:
    events, server = toured(
        clock,
        capabilities={"tools": {}},
        tools__list=result({"tools": [{**READS, "name": "\ud800"}]}),
        tools__call=result({}),
    )
    assert step(events, "tools/call \\ud800").outcome == "done"
    assert server.last("tools/call").message["params"]["name"] == "\ud800"
