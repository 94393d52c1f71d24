"""Named probes about what servers offer: input, changes, tools, tasks, authorization."""

from __future__ import annotations

from typing import Final

from mcptest.rules.corpus.probe_steps import (
    ALIVE,
    ASK,
    Options,
    Probe,
    Step,
    call_tool,
    request,
    retry,
    start,
    walk,
)
from mcptest.suite.check_forms import Check

_COMPLETE = Options(complete=True)


def _task(name: str, method: str, of: str, needs: str = "") -> Step:
    return request(name, method, {}, Options(of=of, needs=needs))


def _create(name: str) -> Step:
    params = {"name": "{task_tool}", "arguments": {}, "task": {"ttl": 60_000}}
    return request(name, "tools/call", params)


def _change(what: str, tool: str) -> tuple[Step, ...]:
    """A list before and after the call that changes it, and the notification that tells of it."""
    listed = f"{what}/list"
    return (
        Step("listen", "listen", options=Options(only=f"{what}ListChanged")),
        walk("before", listed),
        call_tool("change", tool),
        Step("announced", "await_change", options=Options(only=f"notifications/{listed}_changed")),
        walk("later", listed),
    )


FEATURE_PROBES: Final[tuple[Probe, ...]] = (
    Probe(
        "partial_answers",
        "A tool that asks is retried with no answer at all.",
        (ASK, retry("retry", "none")),
    ),
    Probe(
        "extra_answers",
        "A tool that asks is retried with all answers and one that nobody asked for.",
        (ASK, retry("retry", "with_extra")),
    ),
    Probe(
        "malformed_answers",
        "A tool that asks is retried with inputResponses that is no object.",
        (ASK, retry("retry", "malformed")),
    ),
    Probe(
        "tampered_state",
        "A tool that asks is retried with all answers and a requestState with one character "
        "changed.",
        (ASK, retry("retry", "all", tampered=True)),
    ),
    Probe(
        "state_of_another_request",
        "A tool that asks is called with other arguments, and then retried with these and the "
        "requestState of the first call.",
        (
            walk("lists", "tools/list"),
            ASK,
            call_tool(
                "other",
                "{asking_tool}",
                None,
                Options(other_arguments=True),
                declare=ASK.send.declare,
            ),
            retry("retry", "all", other_arguments=True),
        ),
    ),
    Probe(
        "abandoned_input",
        "A tool asks and is never answered; then a request follows.",
        (ASK, ALIVE),
    ),
    Probe(
        "listen_with_both_ids",
        "Two subscriptions, one with a number and one with a text as id.",
        (
            Step("number", "listen", options=Options(id=7_002, together=True)),
            Step("text", "listen", options=Options(id="7003")),
        ),
        {
            "acknowledged": "the ids that were acknowledged in their own type",
            "streamed_with": "the headers of the stream",
        },
    ),
    Probe(
        "listen_for_everything",
        "A subscription to every kind of change.",
        (Step("listen", "listen", options=Options(everything=True)),),
        {"beyond_declared": "acknowledged kinds that the server does not declare"},
    ),
    Probe(
        "change_of_tools",
        "A tool that changes the list of tools is called, with a subscription where there are any.",
        _change("tools", "{tool_changing_tools}"),
        {"announced": "whether notifications/tools/list_changed came within the bound"},
    ),
    Probe(
        "change_of_prompts",
        "A tool that changes the list of prompts is called, with a subscription where there are "
        "any.",
        _change("prompts", "{tool_changing_prompts}"),
        {"announced": "whether notifications/prompts/list_changed came within the bound"},
    ),
    Probe(
        "number_in_header",
        "A tool with an integer x-mcp-header argument is called; the header has the number with "
        "a fraction of zero, as in 42.0.",
        (
            call_tool(
                "call",
                "{header_tool}",
                "{header_arguments}",
                Options(integer_header=True),
                headers={"{header_name}": "42.0"},
            ),
        ),
    ),
    Probe(
        "header_annotations",
        "Every listed tool's inputSchema is searched for x-mcp-header.",
        (walk("lists", "tools/list"),),
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
            start(
                call_tool(
                    "loud", "{logging_tool}", meta={"io.modelcontextprotocol/logLevel": "debug"}
                )
            ),
            call_tool("silent", "{logging_tool}"),
            Step("collect", "collect", options=Options(of="loud")),
        ),
        {"on_the_silent_stream": "log messages on the stream of the call that did not ask"},
    ),
    Probe(
        "sampling_with_tools",
        "A tool that samples is called and its requests are answered with tool uses.",
        (call_tool("call", "{sampling_tool}", None, _COMPLETE, declare=("sampling.tools",)),),
        {
            "mixed": "messages with a tool_result beside other content",
            "unanswered": "tool uses that the next message did not answer",
        },
    ),
    Probe(
        "declined_elicitation",
        "A tool that elicits is called twice; the user declines, then cancels.",
        (
            call_tool(
                "declined", "{eliciting_tool}", None, _COMPLETE, declare=("elicitation.decline",)
            ),
            call_tool(
                "cancelled", "{eliciting_tool}", None, _COMPLETE, declare=("elicitation.cancel",)
            ),
        ),
    ),
    Probe(
        "url_elicitation",
        "A tool that elicits with a URL is called.",
        (
            call_tool(
                "call", "{url_eliciting_tool}", None, _COMPLETE, declare=("elicitation.url",)
            ),
            ALIVE,
        ),
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
            _create("create"),
            start(_task("result", "tasks/result", "create")),
            Step("poll", "poll", Check(method="tasks/get", params={}), Options(of="create")),
            Step("collect", "collect", options=Options(of="result")),
            _task("ended", "tasks/get", "create"),
            _create("second"),
            _task("cancel", "tasks/cancel", "second", needs="tasks.cancel"),
            walk("list", "tasks/list", needs="tasks.list"),
            _task("cancel_ended", "tasks/cancel", "create", needs="tasks.cancel"),
            _task("later", "tasks/get", "second"),
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
        own_connection=True,
        is_slow=True,
    ),
    Probe(
        "protected_resource_metadata",
        "A request without a token; then the metadata that the challenge names, or the two "
        "well-known places.",
        (
            request(
                "challenge",
                "{alive_method}",
                None,
                Options(connection="bare"),
                headers={"Authorization": None},
            ),
            Step("metadata", "fetch_metadata", options=Options(of="challenge")),
        ),
        {
            "found": "whether the metadata document was found",
            "named_in_challenge": "whether WWW-Authenticate names it",
            "authorization_servers": "what the document lists under that name",
            "offered_scopes": "the scopes of the challenge and of the document",
        },
    ),
)
