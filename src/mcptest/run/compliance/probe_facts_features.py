"""Facts of probes about features: structured results, sampling, elicitation, subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcptest.model.message import Message, id_key
from mcptest.peer.stateless import PREFIX
from mcptest.run.compliance.probe_seen import Fact, Seen, Unobserved, messages_of_server
from mcptest.suite.json_equality import json_equal
from mcptest.wire.envelope import decode

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
KINDS_OF_CHANGE: Mapping[str, str] = {
    "toolsListChanged": "tools.listChanged",
    "promptsListChanged": "prompts.listChanged",
    "resourcesListChanged": "resources.listChanged",
    "resourceSubscriptions": "resources.subscribe",
}
"""What a subscription may ask for, with the capability that offers it."""
_METHOD_NOT_FOUND = -32601
_URL_NEEDED = -32042


# -- structured_text


def structured_content_repeated(seen: Seen) -> bool:
    result = seen.result("call")
    if "structuredContent" not in result or result.get("isError") is True:
        raise Unobserved("the call gave no structured content")
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return any(
        json_equal(decode(text.encode("utf-8", "replace")).value, result["structuredContent"])
        for text in texts
        if isinstance(text, str)
    )


# -- sampling_with_tools


def mixed_results(seen: Seen) -> list[str]:
    _require_tool_results(seen)
    return [
        f"message {number} of a request"
        for messages in _sampled(seen)
        for number, message in enumerate(messages)
        if 0 < len(_blocks(message, "tool_result")) < len(_blocks(message))
    ]


def unanswered_uses(seen: Seen) -> list[str]:
    _require_tool_results(seen)
    missing: dict[str, None] = {}
    for messages in _sampled(seen):
        for message, following in zip(messages, [*messages[1:], None], strict=True):
            given = {str(one.get("toolUseId")) for one in _blocks(following, "tool_result")}
            used = [str(one.get("id")) for one in _blocks(message, "tool_use")]
            missing.update(dict.fromkeys(one for one in used if one not in given))
    return list(missing)


def _require_tool_results(seen: Seen) -> None:
    if not any(_blocks(one, "tool_use") for messages in _sampled(seen) for one in messages):
        raise Unobserved(
            "no tool use came back in the server's sampling requests",
            "the fixture sampling_tool, with tools offered to the model",
        )


def _sampled(seen: Seen) -> Iterator[list[Any]]:
    """The messages of every sampling request."""
    for asked in seen["call"].exchange.asked:
        if isinstance(asked, dict) and asked.get("method") == "sampling/createMessage":
            params = asked.get("params")
            messages = params.get("messages") if isinstance(params, dict) else None
            if isinstance(messages, list):
                yield messages


def _blocks(message: Any, kind: str = "") -> list[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    objects = [block for block in blocks if isinstance(block, dict)]
    return [block for block in objects if not kind or block.get("type") == kind]


# -- url_elicitation


def unknown_completions(seen: Seen) -> list[Any]:
    messages = [message for message, _ in messages_of_server(seen["call"].since)]
    completed = [
        message.params.get("elicitationId")
        for message in messages
        if message.method == "notifications/elicitation/complete"
    ]
    if not completed:
        raise Unobserved(
            "no notifications/elicitation/complete came",
            "the fixture url_eliciting_tool, with a completion that is announced",
        )
    given = {id_key(one) for message in messages for one in _ids_given_out(message)}
    return [one for one in completed if id_key(one) not in given]


def incomplete_errors(seen: Seen) -> list[str]:
    errors = [
        message.error
        for message, _ in messages_of_server(seen["call"].since)
        if _code(message) == _URL_NEEDED
    ]
    if not errors:
        raise Unobserved(
            "no error -32042 came", "the fixture url_eliciting_tool, answering with -32042"
        )
    return [str(error.get("message")) for error in errors if not _lists_urls(error)]


def _code(message: Message) -> Any:
    return message.error.get("code") if isinstance(message.error, dict) else None


def _ids_given_out(message: Message) -> Iterator[Any]:
    if message.method == "elicitation/create":
        yield message.params.get("elicitationId")
    elif _code(message) == _URL_NEEDED:
        yield from (one.get("elicitationId") for one in _elicitations(message.error))


def _elicitations(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    data = error.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _lists_urls(error: Mapping[str, Any]) -> bool:
    listed = _elicitations(error)
    return bool(listed) and all(
        one.get("mode") == "url"
        and isinstance(one.get("elicitationId"), str)
        and isinstance(one.get("url"), str)
        for one in listed
    )


# -- subscriptions


def acknowledgements(seen: Seen, step: str) -> list[Message]:
    """Those that name the step's subscription by its id, in its JSON type."""
    wanted = id_key(seen[step].identifier)
    return [
        message
        for message, _ in messages_of_server(seen[step].since)
        if message.method == ACKNOWLEDGED and id_key(_subscription(message)) == wanted
    ]


def _subscription(message: Message) -> Any:
    meta = message.params.get("_meta")
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None


def acknowledged(seen: Seen) -> list[Any]:
    steps = ("number", "text")
    if not any(seen.declares(path) for path in KINDS_OF_CHANGE.values()) and all(
        _refused(seen, step) for step in steps
    ):
        raise Unobserved("the server offers no subscriptions", "a capability to announce changes")
    return [seen[step].identifier for step in steps if acknowledgements(seen, step)]


def _refused(seen: Seen, step: str) -> bool:
    error = seen[step].exchange.error
    return isinstance(error, dict) and error.get("code") == _METHOD_NOT_FOUND


def streamed_with(seen: Seen) -> dict[str, Any]:
    http = seen["number"].exchange.http or {}
    return dict(http.get("headers") or {})


def beyond_declared(seen: Seen) -> list[str]:
    found = acknowledgements(seen, "listen")
    if not found:
        raise Unobserved("the subscription was not acknowledged")
    kinds: Sequence[Any] = [message.params.get("notifications") for message in found]
    agreed = [
        name for one in kinds if isinstance(one, dict) for name, value in one.items() if value
    ]
    return [
        name
        for name in dict.fromkeys(agreed)
        if name not in KINDS_OF_CHANGE or not seen.declares(KINDS_OF_CHANGE[name])
    ]


FACTS: Mapping[tuple[str, str], Fact] = {
    ("structured_text", "repeated"): structured_content_repeated,
    ("sampling_with_tools", "mixed"): mixed_results,
    ("sampling_with_tools", "unanswered"): unanswered_uses,
    ("url_elicitation", "unknown_completions"): unknown_completions,
    ("url_elicitation", "incomplete_errors"): incomplete_errors,
    ("listen_with_both_ids", "acknowledged"): acknowledged,
    ("listen_with_both_ids", "streamed_with"): streamed_with,
    ("listen_for_everything", "beyond_declared"): beyond_declared,
}
