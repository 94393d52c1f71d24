"""Meeting a server, branch by branch: which revision is spoken, on which connection, and why."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from mcptest.core.capture import Trouble
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.revision import Revision
from mcptest.session.client import Client
from mcptest.session.meeting import Met
from mcptest.wire.envelope import decode
from tests.support.scripted import (
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

HANDSHAKE = ["initialize", "notifications/initialized"]
NEW, OLD = Revision.V2026_07_28, Revision.V2025_11_25
EXITED = PeerError(ErrorKind.EXITED, "the server exited with code 1")


def server_of(clock: VirtualTime, name: Any = "stdio", **reactions: Reaction) -> Scripted:
    table = {key.replace("__", "/"): reaction for key, reaction in reactions.items()}
    return Scripted(clock, table, name=name)


class Reached:
    """Connections to one server, which are scripted one by one; the last script is used again."""

    def __init__(self, *servers: Scripted) -> None:
        self._left = list(servers)
        self.made: list[Scripted] = []
        self.ways: list[Any] = []

    def __call__(self, way: Any, sink: Any) -> Scripted:
        self.ways.append(way)
        made = self._left.pop(0)
        made.sink = sink
        self.made.append(made)
        return made


def meet(*servers: Scripted, seconds: float = 30, **options: Any) -> Client:
    return Client(reach=Reached(*servers), **options).connect(Deadline.after(seconds))


def after(seconds: float, reaction: Reaction) -> Reaction:
    return lambda sent: [Later(seconds, what) for what in reaction(sent)]


def asks_only(server: Scripted, *methods: str) -> bool:
    return server.methods == list(methods)


# -- an answer -----------------------------------------------------------------------------


def test_a_discovery_settles_it_with_one_request(clock: VirtualTime) -> None:
    server = server_of(clock, server__discover=discovered())
    client = meet(server)
    assert client.met == Met(NEW, "server/discover lists it", "stdio")
    assert asks_only(server, "server/discover")
    assert clock.now == 1000


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32000, 0, 1])
def test_any_other_error_means_handshake_on_a_fresh_process(clock: VirtualTime, code: int) -> None:
    first = server_of(clock, server__discover=error(code, "what?"), initialize=initialized())
    second = server_of(clock, initialize=initialized())
    client = meet(first, second)
    assert client.revision is OLD
    assert client.met.reason == f"the server rejected server/discover ({code} what?)"
    assert asks_only(first, "server/discover")
    assert asks_only(second, *HANDSHAKE)
    client.close()
    assert first.closed
    assert second.closed


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
    first = server_of(clock, server__discover=reaction)
    assert meet(first, server_of(clock, initialize=initialized())).revision is OLD


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_an_error_of_the_new_era_is_never_followed_by_initialize(
    clock: VirtualTime, code: int
) -> None:
    server = server_of(clock, server__discover=error(code, "no", {"supported": ["2031-01-01"]}))
    with pytest.raises(PeerError) as caught:
        meet(server)
    assert caught.value.kind in {ErrorKind.VERSION_REFUSED, ErrorKind.PROTOCOL}
    assert asks_only(server, "server/discover")


@pytest.mark.parametrize(("seconds", "processes"), [(0, 1), (0.6, 1), (1.4, 1), (1.6, 2)])
def test_no_second_process_is_started_ahead_where_no_session_will_begin(
    clock: VirtualTime, seconds: float, processes: int
) -> None:
    """How many are started for a revision alone does not depend on how busy the machine is."""
    refused = after(seconds, error(-32601, "what?"))
    reached = Reached(server_of(clock, server__discover=refused), server_of(clock))
    with contextlib.closing(Client(reach=reached)) as client:
        assert client.meeting.find_revision(Deadline.after(30)).revision is OLD
    assert len(reached.made) == processes


OLDER = [
    (discovered("2025-11-25", "2025-06-18"), "2025-11-25"),
    (discovered("2024-11-05", "2025-06-18", "2031-01-01"), "2025-06-18"),
    (error(-32022, "no", {"supported": ["2025-03-26", "2025-06-18"]}), "2025-06-18"),
]


@pytest.mark.parametrize(("reaction", "newest"), OLDER)
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_who_names_older_revisions_only_is_spoken_to_in_the_newest_of_them(
    clock: VirtualTime, reaction: Reaction, newest: str, way: str
) -> None:
    wrap = (lambda one: http(200, one)) if way == "http" else (lambda one: one)
    first = server_of(clock, way, server__discover=wrap(reaction))
    accepted = http(202) if way == "http" else nothing
    second = server_of(
        clock, way, initialize=wrap(initialized(newest)), notifications__initialized=accepted
    )
    client = meet(first, second)
    assert str(client.revision) == newest
    assert "the newest that " in client.met.reason
    assert second.sent[0].message["params"]["protocolVersion"] == newest
    assert asks_only(first, "server/discover")


@pytest.mark.parametrize(
    "reaction", [discovered("2031-01-01"), error(-32022, "no", {"supported": ["2031-01-01"]})]
)
def test_nothing_in_common_is_an_error_that_names_what_the_server_speaks(
    clock: VirtualTime, reaction: Reaction
) -> None:
    with pytest.raises(PeerError, match="it names 2031-01-01") as caught:
        meet(server_of(clock, server__discover=reaction))
    assert caught.value.kind is ErrorKind.VERSION_REFUSED


@pytest.mark.parametrize(("reaction", "newest"), OLDER)
def test_a_chosen_new_revision_is_not_exchanged_for_an_older_one(
    clock: VirtualTime, reaction: Reaction, newest: str
) -> None:
    with pytest.raises(PeerError, match=newest) as caught:
        meet(server_of(clock, server__discover=reaction), revision=NEW)
    assert caught.value.kind is ErrorKind.VERSION_REFUSED


def test_a_counter_offer_is_part_of_the_reason(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=error(-32601, "no"))
    client = meet(first, server_of(clock, initialize=initialized("2024-11-05")))
    assert client.met.reason == (
        "the server rejected server/discover (-32601 no); "
        "the server answered a proposal of 2025-11-25 with 2024-11-05"
    )


def test_a_chosen_revision_is_why(clock: VirtualTime) -> None:
    client = meet(server_of(clock, initialize=initialized()), revision=OLD)
    assert client.met.reason == "requested with --spec-version"


# -- a slow start --------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 20.0])
@pytest.mark.parametrize("ahead", [0.01, 0.2, 1.0, 2.0])
def test_how_long_a_start_takes_decides_nothing(
    clock: VirtualTime, seconds: float, ahead: float
) -> None:
    """Dual-era servers: the twin answers `initialize`, be it before or after the first answers.

    It is asked 1.5 s later, so it is the first to answer if it is ahead by more than that.
    """
    first = server_of(clock, server__discover=after(seconds, discovered()))
    twin = server_of(clock, initialize=after(max(0.0, seconds - ahead), initialized()))
    client = meet(first, twin)
    assert client.met == Met(NEW, "server/discover lists it", "stdio")
    assert asks_only(first, "server/discover")
    client.close()
    assert twin.closed or not twin.sent


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 1.0, 3.0, 10.0])
def test_a_slow_old_server_is_found_by_its_refusal(clock: VirtualTime, seconds: float) -> None:
    first = server_of(clock, server__discover=after(seconds, error(-32601, "no")))
    second = server_of(clock, initialize=after(seconds, initialized()))
    client = meet(first, second)
    assert client.met == Met(OLD, "the server rejected server/discover (-32601 no)", "stdio")
    assert asks_only(second, *HANDSHAKE)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 3.0, 10.0])
def test_who_ignores_the_question_is_found_by_its_twin(clock: VirtualTime, seconds: float) -> None:
    first = server_of(clock)
    twin = server_of(clock, initialize=after(seconds, initialized()))
    client = meet(first, twin)
    assert client.revision is OLD
    assert client.met.reason == (
        "the server did not answer server/discover, but a second process answered initialize"
    )
    assert asks_only(first, "server/discover")
    assert asks_only(twin, *HANDSHAKE)
    client.close()
    assert first.closed


def test_who_has_not_read_the_question_is_not_silent(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=after(20, discovered()))
    first.has_unread_input = True
    twin = server_of(clock, initialize=after(1, initialized()))
    assert meet(first, twin).revision is NEW


def test_no_twin_is_asked_while_the_first_one_still_starts(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=after(10, discovered()))
    first.has_unread_input = True
    twin = server_of(clock, initialize=after(1, initialized()))
    assert meet(first, twin).revision is NEW
    assert not twin.sent


def test_over_http_silence_counts_after_half_of_the_limit(clock: VirtualTime) -> None:
    for seconds, revision in ((14, NEW), (16, OLD)):
        clock.now = 1000
        first = server_of(clock, "http", server__discover=after(seconds, http(200, discovered())))
        first.reactions["server/discover"] = lambda sent, seconds=seconds: [
            Later(seconds, what) for what in http(200, discovered())(sent)
        ]
        twin = server_of(clock, "http", **old_over_http())
        assert meet(first, twin).revision is revision


def test_a_twin_that_does_not_answer_settles_nothing(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=after(20, discovered()))
    assert meet(first, server_of(clock)).revision is NEW


@pytest.mark.parametrize(
    "reaction", [error(-32601, "no initialize here"), lambda sent: [EXITED], result([])]
)
def test_a_twin_that_fails_settles_nothing(clock: VirtualTime, reaction: Reaction) -> None:
    first = server_of(clock, server__discover=after(20, discovered()))
    assert meet(first, server_of(clock, initialize=reaction)).revision is NEW


def test_a_session_that_the_twin_began_for_nothing_is_given_back(clock: VirtualTime) -> None:
    first = server_of(clock, "http", server__discover=after(3, nothing))
    first.reactions["server/discover"] = lambda sent: [
        Later(3, what) for what in http(200, discovered())(sent)
    ]
    begun = http(200, initialized(), headers={"Mcp-Session-Id": "abc"})
    twin = server_of(clock, "http", initialize=begun, DELETE=http(200))
    assert meet(first, twin).revision is NEW
    assert twin.deleted == [{"Mcp-Session-Id": "abc"}]


def test_silence_to_both_is_a_timeout(clock: VirtualTime) -> None:
    with pytest.raises(PeerError) as caught:
        meet(server_of(clock), server_of(clock), seconds=10)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "it sent nothing" in caught.value.message
    assert clock.now == 1010


def test_a_banner_is_named_in_the_timeout(clock: VirtualTime) -> None:
    server = server_of(clock, open=lambda sent: [b"Welcome to my server"])
    with pytest.raises(PeerError, match="Welcome to my server"):
        meet(server, server_of(clock))


def test_a_banner_before_a_good_answer_does_no_harm(clock: VirtualTime) -> None:
    server = server_of(clock, open=lambda sent: [b"Welcome"], server__discover=discovered())
    assert meet(server).revision is NEW


# -- a server that ends --------------------------------------------------------------------


def test_a_process_that_dies_of_the_probe_is_started_again_for_the_handshake(
    clock: VirtualTime,
) -> None:
    first = server_of(clock, server__discover=lambda sent: [EXITED])
    second = server_of(clock, initialize=initialized())
    client = meet(first, second)
    assert client.met == Met(OLD, "the server exited at server/discover", "stdio")
    assert first.closed
    assert asks_only(second, *HANDSHAKE)
    client.close()
    assert second.closed


def test_a_process_that_dies_twice_is_given_up(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=lambda sent: [EXITED])
    again = PeerError(ErrorKind.EXITED, "the server exited with code 2")
    second = server_of(clock, initialize=lambda sent: [again])
    client = Client(reach=Reached(first, second))
    with pytest.raises(PeerError, match="code 2"):
        client.connect()
    client.close()
    assert second.closed


def test_a_process_that_dies_beside_its_twin_is_asked_again_alone(clock: VirtualTime) -> None:
    """It may allow no second process beside itself, whichever came first."""
    first = server_of(clock, server__discover=after(1, lambda sent: [EXITED]))
    twin = server_of(clock, initialize=after(2, initialized()))
    alone = server_of(clock, server__discover=after(5, discovered()))
    assert meet(first, twin, alone).revision is NEW
    assert twin.closed


def test_a_second_process_that_dies_beside_the_first_is_started_once_more(
    clock: VirtualTime,
) -> None:
    first = server_of(clock, server__discover=after(1, error(-32601, "no")))
    twin = server_of(clock, initialize=lambda sent: [EXITED])
    alone = server_of(clock, initialize=initialized())
    assert meet(first, twin, alone).revision is OLD
    assert asks_only(alone, *HANDSHAKE)


def test_who_ignores_the_question_and_lets_no_twin_run_is_asked_alone(clock: VirtualTime) -> None:
    first = server_of(clock)
    twin = server_of(clock, initialize=lambda sent: [EXITED])
    alone = server_of(clock, initialize=after(5, initialized()))
    client = meet(first, twin, alone)
    assert client.met.reason == (
        "the server did not answer server/discover, but another process, alone, answered initialize"
    )
    assert first.closed
    assert asks_only(first, "server/discover")
    assert asks_only(alone, *HANDSHAKE)


@pytest.mark.parametrize("reaction", [nothing, lambda sent: [EXITED], error(-32603, "broken")])
def test_who_answers_nothing_alone_either_is_given_up(
    clock: VirtualTime, reaction: Reaction
) -> None:
    servers = [server_of(clock)]
    servers += [server_of(clock, initialize=one) for one in (lambda sent: [EXITED], reaction)]
    with pytest.raises(PeerError, match=r"did not answer initialize|exited with code 1|broken"):
        meet(*servers)
    assert clock.now <= 1030


def test_a_process_that_dies_of_a_chosen_revision_is_not_started_again(clock: VirtualTime) -> None:
    reached = Reached(server_of(clock, initialize=lambda sent: [EXITED]))
    with pytest.raises(PeerError, match="exited"):
        Client(reach=reached, revision=OLD).connect()
    assert len(reached.made) == 1


def test_without_a_way_to_start_again_the_exit_is_told(clock: VirtualTime) -> None:
    with pytest.raises(PeerError, match="exited with code 1"):
        Client(server_of(clock, server__discover=lambda sent: [EXITED])).connect()


# -- what is recorded ----------------------------------------------------------------------


def recorded(*servers: Scripted, **options: Any) -> list[Any]:
    told: list[Any] = []
    client = Client(
        reach=Reached(*servers),
        sink=told.append,
        began=lambda way, reason: told.append((way, reason)),
        **options,
    )
    with contextlib.suppress(PeerError):
        client.connect()
    return [each if isinstance(each, tuple) else decode(each.raw).method for each in told]


def test_a_refused_probe_leaves_nothing_but_the_reason(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=error(-32601, "no"))
    told = recorded(first, server_of(clock, initialize=initialized()))
    assert told[0] == ("stdio", "the server rejected server/discover (-32601 no)")
    assert [each for each in told[1:] if each is not None] == HANDSHAKE


def test_a_twin_leaves_nothing(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=after(3, discovered()))
    told = recorded(first, server_of(clock, initialize=initialized()))
    assert told == [("stdio", "server/discover lists it"), "server/discover", None]


def test_where_no_session_begins_everything_that_was_said_is_told(clock: VirtualTime) -> None:
    first = server_of(clock, server__discover=error(-32601, "no"))
    told = recorded(first, server_of(clock, initialize=error(-32603, "broken")))
    assert [each for each in told if each is not None] == [
        ("stdio", "the server rejected server/discover (-32601 no)"),
        "server/discover",
        ("stdio", "the server rejected server/discover (-32601 no)"),
        "initialize",
    ]


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
    first = server_of(clock, "http", **old_over_http(server__discover=refusal))
    second = server_of(clock, "http", **old_over_http())
    client = meet(first, second)
    assert client.revision is OLD
    assert client.met.reason
    assert first.methods == ["server/discover"]
    assert second.methods == HANDSHAKE


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
    first = server_of(clock, "http", server__discover=refused)
    second = server_of(clock, "http", initialize=refused)
    third = server_of(clock, "sse", initialize=initialized("2024-11-05"))
    reached = Reached(first, second, third)
    client = Client(reach=reached).connect()
    assert reached.ways == [None, "http", "sse"]
    assert client.revision is Revision.V2024_11_05
    assert client.met.reason == (
        f"the server rejected server/discover (HTTP {status}); the server supports only HTTP+SSE"
    )
    assert third.sent[0].message["params"]["protocolVersion"] == "2024-11-05"
    client.close()
    assert first.closed
    assert second.closed


def test_an_empty_404_falls_back_to_the_old_transport(clock: VirtualTime) -> None:
    first = server_of(clock, "http", server__discover=http(404))
    second = server_of(clock, "http", initialize=http(404))
    third = server_of(clock, "sse", initialize=initialized("2024-11-05"))
    assert meet(first, second, third).met.transport == "sse"


def test_a_404_with_json_that_is_no_message_falls_back_too(clock: VirtualTime) -> None:
    refused = http(404, raw(b'{"detail":"Not Found"}'))
    first = server_of(clock, "http", server__discover=refused)
    second = server_of(clock, "http", initialize=refused)
    third = server_of(clock, "sse", initialize=initialized("2024-11-05"))
    assert meet(first, second, third).met.transport == "sse"


def test_http_sse_is_not_asked_for_a_discovery(clock: VirtualTime) -> None:
    """No revision that has one has this transport."""
    server = server_of(clock, "sse", initialize=initialized())
    client = meet(server)
    assert client.met == Met(OLD, "HTTP+SSE starts with the handshake", "sse")
    assert server.methods == HANDSHAKE


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_other_statuses_do_not(clock: VirtualTime, status: int) -> None:
    refused = http(status, trouble("http-status", f"HTTP {status}"))
    first = server_of(clock, "http", server__discover=refused)
    with pytest.raises(PeerError, match=f"HTTP {status}"):
        meet(first, server_of(clock, "http", initialize=refused))


def test_a_chosen_old_revision_falls_back_to_the_old_transport_and_keeps_its_offer(
    clock: VirtualTime,
) -> None:
    first = server_of(clock, "http", initialize=http(405, trouble("http-status", "HTTP 405")))
    second = server_of(clock, "sse", initialize=initialized("2025-03-26"))
    meet(first, second, revision=Revision.V2025_03_26)
    assert second.sent[0].message["params"]["protocolVersion"] == "2025-03-26"


def test_a_chosen_new_revision_never_falls_back_to_a_handshake(clock: VirtualTime) -> None:
    refused = http(404, trouble("http-status", "HTTP 404"))
    server = server_of(clock, "http", server__discover=refused)
    with pytest.raises(PeerError, match="HTTP 404"):
        meet(server, revision=NEW)


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
