"""The demo server with one fault: `python faulty_demo.py PROBE [options of the demo]`.

There is one fault for each probe: what it does to messages on their way in and out, or to a part
of the demo.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

Obj = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
CAPABILITIES = PREFIX + "clientCapabilities"
CANCELLED = "notifications/cancelled"

asked: dict[Any, Obj] = {}
"""Requests by their ids."""
remembered: dict[str, Any] = {}
counted: dict[str, int] = {}


def count(name: str) -> int:
    counted[name] = counted.get(name, 0) + 1
    return counted[name]


def params_of(message: Obj) -> Obj:
    params: Obj = message.setdefault("params", {})
    return params


def method_asked(message: Obj) -> str:
    return str(asked.get(message.get("id"), {}).get("method"))


def unknown(message: Obj) -> None:
    message["method"] = "mcptest/unknown"


# -- on their way in


def remember_meta(message: Obj) -> None:
    params = params_of(message)
    params["_meta"] = remembered.setdefault("meta", params.get("_meta", {}))


def remember_capabilities(message: Obj) -> None:
    meta = params_of(message).get("_meta", {})
    if meta.get(CAPABILITIES):
        remembered["capabilities"] = meta[CAPABILITIES]
    elif CAPABILITIES in meta:
        meta[CAPABILITIES] = remembered.get("capabilities", {})


def forget_cursors(message: Obj) -> None:
    if message.get("method") == "tools/list":
        if "cursor" in params_of(message) and "listed" not in remembered:
            message["params"]["cursor"] = "of another connection"
        remembered["listed"] = True


def answer_notifications(message: Obj) -> None:
    if message.get("method") in {CANCELLED, "notifications/mcptest_unknown"}:
        message["id"] = "an answer to a notification"
        unknown(message)


def ignore_cancellation(message: Obj) -> None:
    if message.get("method") == CANCELLED:
        message["method"] = "notifications/ignored"


def refuse_input(message: Obj, when: Callable[[Any], bool]) -> None:
    if "inputResponses" in params_of(message) and when(message["params"]["inputResponses"]):
        unknown(message)


def overlook_malformed_input(message: Obj) -> None:
    if isinstance(params_of(message).get("inputResponses"), str):
        del message["params"]["inputResponses"], message["params"]["requestState"]


def accept_any_state(message: Obj) -> None:
    if "requestState" in params_of(message):
        message["params"]["requestState"] = remembered["state"]


def overlook_arguments(message: Obj) -> None:
    if message.get("method") == "tools/call":
        params_of(message)["arguments"] = {}


def wait_for_input(message: Obj) -> None:
    if "state" in remembered and message.get("method") == "server/discover":
        unknown(message)


def log_for_everybody(message: Obj) -> None:
    params_of(message).get("_meta", {})[PREFIX + "logLevel"] = "debug"


def die_when_declined(message: Obj) -> None:
    if isinstance(message.get("result"), dict) and message["result"].get("action") == "decline":
        os._exit(3)


# -- on their way out


def offer_an_old_version(message: Obj) -> None:
    if asked.get(message.get("id"), {}).get("params", {}).get("protocolVersion") == "1999-01-01":
        message["result"]["protocolVersion"] = "2024-11-05"


def name_tools_by_process(message: Obj) -> None:
    if method_asked(message) == "tools/list":
        message["result"]["tools"][0] = {
            **message["result"]["tools"][0],
            "name": f"tool_of_{os.getpid()}",
        }


def turn_tools_around(message: Obj) -> None:
    if method_asked(message) == "tools/list":
        tools = message["result"]["tools"]
        first = count("turned") % len(tools)
        message["result"]["tools"] = tools[first:] + tools[:first]


def serve_by_name(message: Obj) -> None:
    meta = asked.get(message.get("id"), {}).get("params", {}).get("_meta", {})
    if meta.get(PREFIX + "clientInfo", {}).get("name") == "other":
        message["result"]["instructions"] = "You are somebody else."


def use_cursors_up(message: Obj) -> None:
    request = asked.get(message.get("id"), {})
    cursor = request.get("params", {}).get("cursor")
    if cursor is not None and count(cursor) > 1:
        message["result"]["tools"] = []


def turn_ids_into_texts(message: Obj) -> None:
    if message.get("id") == 7_001 and "method" not in message:
        message["id"] = "7001"


def remember_state(message: Obj) -> None:
    result = message.get("result")
    if isinstance(result, dict) and "requestState" in result:
        remembered["state"] = result["requestState"]


def turn_subscriptions_into_texts(message: Obj) -> None:
    if message.get("method") == "notifications/subscriptions/acknowledged":
        meta = params_of(message)["_meta"]
        if meta[PREFIX + "subscriptionId"] == 7_002:
            meta[PREFIX + "subscriptionId"] = "7002"


def agree_to_everything(message: Obj) -> None:
    if message.get("method") == "notifications/subscriptions/acknowledged":
        params_of(message)["notifications"] = {"resourcesListChanged": True}


def announce_nothing(message: Obj) -> None:
    if str(message.get("method")).endswith("list_changed"):
        message["method"] = "notifications/nothing"


def spoil_annotations(message: Obj) -> None:
    if method_asked(message) == "tools/list":
        schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": ""}}}
        message["result"]["tools"].append({"name": "spoiled", "inputSchema": schema})


def say_something_else(message: Obj) -> None:
    result = message.get("result")
    if isinstance(result, dict) and "structuredContent" in result:
        result["content"] = [{"type": "text", "text": "done"}]


def add_a_word_to_tool_results(message: Obj) -> None:
    if message.get("method") == "sampling/createMessage":
        for one in message["params"]["messages"]:
            blocks = one["content"]
            if isinstance(blocks, list) and any(b["type"] == "tool_result" for b in blocks):
                blocks.append({"type": "text", "text": "please"})


def complete_what_nobody_began(message: Obj) -> None:
    if message.get("method") == "notifications/elicitation/complete":
        params_of(message)["elicitationId"] = "nobody began this"


def tell_no_times(message: Obj) -> None:
    result = message.get("result")
    for task in (result, result.get("task")) if isinstance(result, dict) else ():
        if isinstance(task, dict) and "createdAt" in task:
            task["createdAt"] = "yesterday"


def name_no_authorization_server(message: Obj) -> None:
    if "bearer_methods_supported" in message:
        del message["authorization_servers"]


# -- in parts of the demo


def keep_ended_sessions() -> None:
    from mcptest.servers.demo.http_server import Sessions

    Sessions.delete = lambda self, request, connection: connection.respond(200)  # type: ignore[method-assign]  # the fault


def give_out_one_session_id() -> None:
    from mcptest.servers.demo import http_server

    module: Any = http_server
    module.os = SimpleNamespace(**{**vars(os), "urandom": lambda size: b"1" * size})


def never_prime_streams() -> None:
    from mcptest.servers.demo.http_server import ServerStream

    attach = ServerStream.attach
    ServerStream.attach = lambda self, connection, headers, prime: attach(  # type: ignore[method-assign]  # the fault
        self, connection, headers, False
    )


def close_streams_without_a_word() -> None:
    from mcptest.servers.demo.http_server import ServerStream

    def pause(self: Any) -> None:
        connection, self._connection = self._connection, None
        connection.end_stream()

    ServerStream.pause = pause  # type: ignore[method-assign]  # the fault


def send_other_events() -> None:
    from mcptest.servers.demo.http_server import SseClient

    send = SseClient.send

    def with_another(self: Any, message: Any) -> None:
        self._connection.stream(b"event: news\ndata: none\n\n")
        send(self, message)

    SseClient.send = with_another  # type: ignore[method-assign]  # the fault


def compare_numbers_as_texts() -> None:
    from mcptest.servers.demo import http_server

    http_server._is_number = lambda text, expected: text == str(expected)


def die_of_empty_lines() -> None:
    from mcptest.wire.lines import LineReader

    feed = LineReader.feed

    def feed_or_die(self: Any, chunk: bytes) -> Any:
        lines = chunk.split(b"\n")[:-1]
        if any(not line.rstrip(b"\r") for line in lines[bool(self.held) :]):
            os._exit(3)
        return feed(self, chunk)

    LineReader.feed = feed_or_die  # type: ignore[method-assign]  # the fault


IN: dict[str, Callable[[Obj], None]] = {
    "meta_not_remembered": remember_meta,
    "capabilities_not_remembered": remember_capabilities,
    "page_on_another_connection": forget_cursors,
    "unknown_notification": answer_notifications,
    "cancel_unknown": answer_notifications,
    "cancel_malformed": answer_notifications,
    "cancel_too_late": answer_notifications,
    "cancel_slow_call": ignore_cancellation,
    "partial_answers": lambda message: refuse_input(message, lambda given: given == {}),
    "extra_answers": lambda message: refuse_input(message, lambda given: len(given) > 1),
    "malformed_answers": overlook_malformed_input,
    "tampered_state": accept_any_state,
    "state_of_another_request": overlook_arguments,
    "abandoned_input": wait_for_input,
    "logging_beside_silence": log_for_everybody,
    "declined_elicitation": die_when_declined,
}
OUT: dict[str, Callable[[Obj], None]] = {
    "offer_versions": offer_an_old_version,
    "lists_on_two_connections": name_tools_by_process,
    "list_tools_twice": turn_tools_around,
    "another_client_name": serve_by_name,
    "cursor_twice": use_cursors_up,
    "ids_of_all_kinds": turn_ids_into_texts,
    "tampered_state": remember_state,
    "abandoned_input": remember_state,
    "listen_with_both_ids": turn_subscriptions_into_texts,
    "listen_for_everything": agree_to_everything,
    "change_of_tools": announce_nothing,
    "change_of_prompts": announce_nothing,
    "header_annotations": spoil_annotations,
    "structured_text": say_something_else,
    "sampling_with_tools": add_a_word_to_tool_results,
    "url_elicitation": complete_what_nobody_began,
    "task_lifecycle": tell_no_times,
    "protected_resource_metadata": name_no_authorization_server,
}
PARTS: dict[str, Callable[[], None]] = {
    "ended_session": keep_ended_sessions,
    "two_sessions": give_out_one_session_id,
    "streamed_answer": never_prime_streams,
    "reconnection": close_streams_without_a_word,
    "events_by_name": send_other_events,
    "number_in_header": compare_numbers_as_texts,
    "empty_line": die_of_empty_lines,
}
ARRAYS: dict[str, Callable[[list[Any]], Any]] = {
    "batch_of_two": lambda items: items[:1],
    "array_as_message": lambda items: items[0],
}
AT_THE_END = "close_stdin"
OF_GARBAGE = "garbage_line"
FAULTS = frozenset({*IN, *OUT, *PARTS, *ARRAYS, AT_THE_END, OF_GARBAGE})


def break_messages(probe: str) -> None:
    """Put the fault between the demo and whoever it talks to."""
    from mcptest.servers.demo import jsonrpc

    def read_text(raw: bytes) -> Any:
        try:
            value = jsonrpc.read_text(raw)
        except jsonrpc.Refusal:
            if probe == OF_GARBAGE:
                os._exit(3)
            raise
        if isinstance(value, list):
            return ARRAYS[probe](value) if probe in ARRAYS else value
        if probe in IN:
            IN[probe](value)
        if "method" in value and isinstance(value.get("id"), str | int):
            asked[value["id"]] = value
        return value

    def encode(message: Any) -> bytes:
        if isinstance(message, dict) and probe in OUT:
            OUT[probe](message)
        return jsonrpc.encode(message)

    for name in ("demo.stdio_server", "demo.http_server", "http_connection"):
        module: Any = importlib.import_module(f"mcptest.servers.{name}")
        module.encode = encode
        if hasattr(module, "read_text"):
            module.read_text = read_text


def main(probe: str, options: list[str]) -> int:
    from mcptest.servers.demo.__main__ import run
    from mcptest.servers.demo.start_options import parse_options

    break_messages(probe)
    PARTS.get(probe, lambda: None)()
    code = run(parse_options(options))
    if probe == AT_THE_END:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pause()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
