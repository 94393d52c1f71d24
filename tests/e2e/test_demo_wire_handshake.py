"""The demo on pipes in the handshake era, revision by revision, message by message."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_peer import BOUND, HANDSHAKE, A, B, C, D, Obj, StdioDemo, initialize_params


@pytest.fixture
def demo() -> Iterator[StdioDemo]:
    with StdioDemo() as peer:
        yield peer


@pytest.fixture(params=HANDSHAKE)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ready(demo: StdioDemo, version: str) -> StdioDemo:
    demo.initialize(version)
    return demo


def since(version: str, first: str) -> bool:
    return HANDSHAKE.index(version) >= HANDSHAKE.index(first)


def tool(demo: StdioDemo, name: str, **arguments: Any) -> Obj:
    return demo.request("tools/call", {"name": name, "arguments": arguments})


def list_all(demo: StdioDemo, method: str, member: str) -> list[Obj]:
    found: list[Obj] = []
    params: Obj = {}
    while True:
        page = demo.request(method, params)["result"]
        found += page[member]
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


def test_a_spoken_version_is_echoed(demo: StdioDemo, version: str) -> None:
    result = demo.initialize(version)["result"]
    assert result["protocolVersion"] == version


@pytest.mark.parametrize("offered", ["1999-01-01", "2026-07-28", "", "draft"])
def test_an_unknown_version_is_answered_with_the_newest(demo: StdioDemo, offered: str) -> None:
    assert demo.initialize(offered)["result"]["protocolVersion"] == D


def test_one_revision_can_be_singled_out() -> None:
    with StdioDemo("--spec-version", C) as demo:
        assert demo.initialize(A)["result"]["protocolVersion"] == C


def test_capabilities_say_what_works_in_the_revision(demo: StdioDemo, version: str) -> None:
    capabilities = demo.initialize(version)["result"]["capabilities"]
    expected: Obj = {
        "logging": {},
        "prompts": {},
        "resources": {"subscribe": True},
        "tools": {"listChanged": True},
    }
    if since(version, B):
        expected["completions"] = {}
    assert capabilities == expected


def test_tools_show_only_members_that_the_revision_knows(ready: StdioDemo, version: str) -> None:
    allowed = {"name", "description", "inputSchema"}
    if since(version, B):
        allowed |= {"annotations"}
    if since(version, C):
        allowed |= {"title", "outputSchema"}
    if since(version, D):
        allowed |= {"icons"}
    shown = {member for item in list_all(ready, "tools/list", "tools") for member in item}
    assert shown == allowed


def test_server_info_and_lists_have_titles_only_where_they_exist(
    demo: StdioDemo, version: str
) -> None:
    info = demo.initialize(version)["result"]["serverInfo"]
    resource = demo.request("resources/list")["result"]["resources"][0]
    prompt = demo.request("prompts/list")["result"]["prompts"][0]
    template = demo.request("resources/templates/list")["result"]["resourceTemplates"][0]
    for shown in (info, resource, prompt, prompt["arguments"][0], template):
        assert ("title" in shown) is since(version, C), shown
    assert ("description" in info) is since(version, D)


def test_structured_content_comes_with_the_revision_that_knows_it(
    ready: StdioDemo, version: str
) -> None:
    result = tool(ready, "add", a=1, b=2)["result"]
    assert json.loads(result["content"][0]["text"]) == {"sum": 3}
    assert ("structuredContent" in result) is since(version, C)


def test_a_resource_is_linked_or_embedded(ready: StdioDemo, version: str) -> None:
    kind = tool(ready, "link")["result"]["content"][0]["type"]
    assert kind == ("resource_link" if since(version, C) else "resource")


def test_elicitation_exists_from_2025_06_18_on(ready: StdioDemo, version: str) -> None:
    names = {item["name"] for item in list_all(ready, "tools/list", "tools")}
    assert ("ask_user" in names) is since(version, C)
    response = tool(ready, "ask_user", question="really?")
    if since(version, C):
        assert response["result"]["content"][0]["text"].startswith("The user answered: yes")
        asked = ready.notifications("elicitation/create")[0]["params"]
        assert ("mode" in asked) is since(version, D)
    else:
        assert response["error"]["code"] == -32602


def test_bad_arguments_are_a_protocol_error_before_2025_11_25_and_a_result_after(
    ready: StdioDemo, version: str
) -> None:
    for arguments in ({"a": 1}, {"a": "1", "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": 1e300, "b": 1}):
        response = tool(ready, "add", **arguments)
        if since(version, D):
            assert response["result"]["isError"] is True
        else:
            assert response["error"]["code"] == -32602


def test_progress_has_a_message_from_2025_03_26_on(ready: StdioDemo, version: str) -> None:
    params = {"name": "countdown", "arguments": {"steps": 3}, "_meta": {"progressToken": "t"}}
    ready.request("tools/call", params)
    told = [item["params"] for item in ready.notifications("notifications/progress")]
    assert [(item["progressToken"], item["progress"], item["total"]) for item in told] == [
        ("t", 1, 3),
        ("t", 2, 3),
        ("t", 3, 3),
    ]
    assert all(("message" in item) is since(version, B) for item in told)


def test_there_is_no_progress_without_a_token(ready: StdioDemo) -> None:
    tool(ready, "countdown", steps=2)
    assert not ready.notifications("notifications/progress")


def test_a_batch_is_answered_together_in_2025_03_26_and_refused_elsewhere(
    ready: StdioDemo, version: str
) -> None:
    ping = {"jsonrpc": "2.0", "method": "ping"}
    slow = {"name": "slow", "arguments": {"seconds": 0.01}}
    ready.send(
        [
            {**ping, "id": "a"},
            {"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": slow},
            {"jsonrpc": "2.0", "method": "notifications/anything"},
            {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {}},
            7,
        ]
    )
    answer = ready.receive()
    if version != B:
        assert answer["error"]["code"] == -32600
        return
    by_id = {item["id"]: item for item in answer}
    assert by_id["a"]["result"] == {}
    assert by_id["s"]["result"]["content"][0]["text"].startswith("Waited")
    assert by_id["i"]["error"]["code"] == -32600
    assert by_id[None]["error"]["code"] == -32600
    assert len(answer) == 4


@pytest.mark.parametrize("batch", [[], [{"jsonrpc": "2.0", "method": "notifications/x"}]])
def test_an_empty_batch_is_an_error_and_one_of_notifications_is_not_answered(
    demo: StdioDemo, batch: list[Obj]
) -> None:
    demo.initialize(B)
    demo.send(batch)
    if not batch:
        assert demo.receive()["error"]["code"] == -32600
    assert demo.request("ping", identifier="after")["result"] == {}
    assert len(demo.seen) == (3 if not batch else 2)


def test_an_error_without_a_readable_id_has_a_null_id_until_2025_11_25(
    ready: StdioDemo, version: str
) -> None:
    ready.write(b"{not json}\n")
    answer = ready.receive()
    assert answer["error"]["code"] == -32700
    assert ("id" in answer) is not since(version, D)
    assert answer.get("id") is None


def test_a_missing_resource_has_its_own_code(ready: StdioDemo) -> None:
    response = ready.request("resources/read", {"uri": "demo://nothing"})
    assert response["error"]["code"] == -32002
    assert response["error"]["data"] == {"uri": "demo://nothing"}


def test_requests_before_initialize_are_refused_but_ping_is_not() -> None:
    with StdioDemo("--era", "handshake") as demo:
        assert demo.request("ping")["result"] == {}
        for method in ("tools/list", "no/such", "server/discover"):
            assert demo.request(method)["error"]["code"] == -32600


def test_a_second_initialize_is_refused(ready: StdioDemo, version: str) -> None:
    response = ready.request("initialize", initialize_params(version))
    assert response["error"]["code"] == -32600
    assert ready.request("tools/list")["result"]["tools"]


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_needs_its_params(demo: StdioDemo, missing: str) -> None:
    params = initialize_params(D)
    del params[missing]
    assert demo.request("initialize", params)["error"]["code"] == -32602
    assert demo.initialize(D)["result"]["protocolVersion"] == D


INVALID: list[tuple[str, Any, int, Any]] = [
    ("id null", {"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, None),
    ("id float", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None),
    ("id bool", {"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, None),
    ("id object", {"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600, None),
    ("no jsonrpc", {"id": "x", "method": "ping"}, -32600, "x"),
    ("jsonrpc 1.0", {"jsonrpc": "1.0", "id": "x", "method": "ping"}, -32600, "x"),
    ("method number", {"jsonrpc": "2.0", "id": "x", "method": 1}, -32600, "x"),
    ("nothing", {"jsonrpc": "2.0", "id": "x"}, -32600, "x"),
    ("request and result", {"jsonrpc": "2.0", "id": "x", "method": "a", "result": 1}, -32600, "x"),
    ("params array", {"jsonrpc": "2.0", "id": "x", "method": "ping", "params": []}, -32602, "x"),
    ("params string", {"jsonrpc": "2.0", "id": "x", "method": "ping", "params": "p"}, -32600, "x"),
    ("params null", {"jsonrpc": "2.0", "id": "x", "method": "ping", "params": None}, -32600, "x"),
    ("a string", "hello", -32600, None),
    ("a number", 5, -32600, None),
    ("null", None, -32600, None),
    ("empty object", {}, -32600, None),
    ("unknown method", {"jsonrpc": "2.0", "id": "x", "method": "no/such"}, -32601, "x"),
]


@pytest.mark.parametrize(
    ("message", "code", "identifier"),
    [case[1:] for case in INVALID],
    ids=[case[0] for case in INVALID],
)
def test_an_invalid_message_is_answered_with_its_error(
    demo: StdioDemo, message: Any, code: int, identifier: Any
) -> None:
    demo.initialize(D)
    demo.send(message)
    answer = demo.receive()
    assert answer["error"]["code"] == code
    assert answer.get("id") == identifier
    assert ("id" in answer) is (identifier is not None)


BAD_PARAMS: list[tuple[str, Obj]] = [
    ("tools/call", {}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "no such tool"}),
    ("tools/call", {"name": "extra"}),
    ("tools/call", {"name": "add", "arguments": []}),
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": 5}),
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": 1.5}}),
    ("tools/list", {"cursor": "nonsense"}),
    ("tools/list", {"cursor": ""}),
    ("tools/list", {"cursor": 5}),
    ("resources/list", {"cursor": b"tools:10".hex()}),
    ("prompts/list", {"cursor": b"prompts:10".hex()}),
    ("resources/read", {}),
    ("resources/read", {"uri": ""}),
    ("resources/read", {"uri": "no scheme"}),
    ("resources/read", {"uri": "demo://with space"}),
    ("prompts/get", {"name": "no such prompt"}),
    ("prompts/get", {"name": "greet"}),
    ("prompts/get", {"name": "greet", "arguments": {"name": 5}}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada", "other": "x"}}),
    ("logging/setLevel", {"level": "loud"}),
    ("logging/setLevel", {}),
    ("completion/complete", {}),
    (
        "completion/complete",
        {"ref": {"type": "ref/other"}, "argument": {"name": "name", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "x", "value": ""}},
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "demo://x"},
            "argument": {"name": "id", "value": ""},
        },
    ),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}),
]


def test_invalid_params_are_refused(ready: StdioDemo) -> None:
    for method, params in BAD_PARAMS:
        response = ready.request(method, params)
        assert response["error"]["code"] == -32602, (method, params)


@pytest.mark.parametrize("identifier", [0, -1, 2**70, "", "1", "ü☃", "x" * 10_000])
def test_ids_come_back_with_their_type_and_value(demo: StdioDemo, identifier: Any) -> None:
    assert demo.request("ping", identifier=identifier)["id"] == identifier


def test_notifications_and_stray_responses_are_never_answered(ready: StdioDemo) -> None:
    before = len(ready.seen)
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        {"jsonrpc": "2.0", "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": 5},
        {"jsonrpc": "2.0", "id": 77, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
    ):
        ready.send(message)
    ready.write(b"\n  \r\n")
    ready.request("ping")
    assert len(ready.seen) == before + 1


def test_every_list_pages_to_its_end_without_repeating(ready: StdioDemo, version: str) -> None:
    assert "nextCursor" in ready.request("tools/list")["result"]
    tools = [item["name"] for item in list_all(ready, "tools/list", "tools")]
    assert len(tools) == len(set(tools)) == (17 if since(version, C) else 16)
    uris = [item["uri"] for item in list_all(ready, "resources/list", "resources")]
    assert len(uris) == len(set(uris)) == 15
    assert len(list_all(ready, "prompts/list", "prompts")) == 3


def test_a_cursor_can_be_used_twice(ready: StdioDemo) -> None:
    cursor = ready.request("tools/list")["result"]["nextCursor"]
    first = ready.request("tools/list", {"cursor": cursor})["result"]
    assert ready.request("tools/list", {"cursor": cursor})["result"] == first


def test_the_page_size_can_be_set() -> None:
    with StdioDemo("--page-size", "1000") as demo:
        demo.initialize(D)
        assert "nextCursor" not in demo.request("tools/list")["result"]


def test_log_messages_below_the_level_are_left_out(ready: StdioDemo) -> None:
    levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    for level in levels:
        assert ready.request("logging/setLevel", {"level": level})["result"] == {}
        ready.seen.clear()
        tool(ready, "log", message="x")
        told = [m["params"]["level"] for m in ready.notifications("notifications/message")]
        assert told == levels[levels.index(level) :]


def test_only_subscribers_hear_of_updates(ready: StdioDemo) -> None:
    tool(ready, "bump")
    assert not ready.notifications("notifications/resources/updated")
    assert ready.request("resources/subscribe", {"uri": "demo://counter"})["result"] == {}
    tool(ready, "bump")
    told = ready.notifications("notifications/resources/updated")
    assert [message["params"] for message in told] == [{"uri": "demo://counter"}]
    read = ready.request("resources/read", {"uri": "demo://counter"})["result"]["contents"]
    assert read[0]["text"] == "2"
    assert ready.request("resources/unsubscribe", {"uri": "demo://counter"})["result"] == {}
    tool(ready, "bump")
    assert len(ready.notifications("notifications/resources/updated")) == 1


def test_toggling_a_tool_changes_the_list_and_says_so(ready: StdioDemo) -> None:
    for offered in (True, False, True):
        ready.seen.clear()
        tool(ready, "toggle_tool")
        assert len(ready.notifications("notifications/tools/list_changed")) == 1
        names = [item["name"] for item in list_all(ready, "tools/list", "tools")]
        assert ("extra" in names) is offered
    assert tool(ready, "extra")["result"]["content"]


def test_a_cancelled_request_gets_no_response(ready: StdioDemo) -> None:
    slow = {"name": "slow", "arguments": {"seconds": 60}}
    ready.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": slow})
    ready.request("ping")
    cancelled = {"requestId": "s", "reason": "enough"}
    ready.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    # Its id is free again, so it can't be running any more.
    assert ready.request("ping", identifier="s")["result"] == {}
    assert [message.get("id") for message in ready.seen].count("s") == 1


def test_an_id_in_use_is_refused(ready: StdioDemo) -> None:
    slow = {"name": "slow", "arguments": {"seconds": 60}}
    ready.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": slow})
    assert ready.request("ping", identifier="s")["error"]["code"] == -32600


def test_the_client_is_asked_for_a_sample_and_for_its_roots(ready: StdioDemo) -> None:
    asked = tool(ready, "ask_model", question="6 * 7?")
    assert asked["result"]["content"][0]["text"] == "The model answered: 42"
    roots = tool(ready, "list_roots")
    assert roots["result"]["content"][0]["text"] == "file:///somewhere"


def test_the_client_is_not_asked_for_what_it_did_not_declare(demo: StdioDemo, version: str) -> None:
    demo.initialize(version, {})
    for name in ("ask_model", "list_roots", "ask_user"):
        arguments = {} if name == "list_roots" else {"question": "?"}
        response = tool(demo, name, **arguments)
        if name == "ask_user" and not since(version, C):
            continue
        assert response["result"]["isError"] is True
    assert not [message for message in demo.seen if "method" in message]


def test_a_client_with_only_url_elicitation_is_not_shown_a_form(demo: StdioDemo) -> None:
    demo.initialize(D, {"elicitation": {"url": {}}})
    assert tool(demo, "ask_user", question="?")["result"]["isError"] is True


def test_nothing_is_asked_before_the_client_is_initialized(demo: StdioDemo) -> None:
    demo.request("initialize", initialize_params(D))
    assert tool(demo, "ask_model", question="?")["result"]["isError"] is True
    assert demo.request("tools/list")["result"]["tools"]


@pytest.mark.parametrize(
    "answer",
    [{}, {"role": "assistant"}, [], None, {"role": "assistant", "content": 5, "model": "m"}],
)
def test_an_unusable_answer_of_the_client_fails_the_tool(demo: StdioDemo, answer: Any) -> None:
    demo.initialize(D)
    demo.answer = lambda request: answer
    assert tool(demo, "ask_model", question="?")["result"]["isError"] is True


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_does_not_answer_is_no_failure(demo: StdioDemo, action: str) -> None:
    demo.initialize(D)
    demo.answer = lambda request: {"action": action}
    result = tool(demo, "ask_user", question="?")["result"]
    assert "isError" not in result


def test_an_error_answer_of_the_client_fails_the_tool(demo: StdioDemo) -> None:
    demo.initialize(D)
    params = {"name": "ask_model", "arguments": {"question": "?"}}
    demo.send({"jsonrpc": "2.0", "id": "q", "method": "tools/call", "params": params})
    asked = demo.receive()
    assert asked["method"] == "sampling/createMessage"
    error = {"code": -1, "message": "the user said no"}
    demo.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
    assert demo.response("q")["result"]["isError"] is True


def test_a_cancelled_call_takes_its_question_back(demo: StdioDemo) -> None:
    demo.initialize(D)
    params = {"name": "ask_model", "arguments": {"question": "?"}}
    demo.send({"jsonrpc": "2.0", "id": "q", "method": "tools/call", "params": params})
    asked = demo.receive()
    cancelled = {"requestId": "q"}
    demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    taken_back = demo.receive()
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == asked["id"]
    demo.send({"jsonrpc": "2.0", "id": asked["id"], "result": demo.answer(asked)})
    assert demo.request("ping")["result"] == {}
    assert "q" not in [message.get("id") for message in demo.seen]


def test_completions_are_cut_at_a_hundred_and_counted(ready: StdioDemo) -> None:
    template = {"type": "ref/resource", "uri": "demo://notes/{id}"}
    params: Obj = {"ref": template, "argument": {"name": "id", "value": ""}}
    completion = ready.request("completion/complete", params)["result"]["completion"]
    assert len(completion["values"]) == 100
    assert (completion["total"], completion["hasMore"]) == (150, True)
    prompt = {"type": "ref/prompt", "name": "review"}
    params = {"ref": prompt, "argument": {"name": "language", "value": "py"}}
    completion = ready.request("completion/complete", params)["result"]["completion"]
    assert completion == {"values": ["python"], "total": 1, "hasMore": False}


def test_files_are_read_written_and_listed_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret-link").symlink_to("/etc/passwd")
    with StdioDemo("--root", str(tmp_path)) as demo:
        demo.initialize(D)
        assert "isError" not in tool(demo, "write_file", path="inner/a.txt", text="ü")["result"]
        assert (tmp_path / "inner" / "a.txt").read_text(encoding="utf-8") == "ü"
        read = tool(demo, "read_file", path="inner/a.txt")["result"]
        assert read["content"][0]["text"] == "ü"
        listed = tool(demo, "list_files")["result"]["content"][0]["text"]
        assert listed.splitlines() == ["inner/a.txt", "secret-link"]
        for path in ("secret-link", "../x", "/etc/passwd", "inner", "inner/../../x", "a\0b"):
            assert tool(demo, "read_file", path=path)["result"]["isError"] is True


def test_without_a_root_nothing_is_written_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with StdioDemo() as demo:
        demo.initialize(D)
        assert tool(demo, "list_files")["result"]["content"][0]["text"] == "welcome.txt"
        tool(demo, "write_file", path="new.txt", text="kept in memory")
        assert tool(demo, "read_file", path="new.txt")["result"]["content"][0]["text"] == (
            "kept in memory"
        )
        assert not list(tmp_path.iterdir())
        assert demo.close() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with StdioDemo() as demo:
        demo.initialize(D)
        tool(demo, "list_files")
        demo.process.send_signal(number)
        assert demo.process.wait(BOUND) == 0
    assert not list(tmp_path.iterdir())


def test_the_end_of_input_ends_it_while_a_call_is_running(ready: StdioDemo) -> None:
    slow = {"name": "slow", "arguments": {"seconds": 60}}
    ready.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": slow})
    ready.request("ping")
    assert ready.close() == 0


def test_a_client_that_writes_without_reading_is_served_all_the_same(demo: StdioDemo) -> None:
    demo.initialize(D)
    lines = b"".join(
        b'{"jsonrpc":"2.0","id":"n%d","method":"tools/list"}\n' % number for number in range(500)
    )
    demo.write(lines)
    for number in range(500):
        assert demo.receive()["id"] == f"n{number}"


def test_a_client_that_never_reads_is_no_longer_listened_to(demo: StdioDemo) -> None:
    """What it asked for stays within bounds, and it gets all of it once it reads."""
    demo.initialize(D)
    assert demo.process.stdin is not None
    stdin = demo.process.stdin.fileno()
    os.set_blocking(stdin, False)
    line = b'{"jsonrpc":"2.0","id":%06d,"method":"tools/list"}\n'.replace(b"%06d", b'"%06d"')
    sent, left = 0, b""
    while select.select([], [stdin], [], 1.0)[1]:
        if not left:
            assert sent < 100_000, "it takes any number of requests"
            left = b"".join(line % number for number in range(sent, sent + 100))
            sent += 100
        left = left[os.write(stdin, left) :]
    os.set_blocking(stdin, True)
    complete = sent - left.count(b"\n")
    for number in range(complete - 10):
        assert demo.receive()["id"] == f"{number:06d}"
