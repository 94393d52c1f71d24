"""Named probes about messages, connections and transports, as data that a runner executes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcptest.rules.corpus.probe_steps import (
    ALIVE,
    ASK,
    Options,
    Probe,
    Step,
    call_tool,
    http,
    notification,
    raw,
    request,
    start,
    walk,
)

_TOGETHER = Options(together=True)
_RUDE = Options(rude=True)
_NEXT_PAGE: Mapping[str, Any] = {"cursor": "{page_cursor}"}
_INITIALIZE: Mapping[str, Any] = {
    "capabilities": "{client_capabilities}",
    "clientInfo": "{client_info}",
}


def _offer(name: str, version: str, beyond: str = "") -> Step:
    params = {"protocolVersion": version, **_INITIALIZE}
    bare = Options(connection="bare", together=bool(beyond), beyond=beyond)
    return request(name, "initialize", params, bare, omit=("_meta",))


def _with_id(name: str, identifier: int | str) -> Step:
    return request(name, "{alive_method}", None, Options(id=identifier, together=True))


MESSAGE_PROBES: Final[tuple[Probe, ...]] = (
    Probe(
        "offer_versions",
        "On fresh connections, initialize with a version that does not exist and then with each "
        "revision that has the handshake and is newer than what that was answered with.",
        (
            _offer("unknown", "{unsupported_version}"),
            _offer("v2024_11_05", "2024-11-05", beyond="unknown"),
            _offer("v2025_03_26", "2025-03-26", beyond="unknown"),
            _offer("v2025_06_18", "2025-06-18", beyond="unknown"),
            _offer("v2025_11_25", "2025-11-25", beyond="unknown"),
        ),
        {
            "counter_offer": "the protocolVersion in the answer to the unknown version",
            "accepted": "the revisions that were answered with themselves",
            "newest_accepted": "the newest of them and of the counter-offer",
            "counter_offer_is_newest": "whether the counter-offer is that one",
        },
        own_connection=True,
        is_slow=True,
    ),
    Probe(
        "meta_not_remembered",
        "A complete request, then on the same connection one without _meta.",
        (
            request("complete", "server/discover"),
            request("bare", "server/discover", None, _RUDE, omit=("_meta",)),
        ),
    ),
    Probe(
        "capabilities_not_remembered",
        "A tool that asks is called with the capability declared, then without.",
        (ASK, call_tool("undeclared", "{asking_tool}", declare=())),
    ),
    Probe(
        "lists_on_two_connections",
        "Every declared list is walked, a safe tool is called where there is one, and every list "
        "is walked once more on a new connection.",
        (
            walk("first"),
            call_tool("between", "{safe_tool}", "{safe_arguments}", Options(optional=True)),
            walk("second", connection="new"),
        ),
        {"differing": "the methods whose lists have not the same names in both walks"},
    ),
    Probe(
        "list_tools_twice",
        "tools/list, walked twice in a row.",
        (
            walk("first", "tools/list"),
            walk("second", "tools/list"),
        ),
        {"same_order": "whether the names came in the same order, where they are the same"},
    ),
    Probe(
        "another_client_name",
        "The same request under two client names, and once more under the first.",
        (
            request("ours", "{alive_method}", None, _TOGETHER),
            request(
                "other",
                "{alive_method}",
                None,
                _TOGETHER,
                meta={"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "0"}},
            ),
            request("again", "{alive_method}", None, _TOGETHER),
        ),
        {
            "differing": "the members of the results that differ by name, without those in _meta "
            "and those that differ under one name too"
        },
    ),
    Probe(
        "page_on_another_connection",
        "The cursor of a first page is used on a new connection.",
        (
            request("first", "tools/list"),
            request(
                "second", "tools/list", _NEXT_PAGE, Options(connection="new", of="first", rude=True)
            ),
        ),
    ),
    Probe(
        "cursor_twice",
        "The cursor of a first page is used twice.",
        (
            request("page", "tools/list"),
            request("first", "tools/list", _NEXT_PAGE, Options(of="page")),
            request("second", "tools/list", _NEXT_PAGE, Options(of="page", rude=True)),
        ),
        {"same_items": "whether both pages have the same names"},
    ),
    Probe(
        "ids_of_all_kinds",
        "Requests with a whole number, a large one, a text and a text of digits as id.",
        (
            _with_id("number", 7_001),
            _with_id("large", 9_007_199_254_740_991),
            _with_id("text", "mcptest-a"),
            _with_id("digits", "7003"),
        ),
        {"differing": "the ids that came back with another value or another type"},
    ),
    Probe(
        "unknown_notification",
        "A notification that nobody defined, then a request.",
        (notification("notify", "notifications/mcptest_unknown", {}, _RUDE), ALIVE),
    ),
    Probe(
        "batch_of_two",
        "Two pings in one array.",
        (
            raw(
                "batch",
                '[{"jsonrpc":"2.0","id":"b1","method":"ping"},'
                '{"jsonrpc":"2.0","id":"b2","method":"ping"}]',
            ),
        ),
        {"answered": "how many of the two ids were answered with a result"},
    ),
    Probe(
        "array_as_message",
        "A request inside an array, then a request by itself.",
        (
            raw("array", '[{"jsonrpc":"2.0","id":"b1","method":"{alive_method}","params":{}}]'),
            ALIVE,
        ),
    ),
    Probe(
        "close_stdin",
        "A request is answered, then stdin is closed and the end is waited for.",
        (ALIVE, Step("close", "close_stdin")),
        {
            "exited": "whether the process ended by itself within the bound",
            "seconds": "how long that took",
        },
        own_connection=True,
        is_slow=True,
        ends_connection=True,
    ),
    Probe(
        "garbage_line",
        "A line that is no JSON, then a request.",
        (raw("garbage", "this is not json"), ALIVE),
    ),
    Probe(
        "empty_line",
        "An empty line, then a request.",
        (raw("empty", " "), ALIVE),
    ),
    Probe(
        "cancel_slow_call",
        "A slow tool is called and cancelled; the answer to a request shows that the server knows, "
        "and a second call that the first would have ended by then.",
        (
            start(call_tool("call", "{slow_tool}", meta={"progressToken": "mcptest-slow"})),
            Step("cancel", "cancel"),
            ALIVE,
            call_tool("fence", "{slow_tool}"),
        ),
        {"after_cancellation": "how many messages for the cancelled request came after it"},
        own_connection=True,
        is_slow=True,
    ),
    Probe(
        "cancel_unknown",
        "A cancellation of a request that never was, then a request.",
        (
            notification(
                "cancel", "notifications/cancelled", {"requestId": "never-sent"}, options=_RUDE
            ),
            ALIVE,
        ),
    ),
    Probe(
        "cancel_malformed",
        "A cancellation without anything that it needs, then a request.",
        (
            notification(
                "cancel", "notifications/cancelled", {"requestId": {"not": "an id"}}, options=_RUDE
            ),
            ALIVE,
        ),
    ),
    Probe(
        "cancel_too_late",
        "A request is answered, then cancelled, then another follows.",
        (
            request("early", "{alive_method}", None, Options(id="answered")),
            notification("cancel", "notifications/cancelled", {"requestId": "answered"}, _RUDE),
            ALIVE,
        ),
    ),
    Probe(
        "ended_session",
        "A session of its own is begun and ended with DELETE; then its id is used once more. "
        "A server that answers DELETE with 405 leaves it unobserved.",
        (
            Step("begin", "begin"),
            http("end", "DELETE"),
            request("late", "ping"),
        ),
        own_connection=True,
    ),
    Probe(
        "two_sessions",
        "Two sessions are begun one after the other.",
        (Step("first", "begin"), Step("second", "begin")),
        {"distinct": "whether the two session ids differ"},
        own_connection=True,
    ),
    Probe(
        "streamed_answer",
        "Requests whose answers may come as an event stream; where none does, it stays unobserved.",
        (
            request("ask", "{alive_method}"),
            call_tool("call", "{safe_tool}", "{safe_arguments}", Options(optional=True)),
            call_tool(
                "log",
                "{logging_tool}",
                None,
                Options(optional=True),
                meta={"io.modelcontextprotocol/logLevel": "debug"},
            ),
        ),
        {
            "ended": "whether the stream ended after the response",
            "primed": "whether its first event had an id and empty data",
        },
    ),
    Probe(
        "reconnection",
        "A tool that closes its stream before the answer is called.",
        (call_tool("call", "{reconnecting_tool}"),),
        {"retry_given": "whether a retry field came before the stream was closed"},
    ),
    Probe(
        "events_by_name",
        "Whatever came on the event stream until now.",
        (ALIVE,),
        {"other_events": "the names of events that are neither endpoint nor message"},
    ),
)
