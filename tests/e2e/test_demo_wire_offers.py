"""What the demo offers only when asked to: fixtures, tasks, a token, and doing without parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.demo_peer import (
    ALL,
    HANDSHAKE,
    PREFIX,
    D,
    E,
    HttpDemo,
    Obj,
    StdioDemo,
    client_answer,
    http_demo,
    initialize_params,
    meta,
    stateless_headers,
)

OFFERED = ("--offer", "fixtures,tasks", "--page-size", "1000")
EXTENSION = PREFIX + "tasks"
ASKING: Obj = {"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {}}


@pytest.fixture
def demo() -> Iterator[StdioDemo]:
    with StdioDemo(*OFFERED) as server:
        yield server


def answer(request: Obj) -> Obj:
    if request.get("params", {}).get("mode") == "url":
        return {"action": "accept"}
    if request.get("params", {}).get("tools") and len(request["params"]["messages"]) == 1:
        use = {"type": "tool_use", "id": "one", "name": "clock", "input": {}}
        return {"role": "assistant", "content": [use], "model": "none"}
    return client_answer(request)


def call(demo: StdioDemo, name: str, arguments: Obj | None = None, **more: object) -> Obj:
    params = {"name": name, "arguments": arguments or {}, **more}
    response: Obj = demo.request("tools/call", params)
    return response


@pytest.mark.parametrize("version", HANDSHAKE)
def test_every_fixture_answers_in_every_revision_with_a_handshake(
    demo: StdioDemo, version: str
) -> None:
    demo.answer = answer
    demo.initialize(version, ASKING)
    names = [tool["name"] for tool in demo.request("tools/list", {})["result"]["tools"]]
    for name in names[16:]:
        if name.startswith(("test_", "roots_", "json_")):
            result = call(demo, name)["result"]
            failed = result.get("isError", False)
            assert failed is (name == "test_error_handling"), (name, result)


def test_a_client_that_lets_its_model_use_tools_is_asked_again_with_their_results(
    demo: StdioDemo,
) -> None:
    demo.answer = answer
    demo.initialize(D, ASKING)
    call(demo, "test_sampling")
    _, again = demo.notifications("sampling/createMessage")
    last = again["params"]["messages"][-1]["content"]
    assert [(block["type"], block["toolUseId"]) for block in last] == [("tool_result", "one")]


def test_the_answers_of_several_rounds_travel_in_the_state(demo: StdioDemo) -> None:
    params: Obj = {"name": "test_sampling", "arguments": {}}
    for _ in range(2):
        result = demo.call("tools/call", params, capabilities=ASKING)["result"]
        assert result["resultType"] == "input_required"
        asked = result["inputRequests"]
        params = {
            **params,
            "requestState": result["requestState"],
            "inputResponses": {key: answer(one) for key, one in asked.items()},
        }
    result = demo.call("tools/call", params, capabilities=ASKING)["result"]
    assert result["content"][0]["text"] == "The model answered: 42"


def test_a_state_with_another_payload_is_refused(demo: StdioDemo) -> None:
    params: Obj = {"name": "test_input_required_result_elicitation", "arguments": {}}
    asked = demo.call("tools/call", params, capabilities=ASKING)["result"]
    for state in ("00" + asked["requestState"], asked["requestState"][:-1], "é.é", ""):
        retry = {**params, "requestState": state, "inputResponses": {}}
        response = demo.call("tools/call", retry, capabilities=ASKING)
        assert response["error"]["code"] == -32602


def test_a_page_is_only_opened_by_clients_that_declare_urls(demo: StdioDemo) -> None:
    demo.answer = answer
    demo.initialize(D, {"elicitation": {}})
    assert call(demo, "url_eliciting_tool")["result"]["isError"] is True
    assert not demo.notifications("elicitation/create")


def test_a_page_that_was_dealt_with_is_reported_under_its_id(demo: StdioDemo) -> None:
    demo.answer = answer
    demo.initialize(D, ASKING)
    error = call(demo, "url_eliciting_tool")["error"]
    assert (error["code"], len(error["data"]["elicitations"])) == (-32042, 1)
    (asked,) = demo.notifications("elicitation/create")
    (done,) = demo.notifications("notifications/elicitation/complete")
    assert done["params"] == {"elicitationId": asked["params"]["elicitationId"]}


def test_a_task_works_ends_and_gives_its_result(demo: StdioDemo) -> None:
    demo.initialize(D)
    task = call(demo, "task_tool", task={"ttl": 5000})["result"]["task"]
    assert (task["status"], task["ttl"]) == ("working", 5000)
    result = demo.request("tasks/result", {"taskId": task["taskId"]})["result"]
    assert result["_meta"] == {PREFIX + "related-task": {"taskId": task["taskId"]}}
    assert demo.request("tasks/get", {"taskId": task["taskId"]})["result"]["status"] == "completed"
    assert [one["taskId"] for one in demo.request("tasks/list")["result"]["tasks"]] == [
        task["taskId"]
    ]
    late = demo.request("tasks/cancel", {"taskId": task["taskId"]})
    assert late["error"]["code"] == -32602


def test_a_cancelled_task_stays_cancelled(demo: StdioDemo) -> None:
    demo.initialize(D)
    task = call(demo, "task_tool", task={})["result"]["task"]
    cancelled = demo.request("tasks/cancel", {"taskId": task["taskId"]})["result"]
    assert cancelled["status"] == "cancelled"
    assert demo.request("tasks/result", {"taskId": task["taskId"]})["error"]["code"] == -32602
    assert demo.request("tasks/get", {"taskId": task["taskId"]})["result"]["status"] == "cancelled"


def test_a_request_for_a_result_can_be_cancelled_without_harm(demo: StdioDemo) -> None:
    demo.initialize(D)
    task = call(demo, "task_tool", task={})["result"]["task"]
    asked = {"jsonrpc": "2.0", "id": "r", "method": "tasks/result", "params": {**task}}
    demo.send(asked)
    cancelled = {"requestId": "r"}
    demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    assert "result" in demo.request("tasks/result", {"taskId": task["taskId"]})
    assert all(message.get("id") != "r" for message in demo.seen)


def test_tools_are_called_as_they_say(demo: StdioDemo) -> None:
    demo.initialize(D)
    assert call(demo, "task_only_tool")["error"]["code"] == -32601
    assert call(demo, "echo", {"text": "x"}, task={})["error"]["code"] == -32601
    assert call(demo, "task_tool", task={"ttl": "long"})["error"]["code"] == -32602


def test_the_extension_makes_tasks_only_for_clients_that_know_it(demo: StdioDemo) -> None:
    task_only: Obj = {"name": "task_only_tool", "arguments": {}}
    needed = demo.call("tools/call", task_only, capabilities={})["error"]
    assert needed["code"] == -32021
    assert needed["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    knows: Obj = {"extensions": {EXTENSION: {}}}
    task = demo.call("tools/call", task_only, capabilities=knows)["result"]
    assert (task["resultType"], task["status"]) == ("task", "working")
    params = {"taskId": task["taskId"]}
    found = demo.call("tasks/get", params, capabilities=knows)["result"]
    assert (found["resultType"], found["taskId"]) == ("complete", task["taskId"])
    assert (
        demo.call("tasks/cancel", params, capabilities=knows)["result"]["resultType"] == "complete"
    )
    assert demo.call("tasks/get", params, capabilities=knows)["result"]["status"] == "cancelled"
    for gone in ("tasks/list", "tasks/result"):
        assert demo.call(gone, params, capabilities=knows)["error"]["code"] == -32601


def test_without_the_offer_nothing_of_it_is_there() -> None:
    with StdioDemo() as demo:
        assert "tasks" not in demo.initialize(D)["result"]["capabilities"]
        assert demo.request("tasks/list")["error"]["code"] == -32601
        assert call(demo, "task_tool")["error"]["code"] == -32602
        assert call(demo, "echo", {"text": "x"}, task={})["result"]["content"]


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("prompts", "prompts/list"),
        ("completions", "completion/complete"),
    ],
)
def test_a_part_that_is_hidden_is_neither_declared_nor_served(
    version: str, part: str, method: str
) -> None:
    with StdioDemo("--hide", part, "--spec-version", version) as demo:
        if version == E:
            declared = demo.call("server/discover")["result"]["capabilities"]
            response = demo.call(method)
        else:
            declared = demo.initialize(version)["result"]["capabilities"]
            response = demo.request(method, {})
        assert part not in declared
        assert response["error"]["code"] == -32601


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDemo]:
    folder = tmp_path_factory.mktemp("guarded")
    with http_demo(folder, "--token", "sesame", *OFFERED) as server:
        yield server


def discover() -> Obj:
    return {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}}


@pytest.mark.parametrize("given", ["", "Bearer wrong", "Basic sesame"])
def test_without_the_token_there_is_only_a_challenge(guarded: HttpDemo, given: str) -> None:
    headers = {**stateless_headers(discover()), "Authorization": given}
    reply = guarded.ask("POST", discover(), headers)
    assert reply.status == 401
    challenge = reply.headers["WWW-Authenticate"]
    place = challenge.partition('resource_metadata="')[2].partition('"')[0]
    path = place.partition(str(guarded.port))[2]
    metadata = guarded.ask("GET", path=path)
    assert metadata.status == 200
    assert metadata.message["authorization_servers"]
    assert metadata.message["resource"].endswith("/mcp")


def test_with_the_token_all_is_as_usual(guarded: HttpDemo) -> None:
    headers = {**stateless_headers(discover()), "Authorization": "Bearer sesame"}
    assert guarded.ask("POST", discover(), headers).status == 200


@pytest.mark.parametrize(("given", "status"), [("42", 200), ("42.0", 200), ("43", 400), ("x", 400)])
def test_a_number_in_a_header_is_compared_as_a_number(
    guarded: HttpDemo, given: str, status: int
) -> None:
    params = {"name": "header_tool", "arguments": {"number": 42}, "_meta": meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**stateless_headers(message), "Mcp-Param-Number": given}
    reply = guarded.ask("POST", message, {**headers, "Authorization": "Bearer sesame"})
    assert reply.status == status


def test_a_stream_that_was_closed_early_can_be_taken_up_again(tmp_path: Path) -> None:
    with http_demo(tmp_path, *OFFERED) as demo:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params(D)}
        welcome = demo.ask("POST", hello)
        session = {"Mcp-Session-Id": welcome.headers["Mcp-Session-Id"]}
        params = {"name": "test_reconnection", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        first = demo.ask("POST", message, session)
        assert first.messages == []
        assert any("retry" in event for event in first.events)
        rest = demo.ask("GET", headers={**session, "Last-Event-ID": first.events[0]["id"]})
        assert rest.message["result"]["content"][0]["text"] == "Welcome back."
