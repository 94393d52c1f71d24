"""Named probes: what takes more than one message, as data that a runner executes.

A probe is a list of steps, taken in order over one connection unless a step says otherwise. What
came after a step is the target `steps.NAME`, what the runner works out of all of them is
`probe.FACT`. A step that can't be taken leaves its rule unobserved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcptest.rules.corpus.probe_steps import (
    Probe,
    Step,
    call_tool,
    notification,
    request,
    retry,
)
from mcptest.suite.check_forms import Check

_ALIVE = request("after", "{alive_method}")
_ASK = call_tool("ask", "{asking_tool}", declare=("elicitation", "sampling", "roots"))
_INITIALIZE: Mapping[str, Any] = {
    "capabilities": "{client_capabilities}",
    "clientInfo": "{client_info}",
}


def _offer(name: str, version: str) -> Step:
    params = {"protocolVersion": version, **_INITIALIZE}
    return request(name, "initialize", params, connection="new")


_ALL = (
    Probe(
        "offer_versions",
        "On fresh connections, initialize with a version that does not exist and then with each "
        "revision that has the handshake.",
        (
            _offer("unknown", "{unsupported_version}"),
            _offer("v2024_11_05", "2024-11-05"),
            _offer("v2025_03_26", "2025-03-26"),
            _offer("v2025_06_18", "2025-06-18"),
            _offer("v2025_11_25", "2025-11-25"),
        ),
        {
            "counter_offer": "the protocolVersion in the answer to the unknown version",
            "accepted": "the revisions that were answered with themselves",
            "newest_accepted": "the newest of them",
            "counter_offer_is_newest": "whether the counter-offer is the newest of them",
        },
    ),
    Probe(
        "meta_not_remembered",
        "A complete request, then on the same connection one without _meta.",
        (
            request("complete", "server/discover"),
            request("bare", "server/discover", omit=("_meta",)),
        ),
    ),
    Probe(
        "capabilities_not_remembered",
        "A tool that asks is called with the capability declared, then without.",
        (_ASK, call_tool("undeclared", "{asking_tool}", declare=())),
    ),
    Probe(
        "lists_on_two_connections",
        "Every declared list is walked, a safe tool is called where there is one, and every list "
        "is walked once more on a new connection.",
        (
            Step("first", "walk_lists"),
            call_tool("between", "{safe_tool}", "{safe_arguments}"),
            Step("second", "walk_lists", options={"connection": "new"}),
        ),
        {"differing": "the methods whose lists have not the same names in both walks"},
    ),
    Probe(
        "list_tools_twice",
        "tools/list, walked twice in a row.",
        (
            Step("first", "walk_lists", options={"only": "tools/list"}),
            Step("second", "walk_lists", options={"only": "tools/list"}),
        ),
        {"same_order": "whether the names came in the same order, where they are the same"},
    ),
    Probe(
        "another_client_name",
        "The same request under two client names.",
        (
            request("ours", "{alive_method}"),
            request(
                "other",
                "{alive_method}",
                meta={"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "0"}},
            ),
        ),
        {"differing": "the members of the results that differ, without those in _meta"},
    ),
    Probe(
        "page_on_another_connection",
        "The cursor of a first page is used on a new connection.",
        (
            request("first", "tools/list"),
            request("second", "tools/list", {"cursor": "{page_cursor}"}, connection="new"),
        ),
    ),
    Probe(
        "cursor_twice",
        "The same cursor is used twice.",
        (
            request("first", "tools/list", {"cursor": "{page_cursor}"}),
            request("second", "tools/list", {"cursor": "{page_cursor}"}),
        ),
        {"same_items": "whether both pages have the same names"},
    ),
    Probe(
        "ids_of_all_kinds",
        "Requests with a whole number, a large one, a text and a text of digits as id.",
        (
            request("number", "{alive_method}", id=7_001),
            request("large", "{alive_method}", id=9_007_199_254_740_991),
            request("text", "{alive_method}", id="mcptest-a"),
            request("digits", "{alive_method}", id="7001"),
        ),
        {"differing": "the ids that came back with another value or another type"},
    ),
    Probe(
        "unknown_notification",
        "A notification that nobody defined, then a request.",
        (notification("notify", "notifications/mcptest_unknown", {}), _ALIVE),
    ),
    Probe(
        "batch_of_two",
        "Two pings in one array.",
        (
            Step(
                "batch",
                "raw",
                Check(
                    raw='[{"jsonrpc":"2.0","id":"b1","method":"ping"},'
                    '{"jsonrpc":"2.0","id":"b2","method":"ping"}]'
                ),
            ),
        ),
        {"answered": "how many of the two ids were answered with a result"},
    ),
    Probe(
        "array_as_message",
        "A request inside an array, then a request by itself.",
        (
            Step(
                "array",
                "raw",
                Check(raw='[{"jsonrpc":"2.0","id":"b1","method":"{alive_method}","params":{}}]'),
            ),
            _ALIVE,
        ),
    ),
    Probe(
        "close_stdin",
        "A request is answered, then stdin is closed and the end is waited for.",
        (_ALIVE, Step("close", "close_stdin")),
        {
            "exited": "whether the process ended by itself within the bound",
            "seconds": "how long that took",
        },
    ),
    Probe(
        "garbage_line",
        "A line that is no JSON, then a request.",
        (Step("garbage", "raw", Check(raw="this is not json")), _ALIVE),
    ),
    Probe(
        "empty_line",
        "An empty line, then a request.",
        (Step("empty", "raw", Check(raw=" ")), _ALIVE),
    ),
    Probe(
        "cancel_slow_call",
        "A slow tool is called and cancelled, then a request shows that time went by.",
        (
            Step("call", "start", call_tool("call", "{slow_tool}").send),
            Step("cancel", "cancel"),
            _ALIVE,
        ),
        {"after_cancellation": "how many messages for the cancelled request came after it"},
    ),
    Probe(
        "cancel_unknown",
        "A cancellation of a request that never was, then a request.",
        (notification("cancel", "notifications/cancelled", {"requestId": "never-sent"}), _ALIVE),
    ),
    Probe(
        "cancel_malformed",
        "A cancellation without anything that it needs, then a request.",
        (
            notification("cancel", "notifications/cancelled", {"requestId": {"not": "an id"}}),
            _ALIVE,
        ),
    ),
    Probe(
        "cancel_too_late",
        "A request is answered, then cancelled, then another follows.",
        (
            request("early", "{alive_method}", id="answered"),
            notification("cancel", "notifications/cancelled", {"requestId": "answered"}),
            _ALIVE,
        ),
    ),
    Probe(
        "ended_session",
        "A session of its own is begun and ended with DELETE; then its id is used once more. "
        "A server that answers DELETE with 405 leaves it unobserved.",
        (
            _offer("begin", "{revision}"),
            Step("end", "close_session"),
            request("late", "ping"),
        ),
    ),
    Probe(
        "two_sessions",
        "Two sessions are begun one after the other.",
        (_offer("first", "{revision}"), _offer("second", "{revision}")),
        {"distinct": "whether the two session ids differ"},
    ),
    Probe(
        "streamed_answer",
        "A request whose answer comes as an event stream; where none does, it stays unobserved.",
        (request("ask", "{alive_method}"),),
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
        (_ALIVE,),
        {"other_events": "the names of events that are neither endpoint nor message"},
    ),
    Probe(
        "partial_answers",
        "A tool that asks is retried with no answer at all.",
        (_ASK, retry("retry", "none")),
    ),
    Probe(
        "extra_answers",
        "A tool that asks is retried with all answers and one that nobody asked for.",
        (_ASK, retry("retry", "with_extra")),
    ),
    Probe(
        "malformed_answers",
        "A tool that asks is retried with inputResponses that is no object.",
        (_ASK, retry("retry", "malformed")),
    ),
    Probe(
        "tampered_state",
        "A tool that asks is retried with all answers and a requestState with one character "
        "changed.",
        (_ASK, retry("retry", "all", state="tampered")),
    ),
    Probe(
        "state_of_another_request",
        "A tool that asks is retried with its requestState and other arguments.",
        (_ASK, retry("retry", "all", arguments="other")),
    ),
    Probe(
        "abandoned_input",
        "A tool asks and is never answered; then a request follows.",
        (_ASK, _ALIVE),
    ),
    Probe(
        "listen_with_both_ids",
        "Two subscriptions, one with a number and one with a text as id.",
        (
            Step("number", "listen", options={"id": 7_002}),
            Step("text", "listen", options={"id": "7002"}),
        ),
        {
            "acknowledged": "the ids that were acknowledged in their own type",
            "streamed_with": "the headers of the stream",
        },
    ),
    Probe(
        "listen_for_everything",
        "A subscription to every kind of change.",
        (Step("listen", "listen", options={"filter": "all"}),),
        {"beyond_declared": "acknowledged kinds that the server does not declare"},
    ),
    Probe(
        "change_of_tools",
        "A tool that changes the list of tools is called, with a subscription where there are any.",
        (call_tool("change", "{tool_changing_tools}"),),
        {"announced": "whether notifications/tools/list_changed came within the bound"},
    ),
    Probe(
        "change_of_prompts",
        "A tool that changes the list of prompts is called.",
        (call_tool("change", "{tool_changing_prompts}"),),
        {"announced": "whether notifications/prompts/list_changed came within the bound"},
    ),
    Probe(
        "number_in_header",
        "A tool with an integer x-mcp-header argument is called; the header has the number with "
        "a fraction of zero, as in 42.0.",
        (
            call_tool(
                "call", "{header_tool}", "{header_arguments}", headers={"{header_name}": "42.0"}
            ),
        ),
    ),
    Probe(
        "header_annotations",
        "Every listed tool's inputSchema is searched for x-mcp-header.",
        (Step("lists", "walk_lists", options={"only": "tools/list"}),),
        {"problems": "annotations that are empty, no token, ambiguous or out of reach"},
    ),
    Probe(
        "structured_text",
        "A tool with an outputSchema is called.",
        (call_tool("call", "{structured_tool}", "{structured_arguments}"),),
        {"repeated": "whether a text block holds the structuredContent as JSON"},
    ),
    Probe(
        "logging_beside_silence",
        "A tool that logs is called twice at once: with a log level and without.",
        (
            Step("loud", "start", call_tool("loud", "{logging_tool}").send, {"log_level": "debug"}),
            call_tool("silent", "{logging_tool}"),
        ),
        {"on_the_silent_stream": "log messages on the stream of the call that did not ask"},
    ),
    Probe(
        "sampling_with_tools",
        "A tool that samples is called and its requests are answered with tool uses.",
        (call_tool("call", "{sampling_tool}", declare=("sampling.tools",)),),
        {
            "mixed": "messages with a tool_result beside other content",
            "unanswered": "tool uses that the next message did not answer",
        },
    ),
    Probe(
        "declined_elicitation",
        "A tool that elicits is called twice; the user declines, then cancels.",
        (
            call_tool("declined", "{eliciting_tool}", declare=("elicitation.decline",)),
            call_tool("cancelled", "{eliciting_tool}", declare=("elicitation.cancel",)),
        ),
    ),
    Probe(
        "url_elicitation",
        "A tool that elicits with a URL is called.",
        (call_tool("call", "{url_eliciting_tool}", declare=("elicitation.url",)),),
        {
            "unknown_completions": "ids in elicitation/complete that were never given out",
            "incomplete_errors": "-32042 errors that do not list url elicitations with ids",
        },
    ),
    Probe(
        "task_lifecycle",
        "A tool is called as a task, polled, its result fetched, the list read; a second task is "
        "cancelled, and so is the first, which has ended.",
        (
            request("create", "tools/call", {"name": "{task_tool}", "arguments": {}, "task": {}}),
            request("result", "tasks/result", {"taskId": "{unknown_task}"}),
            request("list", "tasks/list"),
            request("cancel_ended", "tasks/cancel", {"taskId": "{unknown_task}"}),
        ),
        {
            "ids_are_distinct": "whether two tasks have different ids, both texts",
            "illegal_transitions": "changes of status that are not allowed",
            "bad_times": "createdAt or lastUpdatedAt that are no ISO 8601 times, a missing ttl",
            "result_is_related": "whether tasks/result named its task in _meta",
            "result_waited": "whether tasks/result came only after the end",
            "listed": "whether tasks/list has what tasks/get can find",
            "cancelled_for_good": "whether the cancelled task said so and stayed so",
        },
    ),
    Probe(
        "protected_resource_metadata",
        "A request without a token; then the metadata that the challenge names, or the two "
        "well-known places.",
        (request("challenge", "{alive_method}", headers={"Authorization": None}),),
        {
            "found": "whether the metadata document was found",
            "named_in_challenge": "whether WWW-Authenticate names it",
            "authorization_servers": "what the document lists under that name",
            "offered_scopes": "the scopes of the challenge and of the document",
        },
    ),
)

PROBES: Final[Mapping[str, Probe]] = {probe.name: probe for probe in _ALL}
