"""The demo on pipes in the stateless era: every request on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.demo_peer import PREFIX, D, E, Obj, StdioDemo, client_answer, meta


@pytest.fixture
def demo() -> Iterator[StdioDemo]:
    with StdioDemo() as peer:
        yield peer


def tool(demo: StdioDemo, name: str, arguments: Obj | None = None, **more: Any) -> Obj:
    return demo.call("tools/call", {"name": name, "arguments": arguments or {}}, **more)


def code_of(response: Obj) -> int:
    code: int = response["error"]["code"]
    return code


def test_discover_tells_versions_and_capabilities(demo: StdioDemo) -> None:
    result = demo.call("server/discover")["result"]
    assert result["supportedVersions"] == [E]
    assert result["capabilities"] == {
        "completions": {},
        "logging": {},
        "prompts": {},
        "resources": {"subscribe": True},
        "tools": {},
    }


HINTED: list[tuple[str, Obj]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "demo://greeting"}),
    ("resources/read", {"uri": "demo://counter"}),
]
UNHINTED: list[tuple[str, Obj]] = [
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "name", "value": "A"},
        },
    ),
]


@pytest.mark.parametrize(("method", "params"), HINTED + UNHINTED)
def test_every_result_says_its_type_and_its_server(
    demo: StdioDemo, method: str, params: Obj
) -> None:
    result = demo.call(method, params)["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"][PREFIX + "serverInfo"]["name"] == "mcptest-demo"
    assert ("ttlMs" in result and "cacheScope" in result) is ((method, params) in HINTED)


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_a_missing_meta_key_is_refused(demo: StdioDemo, missing: str) -> None:
    whole = meta()
    del whole[PREFIX + missing]
    assert code_of(demo.request("tools/list", {"_meta": whole})) == -32602


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": 5}])
def test_without_meta_nothing_is_served_even_after_a_good_request(
    demo: StdioDemo, params: Obj | None
) -> None:
    demo.call("tools/list")
    for method in ("tools/list", "server/discover"):
        assert code_of(demo.request(method, params)) == -32602


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("protocolVersion", 5),
        ("clientCapabilities", []),
        ("clientCapabilities", {"sampling": True}),
        ("clientInfo", {"name": "x"}),
        ("clientInfo", "x"),
        ("logLevel", "loud"),
    ],
)
def test_a_malformed_meta_is_refused(demo: StdioDemo, key: str, value: Any) -> None:
    assert code_of(demo.request("tools/list", {"_meta": meta(**{PREFIX + key: value})})) == -32602


@pytest.mark.parametrize("version", ["1900-01-01", "2025-11-25", "draft", ""])
def test_an_unsupported_version_is_told_with_the_supported_ones(
    demo: StdioDemo, version: str
) -> None:
    response = demo.request("tools/list", {"_meta": meta(**{PREFIX + "protocolVersion": version})})
    assert code_of(response) == -32022
    assert response["error"]["data"] == {"supported": [E], "requested": version}


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/get",
        "no/such",
    ],
)
def test_removed_and_unknown_methods_are_not_found(demo: StdioDemo, method: str) -> None:
    assert code_of(demo.call(method, {"uri": "demo://counter", "level": "info"})) == -32601


def test_a_modern_only_server_names_its_versions_to_an_older_client() -> None:
    with StdioDemo("--era", "stateless") as demo:
        response = demo.request("initialize", {"protocolVersion": D})
        assert E in response["error"]["message"]
        demo.assert_alive()


def test_a_missing_resource_is_a_wrong_parameter(demo: StdioDemo) -> None:
    for uri in ("demo://nothing", "demo://notes/0", "demo://notes/151", "demo://notes/01"):
        assert code_of(demo.call("resources/read", {"uri": uri})) == -32602


def test_bad_arguments_are_told_to_the_model(demo: StdioDemo) -> None:
    result = tool(demo, "add", {"a": "x", "b": 1})["result"]
    assert result["isError"] is True
    assert code_of(tool(demo, "no such tool")) == -32602
    assert code_of(tool(demo, "toggle_tool")) == -32602


def test_lists_do_not_change_whatever_is_called(demo: StdioDemo) -> None:
    demo.initialize(D)
    before = demo.call("tools/list")["result"]["tools"]
    demo.request("tools/call", {"name": "toggle_tool"})
    tool(demo, "bump")
    assert demo.call("tools/list")["result"]["tools"] == before


def test_one_tool_mirrors_an_argument_in_a_header(demo: StdioDemo) -> None:
    demo.initialize(D)
    cursor = demo.call("tools/list")["result"]["nextCursor"]
    tools = demo.call("tools/list", {"cursor": cursor})["result"]["tools"]
    city = next(item for item in tools if item["name"] == "weather")["inputSchema"]["properties"]
    assert city["city"]["x-mcp-header"] == "City"
    legacy = demo.request("tools/list", {"cursor": cursor})["result"]["tools"]
    shown = next(item for item in legacy if item["name"] == "weather")["inputSchema"]
    assert "x-mcp-header" not in shown["properties"]["city"]


def test_logs_come_only_when_asked_for_and_from_that_level_on(demo: StdioDemo) -> None:
    tool(demo, "log")
    assert not demo.notifications("notifications/message")
    tool(demo, "log", **{PREFIX + "logLevel": "critical"})
    told = [message["params"]["level"] for message in demo.notifications("notifications/message")]
    assert told == ["critical", "alert", "emergency"]
    tool(demo, "log")
    assert len(demo.notifications("notifications/message")) == 3


def test_progress_comes_only_with_a_token(demo: StdioDemo) -> None:
    tool(demo, "countdown", {"steps": 2})
    assert not demo.notifications("notifications/progress")
    tool(demo, "countdown", {"steps": 2}, progressToken=7)
    told = [message["params"] for message in demo.notifications("notifications/progress")]
    assert [(item["progressToken"], item["progress"]) for item in told] == [(7, 1), (7, 2)]


def test_cancelling_on_stdio_leaves_no_answer(demo: StdioDemo) -> None:
    params = {"name": "slow", "arguments": {"seconds": 60}, "_meta": meta()}
    demo.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": params})
    demo.call("tools/list")
    cancelled = {"requestId": "s"}
    demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    demo.call("tools/list")
    assert "s" not in [message.get("id") for message in demo.seen]
    assert "result" in demo.request("tools/list", {"_meta": meta()}, identifier="s")


ASKING: list[tuple[str, Obj, str, str]] = [
    ("ask_model", {"question": "6 * 7?"}, "sampling", "model"),
    ("ask_user", {"question": "really?"}, "elicitation", "user"),
    ("list_roots", {}, "roots", "roots"),
]


@pytest.mark.parametrize(("name", "arguments", "capability", "key"), ASKING)
def test_an_undeclared_capability_is_named(
    demo: StdioDemo, name: str, arguments: Obj, capability: str, key: str
) -> None:
    tool(demo, name, arguments)  # declared here, and not remembered
    response = tool(demo, name, arguments, capabilities={})
    assert code_of(response) == -32021
    assert list(response["error"]["data"]["requiredCapabilities"]) == [capability]


@pytest.mark.parametrize(("name", "arguments", "capability", "key"), ASKING)
def test_a_question_comes_back_as_input_required_and_is_answered_by_a_retry(
    demo: StdioDemo, name: str, arguments: Obj, capability: str, key: str
) -> None:
    asked = tool(demo, name, arguments)["result"]
    assert asked["resultType"] == "input_required"
    assert "ttlMs" not in asked
    answers = {key: client_answer(asked["inputRequests"][key]), "unknown": {"x": 1}}
    retry: Obj = {"name": name, "arguments": arguments, "requestState": asked["requestState"]}
    again = demo.call("tools/call", {**retry, "inputResponses": {}})["result"]
    assert again["resultType"] == "input_required"
    done = demo.call("tools/call", {**retry, "inputResponses": answers})["result"]
    assert done["resultType"] == "complete"
    assert "isError" not in done
    assert not [message for message in demo.seen if "method" in message]


@pytest.mark.parametrize(
    "change",
    [
        {"requestState": "forged"},
        {"requestState": ""},
        {"requestState": 5},
        {"requestState": "99999999999." + "0" * 64},
        {"arguments": {"question": "another"}},
        {"inputResponses": []},
        {"inputResponses": {"user": "yes"}},
        {"inputResponses": {"user": {"action": "perhaps"}}},
        {"inputResponses": {"user": {"action": "accept", "content": {"answer": 5}}}},
    ],
)
def test_a_tampered_retry_is_refused(demo: StdioDemo, change: Obj) -> None:
    params: Obj = {"name": "ask_user", "arguments": {"question": "really?"}}
    state = demo.call("tools/call", params)["result"]["requestState"]
    answers = {"user": {"action": "accept", "content": {"answer": "yes"}}}
    good = {**params, "requestState": state, "inputResponses": answers}
    assert demo.call("tools/call", good)["result"]["resultType"] == "complete"
    assert code_of(demo.call("tools/call", {**good, **change})) == -32602


@pytest.mark.parametrize("place", [0, 5, -1])
def test_one_changed_character_breaks_the_state(demo: StdioDemo, place: int) -> None:
    params: Obj = {"name": "list_roots"}
    state = list(demo.call("tools/call", params)["result"]["requestState"])
    state[place] = "1" if state[place] != "1" else "2"
    response = demo.call("tools/call", {**params, "requestState": "".join(state)})
    assert code_of(response) == -32602


def test_a_state_is_for_its_own_tool_and_process_only(demo: StdioDemo) -> None:
    state = tool(demo, "ask_user", {"question": "x"})["result"]["requestState"]
    other = {"name": "ask_model", "arguments": {"question": "x"}, "requestState": state}
    assert code_of(demo.call("tools/call", other)) == -32602
    with StdioDemo() as second:
        same = {"name": "ask_user", "arguments": {"question": "x"}, "requestState": state}
        assert code_of(second.call("tools/call", same)) == -32602


@pytest.mark.parametrize("identifier", [5, "listen"])
def test_a_subscription_is_acknowledged_then_told_and_tagged(
    demo: StdioDemo, identifier: Any
) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["demo://counter", "demo://no"]}
    params = {"notifications": wanted, "_meta": meta()}
    listen = {"jsonrpc": "2.0", "id": identifier, "method": "subscriptions/listen"}
    demo.send({**listen, "params": params})
    tag = {PREFIX + "subscriptionId": identifier}
    first = demo.receive()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    # No list of this era changes, and one of the resources does not exist.
    agreed = {"resourceSubscriptions": ["demo://counter"]}
    assert first["params"] == {"_meta": tag, "notifications": agreed}
    demo.send({**listen, "id": "other", "params": {"notifications": {}, "_meta": meta()}})
    assert demo.receive()["params"]["notifications"] == {}
    tool(demo, "bump", {})
    told = demo.notifications("notifications/resources/updated")
    assert [message["params"] for message in told] == [{"_meta": tag, "uri": "demo://counter"}]
    cancelled = {"requestId": identifier}
    demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    tool(demo, "bump", {})
    assert len(demo.notifications("notifications/resources/updated")) == 1


def test_an_open_subscription_is_ended_with_a_result_when_the_server_ends(demo: StdioDemo) -> None:
    params = {"notifications": {}, "_meta": meta()}
    demo.send({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params})
    demo.receive()
    assert demo.process.stdin is not None
    demo.process.stdin.close()
    end = demo.receive()
    assert end["id"] == 9
    assert end["result"]["resultType"] == "complete"
    assert end["result"]["_meta"][PREFIX + "subscriptionId"] == 9
    assert end["result"]["_meta"][PREFIX + "serverInfo"]["name"] == "mcptest-demo"


@pytest.mark.parametrize(
    "notifications", [None, [], {"toolsListChanged": "yes"}, {"resourceSubscriptions": [5]}]
)
def test_a_malformed_filter_is_refused(demo: StdioDemo, notifications: Any) -> None:
    assert code_of(demo.call("subscriptions/listen", {"notifications": notifications})) == -32602


def test_both_eras_share_one_connection(demo: StdioDemo) -> None:
    demo.call("server/discover")
    assert demo.initialize(D)["result"]["protocolVersion"] == D
    legacy = demo.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})["result"]
    assert "resultType" not in legacy
    modern = tool(demo, "add", {"a": 1, "b": 2})["result"]
    assert modern["resultType"] == "complete"
    assert modern["structuredContent"] == legacy["structuredContent"]
