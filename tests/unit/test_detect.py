"""Finding out which era a server lives in, branch by branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcptest.model.capture import Trouble
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.revision import Revision
from mcptest.peer.client import Client
from tests.unit.scripted import (
    Later,
    Reaction,
    Scripted,
    Sent,
    VirtualTime,
    discovered,
    error,
    http,
    in_turn,
    initialized,
    nothing,
    raw,
    result,
)

HANDSHAKE = ["server/discover", "initialize", "notifications/initialized"]
NEW, OLD = Revision.V2026_07_28, Revision.V2025_11_25


def server_of(clock: VirtualTime, name: Any = "stdio", **reactions: Reaction) -> Scripted:
    table = {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    return Scripted(clock, table, name=name)


def meet(server: Scripted, seconds: float = 30, **options: Any) -> Client:
    return Client(server, **options).connect(Deadline.after(seconds))


def after(seconds: float, reaction: Reaction) -> Reaction:
    return lambda sent: [Later(seconds, what) for what in reaction(sent)]


# -- stdio ---------------------------------------------------------------------------------


def test_a_discovery_settles_it_with_one_request(clock: VirtualTime) -> None:
    server = server_of(clock, server__discover=discovered())
    assert meet(server).revision is NEW
    assert server.methods == ["server/discover"]
    assert clock.now == 1000


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32000, 0, 1])
def test_any_other_error_means_handshake_whatever_its_code(clock: VirtualTime, code: int) -> None:
    server = server_of(clock, server__discover=error(code), initialize=initialized())
    assert meet(server).revision is OLD
    assert server.methods == HANDSHAKE
    assert clock.now == 1000


@pytest.mark.parametrize(
    "reaction",
    [
        result({}),
        result([]),
        result({"protocolVersion": "2025-11-25"}),
        raw(b'{"jsonrpc":"2.0","id":1,"error":"not an object"}'),
        raw(b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'),
    ],
)
def test_a_strange_answer_means_handshake(clock: VirtualTime, reaction: Reaction) -> None:
    server = server_of(clock, server__discover=reaction, initialize=initialized())
    assert meet(server).revision is OLD


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_an_error_of_the_new_era_is_never_followed_by_initialize(
    clock: VirtualTime, code: int
) -> None:
    server = server_of(
        clock,
        server__discover=error(code, "no", {"supported": ["2031-01-01"]}),
        initialize=initialized(),
    )
    with pytest.raises(PeerError) as caught:
        meet(server)
    assert caught.value.kind in {ErrorKind.VERSION_REFUSED, ErrorKind.PROTOCOL}
    assert server.methods == ["server/discover"]


def test_after_two_seconds_of_silence_initialize_is_tried(clock: VirtualTime) -> None:
    server = server_of(clock, initialize=initialized())
    assert meet(server).revision is OLD
    assert server.methods == HANDSHAKE
    assert clock.now == 1002


def test_a_late_discovery_still_wins_over_a_silent_handshake(clock: VirtualTime) -> None:
    server = server_of(clock, server__discover=after(5, discovered()))
    assert meet(server).revision is NEW
    assert clock.now == 1005


def test_a_late_discovery_still_wins_over_a_refused_handshake(clock: VirtualTime) -> None:
    server = server_of(
        clock, server__discover=after(5, discovered()), initialize=error(-32601, "Method not found")
    )
    client = meet(server)
    assert client.revision is NEW
    assert server.methods == ["server/discover", "initialize"]


def test_a_slow_old_server_that_answers_in_order_is_found(clock: VirtualTime) -> None:
    server = server_of(
        clock,
        server__discover=after(5, error(-32601)),
        initialize=after(6, initialized()),
    )
    assert meet(server).revision is OLD
    assert clock.now == 1008


def test_the_era_of_a_late_discovery_answers_no_requests_of_the_server(clock: VirtualTime) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    server = server_of(
        clock,
        server__discover=after(5, discovered()),
        tools__list=lambda sent: [ask, *result({"tools": []})(sent)],
    )
    meet(server).list_all("tools/list")
    assert server.methods == ["server/discover", "initialize", "tools/list"]


def test_a_short_deadline_leaves_time_for_both_eras(clock: VirtualTime) -> None:
    server = server_of(clock, initialize=initialized())
    assert meet(server, seconds=1).revision is OLD
    assert clock.now == 1000.5


def test_silence_to_both_is_a_timeout(clock: VirtualTime) -> None:
    server = server_of(clock)
    with pytest.raises(PeerError) as caught:
        meet(server, seconds=10)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "nothing came" in caught.value.message
    assert clock.now == 1010


def test_a_banner_is_named_in_the_timeout(clock: VirtualTime) -> None:
    server = server_of(clock, open=lambda sent: [b"Welcome to my server"])
    with pytest.raises(PeerError, match="Welcome to my server"):
        meet(server)


def test_a_banner_before_a_good_answer_does_no_harm(clock: VirtualTime) -> None:
    server = server_of(clock, open=lambda sent: [b"Welcome"], server__discover=discovered())
    assert meet(server).revision is NEW


# -- a server that the probe drives away ---------------------------------------------------

EXITED = PeerError(ErrorKind.EXITED, "the server exited with code 1")


def reopening(*servers: Scripted) -> tuple[list[str], Callable[[Any], Scripted]]:
    left = list(servers)
    ways: list[str] = []

    def reopen(way: Any) -> Scripted:
        ways.append(way)
        return left.pop(0)

    return ways, reopen


def test_a_process_that_dies_of_the_probe_is_started_again_for_the_handshake(
    clock: VirtualTime,
) -> None:
    first = server_of(clock, server__discover=lambda sent: [EXITED])
    second = server_of(clock, initialize=initialized())
    ways, reopen = reopening(second)
    client = meet(first, reopen=reopen)
    assert client.revision is OLD
    assert ways == ["stdio"]
    assert first.closed
    assert second.methods == ["initialize", "notifications/initialized"]
    client.close()
    assert second.closed


def test_a_process_that_dies_twice_is_given_up(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=lambda sent: [EXITED])
    again = PeerError(ErrorKind.EXITED, "the server exited with code 2")
    second = server_of(clock, initialize=lambda sent: [again])
    _, reopen = reopening(second)
    client = Client(first, reopen=reopen)
    with pytest.raises(PeerError, match="code 2"):
        client.connect()
    client.close()
    assert second.closed


def test_a_process_that_dies_of_a_chosen_revision_is_not_started_again(clock: VirtualTime) -> None:
    server = server_of(clock, initialize=lambda sent: [EXITED])
    ways, reopen = reopening()
    with pytest.raises(PeerError, match="exited"):
        meet(server, revision=OLD, reopen=reopen)
    assert ways == []


def test_without_a_way_to_start_again_the_exit_is_told(clock: VirtualTime) -> None:
    with pytest.raises(PeerError, match="exited with code 1"):
        meet(server_of(clock, server__discover=lambda sent: [EXITED]))


# -- HTTP ----------------------------------------------------------------------------------


def trouble(error: str, detail: str) -> Reaction:
    return lambda sent: [Trouble(stream=sent.stream, error=error, detail=detail)]


def old_over_http(**reactions: Reaction) -> dict[str, Reaction]:
    return {
        "initialize": http(200, initialized()),
        "notifications__initialized": http(202),
        **reactions,
    }


def test_a_400_with_an_error_of_the_new_era_is_the_new_era(clock: VirtualTime) -> None:
    refusal = http(400, error(-32022, "no", {"supported": ["2031-01-01"]}))
    server = server_of(clock, "http", server__discover=refusal)
    with pytest.raises(PeerError) as caught:
        meet(server)
    assert caught.value.kind is ErrorKind.VERSION_REFUSED
    assert server.methods == ["server/discover"]


@pytest.mark.parametrize(
    "refusal",
    [
        http(400, error(-32600, "Missing session ID")),
        http(400, raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}')),
        http(400, trouble("http-status", "HTTP 400 Bad Request, without a body")),
        http(404, error(-32601)),
        http(406, trouble("http-status", "HTTP 406")),
        http(200),
        http(202),
        http(200, raw(b"<html>")),
        http(200, trouble("bad-content-type", "HTTP 200 with text/html")),
    ],
)
def test_a_refusal_without_such_an_error_means_handshake(
    clock: VirtualTime, refusal: Reaction
) -> None:
    server = server_of(clock, "http", **old_over_http(server__discover=refusal))
    assert meet(server).revision is OLD
    assert server.methods == HANDSHAKE


@pytest.mark.parametrize(
    "kind", ["connection-refused", "name-not-found", "tls", "redirect-refused", "address-refused"]
)
def test_a_server_that_can_not_be_reached_is_asked_once(clock: VirtualTime, kind: str) -> None:
    server = server_of(clock, "http", server__discover=trouble(kind, "unreachable"))
    with pytest.raises(PeerError, match="unreachable") as caught:
        meet(server)
    assert caught.value.kind.value == kind
    assert server.methods == ["server/discover"]


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_refused_post_falls_back_to_the_old_transport(clock: VirtualTime, status: int) -> None:
    refused = http(status, trouble("http-status", f"HTTP {status}"))
    first = server_of(clock, "http", server__discover=refused, initialize=refused)
    second = server_of(clock, "sse", initialize=initialized("2024-11-05"))
    ways, reopen = reopening(second)
    client = meet(first, reopen=reopen)
    assert ways == ["sse"]
    assert client.revision is Revision.V2024_11_05
    assert second.sent[0].message["params"]["protocolVersion"] == "2024-11-05"
    assert first.closed


def test_an_empty_404_falls_back_to_the_old_transport(clock: VirtualTime) -> None:
    first = server_of(clock, "http", server__discover=http(404), initialize=http(404))
    second = server_of(clock, "sse", initialize=initialized("2024-11-05"))
    ways, reopen = reopening(second)
    meet(first, reopen=reopen)
    assert ways == ["sse"]


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_other_statuses_do_not(clock: VirtualTime, status: int) -> None:
    refused = http(status, trouble("http-status", f"HTTP {status}"))
    server = server_of(clock, "http", server__discover=refused, initialize=refused)
    ways, reopen = reopening()
    with pytest.raises(PeerError, match=f"HTTP {status}"):
        meet(server, reopen=reopen)
    assert ways == []


def test_a_chosen_old_revision_falls_back_to_the_old_transport_and_keeps_its_offer(
    clock: VirtualTime,
) -> None:
    first = server_of(clock, "http", initialize=http(405, trouble("http-status", "HTTP 405")))
    second = server_of(clock, "sse", initialize=initialized("2025-03-26"))
    _, reopen = reopening(second)
    meet(first, revision=Revision.V2025_03_26, reopen=reopen)
    assert second.sent[0].message["params"]["protocolVersion"] == "2025-03-26"


def test_a_chosen_new_revision_never_falls_back_to_a_handshake(clock: VirtualTime) -> None:
    refused = http(404, trouble("http-status", "HTTP 404"))
    server = server_of(clock, "http", server__discover=refused)
    ways, reopen = reopening()
    with pytest.raises(PeerError, match="HTTP 404"):
        meet(server, revision=NEW, reopen=reopen)
    assert ways == []


def test_the_probe_is_sent_once_per_session(clock: VirtualTime) -> None:
    server = server_of(clock, server__discover=discovered(), tools__list=result({"tools": []}))
    client = meet(server)
    client.list_all("tools/list")
    client.list_all("tools/list")
    assert server.methods.count("server/discover") == 1


def test_a_script_may_be_silent_first(clock: VirtualTime) -> None:
    """The script itself: `in_turn` keeps its last reaction."""
    react = in_turn(nothing, result(1))
    sent = Sent({"id": 1}, {})
    assert react(sent) == []
    assert react(sent) == react(sent) != []
