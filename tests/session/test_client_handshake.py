"""The client in the handshake era."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.capture import HttpResponse, Sse, SseEvent, StreamEnd, Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.revision import HANDSHAKE_REVISIONS, Revision
from mcptest.session.answers import NO_ANSWERS, Answers
from mcptest.session.client import Client
from tests.support.scripted import (
    Later,
    Reaction,
    Scripted,
    Sent,
    VirtualTime,
    error,
    http,
    initialized,
    notification,
    raw,
    result,
)


def client_of(
    clock: VirtualTime,
    revision: Revision = Revision.V2025_11_25,
    answers: Answers | None = None,
    **reactions: Reaction,
) -> tuple[Client, Scripted]:
    """A client that has not connected yet, and the server that it will meet."""
    table = {"initialize": initialized(str(revision))}
    table |= {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    server = Scripted(clock, table)
    return Client(server, revision=revision, answers=answers), server


def session(clock: VirtualTime, *args: Any, **reactions: Any) -> tuple[Client, Scripted]:
    client, server = client_of(clock, *args, **reactions)
    return client.connect(), server


def http_session(clock: VirtualTime, **reactions: Reaction) -> tuple[Client, Scripted]:
    accepted = http(202)
    table = {
        "initialize": http(200, initialized("2025-11-25"), headers={"Mcp-Session-Id": "abc"}),
        "notifications/initialized": accepted,
        "answer": accepted,
        "DELETE": http(200),
    }
    table |= {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    server = Scripted(clock, table, name="http")
    return Client(server, revision=Revision.V2025_11_25).connect(), server


# -- the handshake -------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_each_revision_of_the_era_is_offered_by_its_name(
    clock: VirtualTime, revision: Revision
) -> None:
    client, server = session(clock, revision)
    assert server.methods == ["initialize", "notifications/initialized"]
    params = server.sent[0].message["params"]
    assert params["protocolVersion"] == str(revision)
    assert params["clientInfo"]["name"] == "mcptest"
    assert "id" not in server.sent[1].message
    assert client.revision is revision
    assert client.server.info["name"] == "scripted"


def test_a_counter_offer_of_the_era_is_accepted(clock: VirtualTime) -> None:
    client, server = session(clock, initialize=initialized("2024-11-05"))
    assert client.revision is Revision.V2024_11_05
    assert server.methods[-1] == "notifications/initialized"


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "draft", None, 7])
def test_an_answer_with_an_unknown_version_ends_the_attempt(
    clock: VirtualTime, version: Any
) -> None:
    client, server = client_of(clock, initialize=initialized(version))
    with pytest.raises(PeerError) as caught:
        client.connect()
    assert caught.value.kind is ErrorKind.VERSION_REFUSED
    assert repr(version) in caught.value.message
    assert "2025-11-25" in caught.value.hint
    assert "notifications/initialized" not in server.methods


@pytest.mark.parametrize(
    ("reaction", "words"),
    [
        (
            error(-32602, "Unsupported protocol version"),
            "Unsupported protocol version (code -32602)",
        ),
        (result("hello"), "malformed: result is a string, not an object"),
        (raw(b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'), "both result and error"),
        (raw(b'[{"jsonrpc":"2.0","id":1,"result":[]}]'), '"result":[]'),
    ],
)
def test_a_refused_handshake_says_what_the_server_answered(
    clock: VirtualTime, reaction: Reaction, words: str
) -> None:
    client, _ = client_of(clock, initialize=reaction)
    with pytest.raises(PeerError) as caught:
        client.connect()
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert words in caught.value.message


@pytest.mark.parametrize("member", ["capabilities", "serverInfo", "instructions"])
def test_facts_of_a_wrong_type_are_empty_facts(clock: VirtualTime, member: str) -> None:
    answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, member: 17}
    client, _ = session(clock, initialize=result(answer))
    assert isinstance(client.server.capabilities, dict)
    assert client.server.info == {}
    assert client.server.instructions is None


def test_a_client_that_was_left_open_on_failure_is_closed_by_its_block(clock: VirtualTime) -> None:
    client, server = client_of(clock, initialize=error(-1))
    with pytest.raises(PeerError), client:
        pass
    assert server.closed


def test_nothing_can_be_asked_before_the_session_has_begun(clock: VirtualTime) -> None:
    client, server = client_of(clock)
    with pytest.raises(PeerError, match="has not started"):
        client.request("ping")
    client.send_raw(b"\xff any bytes")
    assert server.sent[0].raw == b"\xff any bytes"


# -- requests of the server ----------------------------------------------------------------


def asked(method: str, params: Any = None, identifier: Any = "s1") -> dict[str, Any]:
    return {"id": identifier, **notification(method, params)}


NO_FIELDS = {"requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("sampling/createMessage", {"messages": "hello", "maxTokens": 9}, "/params/messages"),
        ("sampling/createMessage", {"messages": []}, "/params/maxTokens is absent"),
        ("sampling/createMessage", None, "/params is absent"),
        ("elicitation/create", {"message": 5, **NO_FIELDS}, "/params/message is number 5"),
        ("elicitation/create", {"message": "?"}, "/params/requestedSchema"),
        ("roots/list", [], "/params is array"),
    ],
)
def test_a_request_that_does_not_fit_its_revision_is_refused_and_not_answered(
    clock: VirtualTime, method: str, params: Any, words: str
) -> None:
    ask = {"jsonrpc": "2.0", "id": "s1", "method": method}
    if params is not None:
        ask["params"] = params
    client, server = session(clock, ping=lambda sent: [ask, *result({})(sent)])
    client.request("ping")
    refused = server.sent[-1].message
    assert refused["id"] == "s1"
    assert refused["error"]["code"] == -32602
    assert words in refused["error"]["message"]


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        (asked("ping"), {"result": {}}),
        (asked("roots/list"), {"result": {"roots": []}}),
        (asked("no/such"), {"error": {"code": -32601, "message": "Method not found"}}),
        (
            asked("elicitation/create", {"message": "?", **NO_FIELDS}),
            {"result": {"action": "accept", "content": {}}},
        ),
    ],
)
def test_a_request_of_the_server_is_answered_with_its_own_id(
    clock: VirtualTime, request_: Any, outcome: Any
) -> None:
    client, server = session(clock, ping=lambda sent: [request_, *result({})(sent)])
    client.request("ping")
    assert server.sent[-1].message == {"jsonrpc": "2.0", "id": "s1", **outcome}


@pytest.mark.parametrize("identifier", [1, "1", 1.5, True, None, 10**30, "\ud800"])
def test_the_id_of_an_answer_is_the_id_that_was_asked_with(
    clock: VirtualTime, identifier: Any
) -> None:
    ask = asked("ping", identifier=identifier)
    client, server = session(clock, ping=lambda sent: [ask, *result({})(sent)])
    client.request("ping")
    answered = server.sent[-1].message["id"]
    assert (answered, type(answered)) == (identifier, type(identifier))


def test_a_ping_before_the_answer_to_initialize_is_answered(clock: VirtualTime) -> None:
    reaction = initialized("2025-11-25")
    _, server = session(clock, initialize=lambda sent: [asked("ping"), *reaction(sent)])
    assert server.sent[1].message == {"jsonrpc": "2.0", "id": "s1", "result": {}}


def test_a_client_without_answers_declares_nothing_and_refuses(clock: VirtualTime) -> None:
    ask = asked("sampling/createMessage", {})
    client, server = session(
        clock, Revision.V2025_11_25, NO_ANSWERS, ping=lambda sent: [ask, *result({})(sent)]
    )
    assert server.sent[0].message["params"]["capabilities"] == {}
    client.request("ping")
    assert server.sent[-1].message["error"]["code"] == -32601


# -- during --------------------------------------------------------------------------------


def test_cancelling_names_the_request_and_forgets_it(clock: VirtualTime) -> None:
    client, server = session(clock)
    pending = client.start("tools/call", {"name": "slow"})
    client.cancel(pending, "enough")
    assert server.sent[-1].message == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": pending.id, "reason": "enough"},
    }
    server.deliver({"jsonrpc": "2.0", "id": pending.id, "result": {}})
    assert client.connection.pump(Deadline.after(1))
    assert pending.answer is None


def test_batches_exist_in_one_revision_only(clock: VirtualTime) -> None:
    def answers(sent: Sent) -> list[Any]:
        return [[{"jsonrpc": "2.0", "id": each["id"], "result": {}} for each in sent.message]]

    client, _ = session(clock, Revision.V2025_03_26, batch=answers)
    assert [reply.ok for reply in client.batch([("ping", None), ("ping", None)])] == [True, True]
    for revision in set(HANDSHAKE_REVISIONS) - {Revision.V2025_03_26}:
        other, _ = session(clock, revision)
        with pytest.raises(PeerError, match="has no batches"):
            other.batch([("ping", None)])


def test_subscriptions_and_log_levels_are_requests_of_their_own(clock: VirtualTime) -> None:
    client, server = session(
        clock,
        resources__subscribe=result({}),
        resources__unsubscribe=result({}),
        logging__setLevel=error(-32602, "no such level"),
    )
    answer = client.unsubscribe(client.subscribe("file:///a"))
    assert answer is not None
    assert server.last("resources/unsubscribe").message["params"] == {"uri": "file:///a"}
    refused = client.log_level("loud")
    assert refused is not None
    assert refused.error["code"] == -32602


def test_a_notification_is_awaited_or_found_among_those_that_came(clock: VirtualTime) -> None:
    later = Later(3, notification("notifications/tools/list_changed"))
    client, _ = session(clock, ping=lambda sent: [notification("early"), *result({})(sent), later])
    client.request("ping")
    assert client.await_notification(lambda message: message.method == "early") is not None
    changed = "notifications/tools/list_changed"
    assert client.await_notification(lambda message: message.method == changed) is not None
    assert clock.now == 1003
    assert client.await_notification(lambda message: True, Deadline.after(7)) is None
    assert clock.now == 1010


def test_a_progress_token_travels_in_meta(clock: VirtualTime) -> None:
    client, server = session(clock, tools__call=result({}))
    client.call_tool("t", {"a": 1}, progress_token=7)
    assert server.sent[-1].message["params"] == {
        "name": "t",
        "arguments": {"a": 1},
        "_meta": {"progressToken": 7},
    }


# -- streamable HTTP -----------------------------------------------------------------------


def test_every_request_after_initialize_carries_version_and_session(clock: VirtualTime) -> None:
    client, server = http_session(clock, ping=http(200, result({})))
    client.request("ping")
    client.close()
    assert server.sent[0].headers == {}
    expected = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "abc"}
    assert [sent.headers for sent in server.sent[1:]] == [expected, expected]
    assert server.opened_streams == [(expected, None)]
    assert server.deleted == [expected]
    assert server.closed


def test_a_session_without_an_id_is_not_deleted(clock: VirtualTime) -> None:
    client, server = http_session(clock, initialize=http(200, initialized("2025-11-25")))
    client.close()
    assert server.deleted == []


def test_a_server_that_ignores_the_delete_does_not_hold_us_up_for_long(clock: VirtualTime) -> None:
    client, server = http_session(clock, DELETE=lambda sent: [])
    client.close(Deadline.after(5))
    assert clock.now <= 1002
    assert server.closed


def primed(sent: Sent, identifier: str, retry: int | None = None) -> list[Any]:
    assert sent.stream is not None
    return [
        HttpResponse(stream=sent.stream, status=200),
        SseEvent(stream=sent.stream, sse=Sse(id=identifier, retry=retry)),
        StreamEnd(stream=sent.stream),
    ]


def test_a_stream_that_ends_early_is_resumed_after_the_pause_that_retry_orders(
    clock: VirtualTime,
) -> None:
    asked_with: list[Any] = []

    def resumed(sent: Sent) -> list[Any]:
        asked_with.append(clock.now)
        answer = {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
        return [HttpResponse(stream=sent.stream or 0, status=200), answer]

    client, server = http_session(
        clock, tools__call=lambda sent: primed(sent, "event-1", 1500), resume=resumed
    )
    reply = client.call_tool("slow")
    assert reply.ok
    assert asked_with == [1001.5]
    assert server.opened_streams[-1][1] == "event-1"
    assert server.opened_streams[-1][0]["Mcp-Session-Id"] == "abc"


def test_a_lost_connection_is_resumed_by_the_last_event_id(clock: VirtualTime) -> None:
    def lost(sent: Sent) -> list[Any]:
        assert sent.stream is not None
        trouble = Trouble(stream=sent.stream, error="connection-lost", detail="reset")
        event = SseEvent(stream=sent.stream, sse=Sse(id="7"))
        return [event, trouble, StreamEnd(stream=sent.stream, complete=False)]

    client, server = http_session(
        clock, tools__call=lost, resume=lambda sent: [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    )
    assert client.call_tool("t").ok
    assert server.opened_streams[-1][1] == "7"


def test_a_lost_connection_without_an_event_id_is_an_error(clock: VirtualTime) -> None:
    def lost(sent: Sent) -> list[Any]:
        return [Trouble(stream=sent.stream, error="connection-lost", detail="reset by peer")]

    client, server = http_session(clock, tools__call=lost)
    with pytest.raises(PeerError, match="reset by peer") as caught:
        client.call_tool("t")
    assert caught.value.kind is ErrorKind.CONNECTION_LOST
    assert len(server.opened_streams) == 1


def test_a_server_that_polls_is_followed_as_long_as_it_gets_on(clock: VirtualTime) -> None:
    rounds = 0

    def resumed(sent: Sent) -> list[Any]:
        nonlocal rounds
        rounds += 1
        if rounds == 12:
            return [{"jsonrpc": "2.0", "id": 2, "result": {}}]
        return primed(sent, f"event-{rounds}", 1000)

    client, _ = http_session(clock, tools__call=lambda sent: primed(sent, "e"), resume=resumed)
    assert client.call_tool("slow").ok
    assert rounds == 12


def test_a_stream_that_never_gets_on_is_given_up(clock: VirtualTime) -> None:
    resumptions: list[Sent] = []

    def ends_at_once(sent: Sent) -> list[Any]:
        resumptions.append(sent)
        return [StreamEnd(stream=sent.stream or 0)]

    client, _ = http_session(clock, tools__call=lambda sent: primed(sent, "e"), resume=ends_at_once)
    with pytest.raises(PeerError, match="without a message"):
        client.call_tool("slow")
    assert len(resumptions) == 5


def test_a_pause_longer_than_the_deadline_is_a_timeout(clock: VirtualTime) -> None:
    client, server = http_session(clock, tools__call=lambda sent: primed(sent, "e", 60_000))
    with pytest.raises(PeerError) as caught:
        client.call_tool("slow", deadline=Deadline.after(10))
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert clock.now == 1010
    assert len(server.opened_streams) == 1
