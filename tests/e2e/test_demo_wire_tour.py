"""A tour of all methods and tools in every revision, each message checked by the official schema.

The official schemas are not part of the project; without them these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.e2e.demo_peer import (
    ALL,
    CAPABILITIES,
    PREFIX,
    A,
    B,
    C,
    D,
    E,
    HttpDemo,
    Obj,
    StdioDemo,
    client_answer,
    events_of,
    http_demo,
    initialize_params,
    lines_of,
    meta,
    send,
    stateless_headers,
)

SCHEMAS = Path(__file__).parents[3] / "shared" / "data" / "mcp-schema"
pytestmark = pytest.mark.skipif(
    not SCHEMAS.is_dir(), reason="the official schemas are not beside the project"
)

RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "logging/setLevel": "EmptyResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
MESSAGES = {
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "sampling/createMessage": "CreateMessageRequest",
    "elicitation/create": "ElicitRequest",
    "roots/list": "ListRootsRequest",
}
ENVELOPES = {
    "result": {D: "JSONRPCResultResponse", E: "JSONRPCResultResponse"},
    "error": {A: "JSONRPCError", B: "JSONRPCError", C: "JSONRPCError"},
}


@cache
def schema_of(version: str) -> Obj:
    schema: Obj = json.loads((SCHEMAS / version / "schema.json").read_text(encoding="utf-8"))
    return schema


@cache
def validator(version: str, name: str) -> Any:
    import jsonschema_rs

    schema = schema_of(version)
    key = "$defs" if "$defs" in schema else "definitions"
    assert name in schema[key], f"{version} has no {name}"
    return jsonschema_rs.validator_for({**schema, "$ref": f"#/{key}/{name}"})


def check(version: str, name: str, value: Any) -> None:
    problems = [
        f"{error.message} at {error.instance_path}"
        for error in validator(version, name).iter_errors(value)
    ]
    assert not problems, (version, name, value, problems)


def check_message(version: str, message: Any, method: str | None) -> None:
    """Validate what the server sent; `method` is that of the request which it answers."""
    if isinstance(message, list):
        for item in message:
            check_message(version, item, method)
    elif "method" in message:
        envelope = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
        check(version, envelope, message)
        check(version, MESSAGES[message["method"]], message)
    elif "error" in message:
        check(version, ENVELOPES["error"].get(version, "JSONRPCErrorResponse"), message)
    else:
        check(version, ENVELOPES["result"].get(version, "JSONRPCResponse"), message)
        assert method is not None
        check_result(version, message["result"], method)


def check_result(version: str, result: Obj, method: str) -> None:
    if result.get("resultType") == "input_required":
        check(version, "InputRequiredResult", result)
        for request in result["inputRequests"].values():
            check(version, "InputRequest", request)
    else:
        check(version, RESULTS[method], result)


class Peer(Protocol):
    """One client of one revision, whatever carries it. Checks all that it sees."""

    def request(self, method: str, params: Obj) -> Obj: ...


class StdioPeer:
    def __init__(self, demo: StdioDemo, version: str) -> None:
        self._demo = demo
        self._version = version
        self._checked = 0

    def request(self, method: str, params: Obj) -> Obj:
        response = self._demo.request(method, params)
        for message in self._demo.seen[self._checked :]:
            check_message(self._version, message, method)
        self._checked = len(self._demo.seen)
        return response

    def notify(self, method: str) -> None:
        self._demo.send({"jsonrpc": "2.0", "method": method})


class HttpPeer:
    def __init__(self, demo: HttpDemo, version: str) -> None:
        self._demo = demo
        self._version = version
        self._session: dict[str, str] = {}
        self._last_id = 0

    def request(self, method: str, params: Obj) -> Obj:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        connection = self._demo.connect()
        send(connection, "POST", message, self._headers(message))
        with connection.getresponse() as response:
            found = response.headers.get("mcp-session-id")
            if found:
                self._session = {"Mcp-Session-Id": found}
            for seen in self._messages(response):
                check_message(self._version, seen, method)
                if "method" in seen and "id" in seen:
                    self._post({"jsonrpc": "2.0", "id": seen["id"], "result": client_answer(seen)})
                elif "method" not in seen:
                    answer: Obj = seen
        connection.close()
        return answer

    def notify(self, method: str) -> None:
        self._post({"jsonrpc": "2.0", "method": method})

    def _post(self, message: Obj) -> None:
        assert self._demo.ask("POST", message, self._headers(message)).status == 202

    def _headers(self, message: Obj) -> dict[str, str]:
        if self._version == E:
            return stateless_headers(message)
        headers = dict(self._session)
        if headers and self._version in {C, D}:
            headers["MCP-Protocol-Version"] = self._version
        return headers

    @staticmethod
    def _messages(response: Any) -> Iterator[Obj]:
        if response.headers["content-type"] == "application/json":
            yield json.loads(response.read())
            return
        for event in events_of(lines_of(response)):
            if event.get("data"):
                yield json.loads(event["data"])


@contextmanager
def connected(way: str, version: str, folder: Path) -> Iterator[StdioPeer | HttpPeer]:
    if way == "stdio":
        with StdioDemo() as demo:
            yield StdioPeer(demo, version)
    else:
        with http_demo(folder, "--response", way) as http:
            yield HttpPeer(http, version)


ARGUMENTS: dict[str, Obj] = {
    "add": {"a": 1.5, "b": -2},
    "echo": {"text": "ü☃\u2028 \x00 \U0001f600"},
    "fail": {"message": "on purpose"},
    "countdown": {"steps": 3, "delay_ms": 1},
    "log": {"levels": ["info", "emergency"]},
    "ask_model": {"question": "?"},
    "ask_user": {"question": "?"},
    "list_roots": {},
    "read_file": {"path": "welcome.txt"},
    "write_file": {"path": "new.txt", "text": "new"},
    "list_files": {},
    "weather": {"city": "Bern", "unit": "fahrenheit"},
    "image": {},
    "link": {},
    "slow": {"seconds": 0},
    "bump": {},
    "toggle_tool": {},
    "extra": {},
}


def begin(peer: StdioPeer | HttpPeer, version: str) -> Obj:
    """Handshake or discover, and what each request then has in its params."""
    if version == E:
        base = {"_meta": meta(**{PREFIX + "logLevel": "debug", "progressToken": "tour"})}
        assert peer.request("server/discover", base)["result"]["supportedVersions"] == [E]
        return base
    hello = peer.request("initialize", initialize_params(version, CAPABILITIES))
    assert hello["result"]["protocolVersion"] == version
    peer.notify("notifications/initialized")
    for method, params in (
        ("ping", {}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "demo://counter"}),
        ("resources/unsubscribe", {"uri": "demo://counter"}),
        ("resources/subscribe", {"uri": "demo://counter"}),
        ("tools/call", {"name": "toggle_tool"}),
    ):
        assert "result" in peer.request(method, params), method
    return {"_meta": {"progressToken": 5}}


def walk(peer: Peer, method: str, member: str, base: Obj) -> list[Obj]:
    page = peer.request(method, base)["result"]
    found: list[Obj] = page[member]
    while "nextCursor" in page:
        page = peer.request(method, {**base, "cursor": page["nextCursor"]})["result"]
        found += page[member]
    return found


def call_tools(peer: Peer, base: Obj) -> None:
    import jsonschema_rs

    for tool in walk(peer, "tools/list", "tools", base):
        jsonschema_rs.meta.validate(tool["inputSchema"])
        if tool["name"] == "toggle_tool":
            continue  # done before, so that `extra` is on the list
        params = {**base, "name": tool["name"], "arguments": ARGUMENTS[tool["name"]]}
        result = peer.request("tools/call", params)["result"]
        if result.get("resultType") == "input_required":
            answers = {key: client_answer(ask) for key, ask in result["inputRequests"].items()}
            params |= {"requestState": result["requestState"], "inputResponses": answers}
            result = peer.request("tools/call", params)["result"]
        assert result.get("isError", False) is (tool["name"] == "fail"), (tool["name"], result)
        if "outputSchema" in tool:
            jsonschema_rs.validate(tool["outputSchema"], result["structuredContent"])
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def read_and_complete(peer: Peer, base: Obj) -> None:
    for resource in walk(peer, "resources/list", "resources", base):
        read = peer.request("resources/read", {**base, "uri": resource["uri"]})["result"]
        assert read["contents"][0]["uri"] == resource["uri"]
    walk(peer, "resources/templates/list", "resourceTemplates", base)
    assert "result" in peer.request("resources/read", {**base, "uri": "demo://notes/7"})
    prompts = walk(peer, "prompts/list", "prompts", base)
    for prompt in prompts:
        arguments = {item["name"]: "x" for item in prompt.get("arguments", [])}
        got = peer.request("prompts/get", {**base, "name": prompt["name"], "arguments": arguments})
        assert got["result"]["messages"]
    for ref, name in (
        ({"type": "ref/prompt", "name": "review"}, "language"),
        ({"type": "ref/resource", "uri": "demo://notes/{id}"}, "id"),
    ):
        params = {**base, "ref": ref, "argument": {"name": name, "value": ""}}
        assert peer.request("completion/complete", params)["result"]["completion"]["values"]


def be_refused(peer: Peer, base: Obj) -> None:
    for method, params in (
        ("no/such", {}),
        ("tools/call", {"name": "no such"}),
        ("tools/list", {"cursor": "bad"}),
        ("resources/read", {"uri": "demo://nothing"}),
        ("prompts/get", {"name": "greet"}),
    ):
        assert "error" in peer.request(method, {**base, **params}), method


# In the handshake era plain JSON has no way to ask the client, so there is no full tour of it.
TOURS = [(way, version) for way in ("stdio", "auto", "sse") for version in ALL] + [("json", E)]


@pytest.mark.parametrize(("way", "version"), TOURS)
def test_everything_the_demo_says_is_valid_in_its_revision(
    way: str, version: str, tmp_path: Path
) -> None:
    with connected(way, version, tmp_path) as peer:
        base = begin(peer, version)
        call_tools(peer, base)
        read_and_complete(peer, base)
        be_refused(peer, base)


def test_a_subscription_is_valid_from_its_beginning_to_its_end() -> None:
    params = {"notifications": {"resourceSubscriptions": ["demo://counter"]}, "_meta": meta()}
    with StdioDemo() as demo:
        listen = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen"}
        demo.send({**listen, "params": params})
        check_message(E, demo.receive(), None)
        demo.call("tools/call", {"name": "bump"})
        told = demo.notifications("notifications/resources/updated")
        check_message(E, told[0], None)
        assert demo.process.stdin is not None
        demo.process.stdin.close()
        check_message(E, demo.receive(), "subscriptions/listen")


@pytest.mark.parametrize("version", ALL)
def test_the_checks_of_this_tour_find_faults(version: str) -> None:
    with pytest.raises(AssertionError):
        check_message(version, {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{}]}}, "tools/list")
    with pytest.raises(AssertionError):
        check_message(version, {"jsonrpc": "2.0", "id": [], "result": {}}, "prompts/list")
    bad = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    with pytest.raises(AssertionError):
        check_message(version, bad, None)
