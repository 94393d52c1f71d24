"""The client in the stateless era."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session.answers import NO_ANSWERS, Answers
from mcptest.session.client import Client
from tests.support.scripted import (
    PREFIX,
    Reaction,
    Scripted,
    Sent,
    VirtualTime,
    discovered,
    error,
    http,
    in_turn,
    notification,
    raw,
    result,
)

COMPLETE = {"resultType": "complete", "content": []}


def session(
    clock: VirtualTime, name: Any = "stdio", answers: Answers | None = None, **reactions: Reaction
) -> tuple[Client, Scripted]:
    reply = http(200, discovered()) if name == "http" else discovered()
    table = {"server/discover": reply}
    table |= {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    server = Scripted(clock, table, name=name)
    return Client(server, revision=Revision.V2026_07_28, answers=answers).connect(), server


# -- discovery -----------------------------------------------------------------------------


def test_a_session_begins_with_one_discovery_and_nothing_else(clock: VirtualTime) -> None:
    client, server = session(clock, server__discover=discovered(tools={}))
    assert server.methods == ["server/discover"]
    assert client.revision is Revision.V2026_07_28
    assert client.declares("tools")
    assert client.server.info["name"] == "scripted"


def test_the_draft_speaks_with_the_newest_dated_version(clock: VirtualTime) -> None:
    server = Scripted(clock, {"server/discover": discovered()})
    client = Client(server, revision=Revision.DRAFT).connect()
    meta = server.sent[0].message["params"]["_meta"]
    assert meta[PREFIX + "protocolVersion"] == "2026-07-28"
    assert client.revision is Revision.DRAFT


@pytest.mark.parametrize(
    "reaction",
    [
        error(-32022, "Unsupported", {"supported": ["2031-01-01"], "requested": "2026-07-28"}),
        discovered("2031-01-01"),
        discovered("2025-11-25"),
    ],
)
def test_a_server_of_another_revision_is_refused_with_what_it_speaks(
    clock: VirtualTime, reaction: Reaction
) -> None:
    with pytest.raises(PeerError) as caught:
        session(clock, server__discover=reaction)
    assert caught.value.kind is ErrorKind.VERSION_REFUSED
    assert "2031-01-01" in caught.value.message or "2025-11-25" in caught.value.message


@pytest.mark.parametrize("reaction", [error(-32601), result({})])
def test_what_is_no_discovery_is_a_refusal(clock: VirtualTime, reaction: Reaction) -> None:
    with pytest.raises(PeerError, match="the server rejected server/discover") as caught:
        session(clock, server__discover=reaction)
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert not caught.value.unusable


@pytest.mark.parametrize("reaction", [result(5), raw(b'{"id":1,"error":3}')])
def test_a_malformed_answer_is_no_refusal(clock: VirtualTime, reaction: Reaction) -> None:
    with pytest.raises(PeerError, match="the response to server/discover is malformed") as caught:
        session(clock, server__discover=reaction)
    assert caught.value.unusable


# -- every request stands on its own -------------------------------------------------------


def test_every_request_carries_version_client_and_capabilities(clock: VirtualTime) -> None:
    client, server = session(clock, tools__list=result({"tools": []}))
    client.list_all("tools/list")
    for sent in server.sent:
        meta = sent.message["params"]["_meta"]
        assert meta[PREFIX + "protocolVersion"] == "2026-07-28"
        assert meta[PREFIX + "clientInfo"]["name"] == "mcptest"
        assert set(meta[PREFIX + "clientCapabilities"]) == {"roots", "sampling", "elicitation"}
        assert PREFIX + "logLevel" not in meta


def test_a_log_level_is_asked_for_in_meta_from_then_on(clock: VirtualTime) -> None:
    client, server = session(clock, tools__call=result(COMPLETE))
    assert client.log_level("debug") is None
    client.call_tool("t", progress_token="p")
    meta = server.sent[-1].message["params"]["_meta"]
    assert meta[PREFIX + "logLevel"] == "debug"
    assert meta["progressToken"] == "p"


def test_the_callers_params_are_not_changed(clock: VirtualTime) -> None:
    client, _ = session(clock, tools__call=result(COMPLETE))
    params = {"name": "t", "_meta": {"progressToken": 1}}
    client.request("tools/call", params)
    assert params == {"name": "t", "_meta": {"progressToken": 1}}


def test_http_headers_repeat_version_method_and_name(clock: VirtualTime) -> None:
    client, server = session(clock, "http", tools__call=http(200, result(COMPLETE)))
    client.call_tool("ünïcode")
    assert server.sent[0].headers["Mcp-Method"] == "server/discover"
    headers = server.sent[-1].headers
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == "tools/call"
    assert headers["Mcp-Name"].startswith("=?base64?")
    assert server.opened_streams == []


def test_annotated_arguments_travel_as_headers_once_the_tool_was_listed(clock: VirtualTime) -> None:
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    listed = {"resultType": "complete", "tools": [{"name": "t", "inputSchema": schema}]}
    client, server = session(
        clock,
        "http",
        tools__list=http(200, result(listed)),
        tools__call=http(200, result(COMPLETE)),
    )
    client.list_all("tools/list")
    client.call_tool("t", {"region": "north"})
    assert server.sent[-1].headers["Mcp-Param-Region"] == "north"


def test_a_session_leaves_without_a_word(clock: VirtualTime) -> None:
    client, server = session(clock, "http")
    client.close()
    assert server.deleted == []
    assert server.closed


def test_requests_of_a_server_are_not_answered_in_this_era(clock: VirtualTime) -> None:
    ask = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    client, server = session(clock, tools__call=lambda sent: [ask, *result(COMPLETE)(sent)])
    client.call_tool("t")
    assert server.methods == ["server/discover", "tools/call"]


# -- input-required results ----------------------------------------------------------------


def input_required(state: str | None = None, **asked: Any) -> Reaction:
    body: dict[str, Any] = {"resultType": "input_required"}
    if asked:
        body["inputRequests"] = asked
    if state is not None:
        body["requestState"] = state
    return result(body)


NO_FIELDS = {"requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "question",
    [
        {"method": "elicitation/create", "params": {"message": 5, **NO_FIELDS}},
        {"method": "elicitation/create", "params": {"message": "?"}},
        {"method": "sampling/createMessage", "params": {"messages": "hello", "maxTokens": 9}},
        {"method": "sampling/createMessage", "params": {"messages": []}},
        {"method": "sampling/createMessage"},
        {"method": "roots/list", "params": []},
    ],
)
def test_input_that_is_asked_for_wrongly_is_not_given(clock: VirtualTime, question: Any) -> None:
    client, server = session(clock, tools__call=input_required(q=question))
    with pytest.raises(
        PeerError, match="an invalid request for input: /result/inputRequests/q/"
    ) as caught:
        client.call_tool("t")
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert server.methods.count("tools/call") == 1


def test_asked_input_is_given_in_a_retry_with_a_new_id_and_the_same_params(
    clock: VirtualTime,
) -> None:
    state = 'opaque 😀 "state"\n'
    question = {"method": "elicitation/create", "params": {"message": "Name?", **NO_FIELDS}}
    client, server = session(
        clock, tools__call=in_turn(input_required(state, name=question), result(COMPLETE))
    )
    reply = client.call_tool("greet", {"a": [1]})
    assert reply.ok
    first, second = (sent.message for sent in server.sent[1:])
    assert first["id"] != second["id"]
    assert second["params"]["requestState"] == state
    assert second["params"]["inputResponses"] == {"name": {"action": "accept", "content": {}}}
    assert "requestState" not in first["params"]
    for member in ("name", "arguments", "_meta"):
        assert first["params"][member] == second["params"][member]


def test_all_that_is_asked_is_answered_at_once(clock: VirtualTime) -> None:
    asked = {
        "a": {"method": "roots/list"},
        "b": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}},
        "c": {"method": "elicitation/create", "params": {"message": "?", **NO_FIELDS}},
    }
    client, server = session(clock, tools__call=in_turn(input_required(**asked), result(COMPLETE)))
    client.call_tool("t")
    params = server.sent[-1].message["params"]
    assert set(params["inputResponses"]) == {"a", "b", "c"}
    assert params["inputResponses"]["b"]["role"] == "assistant"
    assert "requestState" not in params


def test_each_round_echoes_the_state_of_the_last_answer_only(clock: VirtualTime) -> None:
    question = {"q": {"method": "roots/list"}}
    client, server = session(
        clock,
        tools__call=in_turn(
            input_required("one", **question), input_required("two"), result(COMPLETE)
        ),
    )
    client.call_tool("t")
    second, third = (sent.message["params"] for sent in server.sent[2:])
    assert second["requestState"] == "one"
    assert third["requestState"] == "two"
    assert "inputResponses" not in third


def test_ten_rounds_of_input_are_given_and_no_more(clock: VirtualTime) -> None:
    ten = [input_required(str(n)) for n in range(10)]
    client, server = session(clock, tools__call=in_turn(*ten, result(COMPLETE)))
    assert client.call_tool("t").ok
    assert server.methods.count("tools/call") == 11
    client, server = session(clock, tools__call=input_required("again"))
    with pytest.raises(PeerError, match="still asks for input after 10 rounds") as caught:
        client.call_tool("t")
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert server.methods.count("tools/call") == 11


def test_all_rounds_share_one_deadline(clock: VirtualTime) -> None:
    client, _ = session(clock, tools__call=in_turn(input_required("s"), lambda sent: []))
    with pytest.raises(PeerError) as caught:
        client.call_tool("t", deadline=Deadline.after(3))
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert clock.now == 1003


@pytest.mark.parametrize(
    ("answers", "question"),
    [
        (NO_ANSWERS, {"method": "roots/list"}),
        (Answers(sampling=None), {"method": "sampling/createMessage", "params": {}}),
        (None, {"method": "tools/list"}),
        (None, {"method": "elicitation/create", "params": {"mode": "url", "url": "https://x"}}),
        (None, "roots/list"),
        (None, None),
    ],
)
def test_a_server_that_asks_for_what_was_not_declared_gets_no_retry(
    clock: VirtualTime, answers: Answers | None, question: Any
) -> None:
    client, server = session(clock, "stdio", answers, tools__call=input_required(q=question))
    with pytest.raises(PeerError, match="did not declare") as caught:
        client.call_tool("t")
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert server.methods.count("tools/call") == 1


def test_a_demand_for_input_that_names_none_is_an_error_at_once(clock: VirtualTime) -> None:
    client, server = session(clock, tools__call=input_required())
    with pytest.raises(PeerError, match="without inputRequests or requestState"):
        client.call_tool("t")
    assert server.methods.count("tools/call") == 1


@pytest.mark.parametrize("kind", ["complete", None, "bogus"])
def test_any_other_result_is_handed_out_as_it_came(clock: VirtualTime, kind: str | None) -> None:
    body = {"content": []} if kind is None else {"resultType": kind}
    client, _ = session(clock, tools__call=result(body))
    assert client.call_tool("t").result == body


# -- cancelling and subscribing ------------------------------------------------------------


def test_cancelling_on_stdio_is_a_notification(clock: VirtualTime) -> None:
    client, server = session(clock)
    pending = client.start("tools/call", {"name": "slow"})
    client.cancel(pending)
    assert server.sent[-1].message["method"] == "notifications/cancelled"
    assert server.sent[-1].message["params"]["requestId"] == pending.id


def test_cancelling_over_http_closes_the_stream_and_says_nothing(clock: VirtualTime) -> None:
    client, server = session(clock, "http")
    pending = client.start("tools/call", {"name": "slow"})
    before = len(server.sent)
    client.cancel(pending)
    assert server.abandoned == [pending.stream]
    assert len(server.sent) == before


def acknowledged(identifier: Any) -> dict[str, Any]:
    meta = {PREFIX + "subscriptionId": identifier}
    return notification("notifications/subscriptions/acknowledged", {"_meta": meta})


def test_a_subscription_begins_with_its_acknowledgement(clock: VirtualTime) -> None:
    client, server = session(
        clock, subscriptions__listen=lambda sent: [acknowledged(sent.message["id"])]
    )
    subscription = client.subscribe("file:///a")
    params = server.sent[-1].message["params"]
    assert params["notifications"] == {"resourceSubscriptions": ["file:///a"]}
    assert not subscription.done
    client.unsubscribe(subscription)
    assert server.sent[-1].message["params"]["requestId"] == subscription.id


@pytest.mark.parametrize(
    "other",
    [
        lambda sent: [acknowledged(str(sent.message["id"]))],
        lambda sent: [acknowledged(99)],
        lambda sent: [notification("notifications/subscriptions/acknowledged", {"_meta": [1]})],
        lambda sent: [notification("notifications/subscriptions/acknowledged", {"_meta": None})],
        lambda sent: [notification("notifications/subscriptions/acknowledged", [1])],
    ],
)
def test_an_acknowledgement_of_something_else_is_none(clock: VirtualTime, other: Reaction) -> None:
    client, _ = session(clock, subscriptions__listen=other)
    with pytest.raises(PeerError, match="did not acknowledge") as caught:
        client.subscribe("file:///a", Deadline.after(4))
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "it sent 1 notifications" in caught.value.message


def test_a_refused_subscription_is_handed_out_and_not_cancelled(clock: VirtualTime) -> None:
    client, server = session(clock, subscriptions__listen=error(-32601))
    subscription = client.subscribe("file:///a")
    assert subscription.answer is not None
    assert subscription.answer.error["code"] == -32601
    client.unsubscribe(subscription)
    assert server.methods[-1] == "subscriptions/listen"


def test_a_subscription_whose_stream_ends_is_an_error(clock: VirtualTime) -> None:
    client, _ = session(clock, "http", subscriptions__listen=http(200))
    with pytest.raises(PeerError, match="ended without a message"):
        client.subscribe("file:///a")


def test_batches_are_refused_before_anything_is_sent(clock: VirtualTime) -> None:
    client, server = session(clock)
    with pytest.raises(PeerError, match="has no batches"):
        client.batch([("tools/list", None)])
    assert server.methods == ["server/discover"]


def test_notifications_carry_no_request_headers_they_do_not_have(clock: VirtualTime) -> None:
    def accepted(sent: Sent) -> list[Any]:
        return http(202)(sent)

    client, server = session(clock, "http", notifications__x=accepted)
    client.notify("notifications/x", {"a": 1})
    assert server.sent[-1].message == notification("notifications/x", {"a": 1})
