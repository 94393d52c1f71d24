"""The demo over HTTP: statuses, headers, sessions, streams and what hostile clients send."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_peer import (
    BOUND,
    CAPABILITIES,
    HANDSHAKE,
    PREFIX,
    A,
    B,
    C,
    D,
    E,
    HttpDemo,
    Obj,
    Reply,
    client_answer,
    events_of,
    http_demo,
    initialize_params,
    lines_of,
    meta,
    send,
    stateless_headers,
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDemo]:
    with http_demo(tmp_path_factory.mktemp("demo")) as server:
        yield server
        assert server.process.poll() is None, "the demo died during these tests"


def request_message(method: str, params: Obj | None = None, identifier: Any = 1) -> Obj:
    message: Obj = {"jsonrpc": "2.0", "id": identifier, "method": method}
    return message if params is None else {**message, "params": params}


class Session:
    """One handshake session; each request is a POST of its own."""

    def __init__(
        self, demo: HttpDemo, version: str = D, capabilities: Obj | None = None, **headers: str
    ) -> None:
        self.demo = demo
        hello = request_message("initialize", initialize_params(version, capabilities))
        self.welcome = demo.ask("POST", hello, headers)
        self.headers = {"Mcp-Session-Id": self.welcome.headers["mcp-session-id"]}
        if version in {C, D}:
            self.headers["MCP-Protocol-Version"] = version
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.initialized = demo.ask("POST", initialized, self.headers)

    def post(self, message: Any, **headers: str) -> Reply:
        return self.demo.ask("POST", message, {**self.headers, **headers})

    def request(self, method: str, params: Obj | None = None, identifier: Any = 1) -> Reply:
        return self.post(request_message(method, params, identifier))

    def tool(self, name: str, **arguments: Any) -> Reply:
        return self.request("tools/call", {"name": name, "arguments": arguments})


class EventStream:
    """An open stream, read event by event."""

    def __init__(
        self,
        demo: HttpDemo,
        method: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        path: str = "/mcp",
    ) -> None:
        self.connection = demo.connect()
        send(self.connection, method, body, headers, path)
        self.response = self.connection.getresponse()
        self._events = events_of(lines_of(self.response))

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.response.close()
        self.connection.close()

    def event(self) -> dict[str, str]:
        return next(self._events)

    def message(self) -> Any:
        """The next event that carries a message."""
        return next(json.loads(event["data"]) for event in self._events if event.get("data"))


def modern(demo: HttpDemo, method: str, params: Obj | None = None, **change: Any) -> Reply:
    """A stateless request with its headers; `change` replaces or removes (None) headers."""
    message = request_message(method, {**(params or {}), "_meta": meta()})
    headers = stateless_headers(message)
    for name, value in change.items():
        headers[name.replace("_", "-")] = value
    return demo.ask("POST", message, {k: v for k, v in headers.items() if v is not None})


# Handshake era


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_session_begins_is_used_and_ends(demo: HttpDemo, version: str) -> None:
    session = Session(demo, version)
    assert session.welcome.status == 200
    assert session.welcome.message["result"]["protocolVersion"] == version
    identifier = session.headers["Mcp-Session-Id"]
    assert all("!" <= letter <= "~" for letter in identifier)
    assert (session.initialized.status, session.initialized.body) == (202, b"")
    assert session.request("tools/list").message["result"]["tools"]
    assert demo.ask("DELETE", headers=session.headers).status == 200
    assert session.request("tools/list").status == 404
    assert demo.ask("GET", headers=session.headers).status == 404


def test_session_ids_differ(demo: HttpDemo) -> None:
    assert len({Session(demo).headers["Mcp-Session-Id"] for _ in range(5)}) == 5


def test_a_request_without_its_session_is_refused(demo: HttpDemo) -> None:
    assert demo.ask("POST", request_message("tools/list")).status == 400
    assert demo.ask("GET").status == 400
    assert demo.ask("DELETE").status == 400
    unknown = {"Mcp-Session-Id": "0" * 32}
    assert demo.ask("POST", request_message("tools/list"), unknown).status == 404
    assert demo.ask("DELETE", headers=unknown).status == 404


def test_a_failed_initialize_makes_no_session(demo: HttpDemo) -> None:
    reply = demo.ask("POST", request_message("initialize", {}))
    assert (reply.status, reply.code) == (400, -32602)
    assert "mcp-session-id" not in reply.headers


@pytest.mark.parametrize("given", ["1999-01-01", "nonsense", A])
def test_a_wrong_version_header_is_refused(demo: HttpDemo, given: str) -> None:
    session = Session(demo)
    reply = session.post(request_message("ping"), **{"MCP-Protocol-Version": given})
    assert reply.status == 400


def test_a_missing_version_header_is_fine(demo: HttpDemo) -> None:
    session = Session(demo)
    del session.headers["MCP-Protocol-Version"]
    assert session.request("ping").message["result"] == {}


def test_a_batch_is_answered_in_one_body_where_batches_exist(demo: HttpDemo) -> None:
    batch = [request_message("ping", identifier=1), request_message("ping", identifier=2)]
    reply = Session(demo, B).post(batch)
    assert reply.status == 200
    assert sorted(item["id"] for item in reply.message) == [1, 2]
    only_told = [{"jsonrpc": "2.0", "method": "notifications/x"}]
    assert Session(demo, B).post(only_told).status == 202
    assert Session(demo, D).post(batch).status == 400


def test_the_answer_is_json_until_there_is_more_to_say(demo: HttpDemo) -> None:
    session = Session(demo)
    assert session.tool("add", a=1, b=2).kind == "application/json"
    params = {"name": "countdown", "arguments": {"steps": 2}, "_meta": {"progressToken": 1}}
    reply = session.request("tools/call", params)
    assert reply.kind == "text/event-stream"
    assert reply.headers["x-accel-buffering"] == "no"
    assert [message.get("method", "answer") for message in reply.messages] == [
        "notifications/progress",
        "notifications/progress",
        "answer",
    ]


@pytest.mark.parametrize(("version", "primed"), [(C, False), (D, True)])
def test_a_stream_begins_with_an_empty_event_from_2025_11_25_on(
    demo: HttpDemo, version: str, primed: bool
) -> None:
    reply = Session(demo, version).tool("log")
    assert (reply.events[0]["data"] == "") is primed
    assert len({event["id"] for event in reply.events}) == len(reply.events)


@pytest.mark.parametrize("name", ["ask_model", "ask_user", "list_roots"])
def test_the_client_is_asked_on_the_stream_of_its_request(demo: HttpDemo, name: str) -> None:
    session = Session(demo)
    arguments = {} if name == "list_roots" else {"question": "?"}
    message = request_message("tools/call", {"name": name, "arguments": arguments}, "q")
    with EventStream(demo, "POST", message, session.headers) as stream:
        asked = stream.message()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": client_answer(asked)}
        assert session.post(answer).status == 202
        done = stream.message()
        assert done["id"] == "q"
        assert "isError" not in done["result"]
        assert not stream.response.read(), "the stream ends with the response"


def test_messages_of_no_request_go_to_one_get_stream(demo: HttpDemo) -> None:
    session = Session(demo)
    get = {**session.headers, "Accept": "text/event-stream"}
    with EventStream(demo, "GET", headers=get) as first:
        with EventStream(demo, "GET", headers=get) as second:
            assert second.response.status == 200
            assert second.event()["data"] == ""
            session.request("resources/subscribe", {"uri": "demo://counter"})
            session.tool("bump")
            assert second.message()["method"] == "notifications/resources/updated"
            session.tool("toggle_tool")
            assert second.message()["method"] == "notifications/tools/list_changed"
            demo.ask("DELETE", headers=session.headers)
            assert not second.response.read()
        assert [event.get("data") for event in first._events] == [""], "nothing is sent twice"


def test_what_happens_before_the_first_get_stream_is_kept_for_it(demo: HttpDemo) -> None:
    session = Session(demo)
    session.tool("toggle_tool")
    with EventStream(demo, "GET", headers=session.headers) as stream:
        assert stream.message()["method"] == "notifications/tools/list_changed"


def test_a_broken_stream_is_resumed_where_it_broke(demo: HttpDemo) -> None:
    session = Session(demo)
    params = {"name": "countdown", "arguments": {"steps": 4, "delay_ms": 30}}
    message = request_message("tools/call", {**params, "_meta": {"progressToken": "p"}}, "c")
    with EventStream(demo, "POST", message, session.headers) as stream:
        stream.event()  # only gives an id
        seen = stream.event()
    session.tool("log")  # another stream, whose events must not be replayed
    resumed = demo.ask("GET", headers={**session.headers, "Last-Event-ID": seen["id"]})
    assert [m["params"]["progress"] for m in resumed.messages if "params" in m] == [2, 3, 4]
    assert resumed.message["id"] == "c"
    again = demo.ask("GET", headers={**session.headers, "Last-Event-ID": seen["id"]})
    assert again.messages == resumed.messages


def test_a_lost_connection_does_not_cancel_in_the_handshake_era(demo: HttpDemo) -> None:
    session = Session(demo)
    message = request_message("tools/call", {"name": "slow", "arguments": {"seconds": 30}}, "s")
    connection = demo.connect()
    send(connection, "POST", message, session.headers)
    connection.close()
    assert session.post(request_message("ping", identifier="s")).code == -32600
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "s"},
    }
    assert session.post(cancelled).status == 202
    assert session.post(request_message("ping", identifier="s")).message["result"] == {}


def test_a_cancelled_request_ends_without_a_response(demo: HttpDemo) -> None:
    session = Session(demo)
    message = request_message("tools/call", {"name": "slow", "arguments": {"seconds": 60}}, "s")
    connection = demo.connect()
    send(connection, "POST", message, session.headers)
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "s"},
    }
    while session.post(request_message("ping", identifier="s")).status == 200:
        if "error" in session.post(request_message("ping", identifier="s")).message:
            break  # the slow call has arrived
    session.post(cancelled)
    reply = Reply(connection.getresponse())
    connection.close()
    assert reply.messages == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{not json", 400, -32700),
        (b'"\xff"', 400, -32700),
        (b"[]", 400, -32600),
        (b"5", 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', 200, -32602),
        (b"[" * 100_000, 400, -32700),
    ],
)
def test_a_bad_message_has_its_status_and_code(
    demo: HttpDemo, body: bytes, status: int, code: int
) -> None:
    reply = Session(demo).post(body)
    assert (reply.status, reply.code) == (status, code)


# Both eras


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Content-Type": "text/plain"}, 415),
        ("POST", {"Content-Type": ""}, 415),
        ("POST", {"Accept": "application/json"}, 406),
        ("POST", {"Accept": "text/html"}, 406),
        ("GET", {"Accept": "application/json"}, 406),
        ("PUT", {}, 405),
        ("OPTIONS", {}, 405),
        ("POST", {"Origin": "https://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Origin": "http://localhost.evil.example"}, 403),
        ("POST", {"Origin": "http://localhost@evil.example"}, 403),
        ("POST", {"Host": "evil.example"}, 403),
        ("POST", {"Host": "127.0.0.1.evil.example:80"}, 403),
        ("GET", {"Origin": "https://evil.example"}, 403),
    ],
)
def test_a_request_of_the_wrong_form_is_refused(
    demo: HttpDemo, method: str, headers: dict[str, str], status: int
) -> None:
    body = request_message("initialize", initialize_params(D)) if method == "POST" else None
    assert demo.ask(method, body, headers).status == status


@pytest.mark.parametrize("origin", ["http://localhost", "http://127.0.0.1:9999", "http://[::1]:1"])
def test_local_origins_are_welcome(demo: HttpDemo, origin: str) -> None:
    assert Session(demo, D, None, Origin=origin).welcome.status == 200


def test_other_paths_do_not_exist(demo: HttpDemo) -> None:
    assert demo.ask("GET", path="/").status == 404


def test_a_body_that_is_too_large_is_refused(demo: HttpDemo) -> None:
    assert demo.ask("POST", b" " * 100, {"Content-Length": str(10**9)}).status == 413
    assert demo.ask("POST", b" " * 6_000_000).status == 413


RAW: list[tuple[str, bytes, bytes]] = [
    ("no host", b"GET /mcp HTTP/1.1\r\n\r\n", b"400"),
    ("other protocol", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ("HTTP/3.0", b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n", b"505"),
    ("bad length", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
    (
        "two lengths",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"400",
    ),
    (
        "length and chunks",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"400",
    ),
    (
        "bad chunk",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"400",
    ),
    (
        "huge chunk",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"413",
    ),
    ("folded header", b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", b"400"),
    ("huge head", b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
]


@pytest.mark.parametrize(("data", "status"), [case[1:] for case in RAW], ids=[c[0] for c in RAW])
def test_bad_http_is_answered_and_the_connection_closed(
    demo: HttpDemo, data: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", demo.port), timeout=BOUND) as raw:
        raw.sendall(data)
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    assert answer.split(b" ")[1] == status


def test_requests_in_one_write_are_answered_in_order(demo: HttpDemo) -> None:
    head = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", demo.port), timeout=BOUND) as raw:
        raw.sendall(head * 5 + head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    assert answer.count(b"HTTP/1.1 404") == 6


def test_a_chunked_body_byte_by_byte_is_read(demo: HttpDemo) -> None:
    message = json.dumps(request_message("initialize", initialize_params(D))).encode()
    head = (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Accept: */*\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in message) + b"0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", demo.port), timeout=BOUND) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(0, len(head + body), 7):
            raw.sendall((head + body)[place : place + 7])
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200")


def test_silent_and_abandoned_connections_do_not_stop_others(demo: HttpDemo) -> None:
    idle = [socket.create_connection(("127.0.0.1", demo.port)) for _ in range(50)]
    try:
        for place, connection in enumerate(idle):
            connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: local"[:place])
        assert Session(demo).request("ping").message["result"] == {}
    finally:
        for connection in idle:
            connection.close()


def is_served(demo: HttpDemo) -> bool:
    try:
        return modern(demo, "server/discover").status == 200
    except (http.client.HTTPException, ConnectionError):
        return False


def test_there_is_an_end_to_the_number_of_connections(tmp_path: Path) -> None:
    with http_demo(tmp_path) as demo:
        many = [socket.create_connection(("127.0.0.1", demo.port)) for _ in range(256)]
        try:
            with socket.create_connection(("127.0.0.1", demo.port), timeout=BOUND) as refused:
                assert refused.recv(1000).startswith(b"HTTP/1.1 503")
        finally:
            for connection in many:
                connection.close()
        end = time.monotonic() + BOUND
        while not is_served(demo):
            assert time.monotonic() < end, "closed connections are not forgotten"


def test_large_answers_arrive_whole(demo: HttpDemo) -> None:
    text = "ü" * 300_000
    assert Session(demo).tool("echo", text=text).message["result"]["content"][0]["text"] == text


def test_a_client_that_ends_its_side_still_gets_a_large_answer(demo: HttpDemo) -> None:
    params = {"name": "echo", "arguments": {"text": "x" * 900_000}, "_meta": meta()}
    message = request_message("tools/call", params)
    body = json.dumps(message).encode()
    fields = {**stateless_headers(message), "Content-Type": "application/json", "Accept": "*/*"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with socket.create_connection(("127.0.0.1", demo.port), timeout=BOUND) as raw:
        raw.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        raw.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := raw.recv(65536):
            answer += chunk
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["result"]["content"]


# Stateless era


def test_a_stateless_request_is_served_without_any_session(demo: HttpDemo) -> None:
    reply = modern(demo, "server/discover")
    assert reply.status == 200
    assert reply.message["result"]["supportedVersions"] == [E]
    assert "mcp-session-id" not in reply.headers
    assert modern(demo, "tools/list", Mcp_Session_Id="bogus", Last_Event_ID="1-1").status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_only_post_is_allowed_in_the_stateless_era(demo: HttpDemo, method: str) -> None:
    reply = demo.ask(method, headers={"MCP-Protocol-Version": E})
    assert reply.status == 405
    assert reply.headers["allow"] == "POST"


CITY = {"name": "weather", "arguments": {"city": "Bern"}}
HEADERS: list[tuple[str, str, Obj, dict[str, Any]]] = [
    ("no method", "tools/list", {}, {"Mcp_Method": None}),
    ("other method", "tools/list", {}, {"Mcp_Method": "tools/call"}),
    ("method in capitals", "tools/list", {}, {"Mcp_Method": "Tools/List"}),
    ("no version", "tools/list", {}, {"MCP_Protocol_Version": None}),
    ("other version", "tools/list", {}, {"MCP_Protocol_Version": D}),
    ("no name", "tools/call", {"name": "image"}, {"Mcp_Name": None}),
    ("other name", "tools/call", {"name": "image"}, {"Mcp_Name": "link"}),
    ("no uri", "resources/read", {"uri": "demo://logo"}, {"Mcp_Name": None}),
    ("no prompt", "prompts/get", {"name": "with_image"}, {"Mcp_Name": None}),
    ("no param", "tools/call", CITY, {"Mcp_Param_City": None}),
    ("other param", "tools/call", CITY, {"Mcp_Param_City": "Basel"}),
    ("bad base64", "tools/call", CITY, {"Mcp_Param_City": "=?base64?!!?="}),
    ("bad characters", "tools/call", CITY, {"Mcp_Param_City": "B\u00e9rn"}),
]


@pytest.mark.parametrize(
    ("method", "params", "change"), [case[1:] for case in HEADERS], ids=[c[0] for c in HEADERS]
)
def test_headers_that_do_not_match_the_body_are_refused(
    demo: HttpDemo, method: str, params: Obj, change: dict[str, Any]
) -> None:
    assert modern(demo, method, params).status == 200
    reply = modern(demo, method, params, **change)
    assert (reply.status, reply.code) == (400, -32020)


def test_encoded_headers_are_decoded_before_they_are_compared(demo: HttpDemo) -> None:
    def encoded(text: str) -> str:
        return f"=?base64?{base64.b64encode(text.encode()).decode()}?="

    city = {"name": "weather", "arguments": {"city": "Zürich"}}
    reply = modern(
        demo, "tools/call", city, Mcp_Name=encoded("weather"), Mcp_Param_City=encoded("Zürich")
    )
    assert reply.message["result"]["structuredContent"]["city"] == "Zürich"
    odd = {"name": "weather", "arguments": {"city": "=?base64?x?="}}
    assert modern(demo, "tools/call", odd, Mcp_Param_City=encoded("=?base64?x?=")).status == 200


def test_an_absent_argument_needs_no_header(demo: HttpDemo) -> None:
    reply = modern(demo, "tools/call", {"name": "weather", "arguments": {}})
    assert (reply.status, reply.message["result"]["isError"]) == (200, True)


STATUSES: list[tuple[str, Obj, Obj, int, int]] = [
    ("no/such", {}, {}, 404, -32601),
    ("ping", {}, {}, 404, -32601),
    ("tools/list", {"cursor": "x"}, {}, 400, -32602),
    ("resources/read", {"uri": "demo://nothing"}, {}, 400, -32602),
    ("tools/list", {}, {PREFIX + "clientCapabilities": None}, 400, -32602),
    ("tools/list", {}, {PREFIX + "protocolVersion": None}, 400, -32602),
    ("tools/list", {}, {PREFIX + "logLevel": "loud"}, 400, -32602),
    ("tools/list", {}, {PREFIX + "protocolVersion": "1900-01-01"}, 400, -32022),
    ("tools/call", {"name": "list_roots"}, {PREFIX + "clientCapabilities": {}}, 400, -32021),
]


@pytest.mark.parametrize(("method", "params", "change", "status", "code"), STATUSES)
def test_stateless_errors_have_their_status(
    demo: HttpDemo, method: str, params: Obj, change: Obj, status: int, code: int
) -> None:
    whole = {key: value for key, value in {**meta(), **change}.items() if value is not None}
    message = request_message(method, {**params, "_meta": whole})
    headers = stateless_headers(message)
    headers["MCP-Protocol-Version"] = whole.get(PREFIX + "protocolVersion", E)
    reply = demo.ask("POST", message, headers)
    assert (reply.status, reply.code) == (status, code)


def test_a_stateless_notification_is_accepted_and_a_response_is_not(demo: HttpDemo) -> None:
    headers = {"MCP-Protocol-Version": E}
    told = demo.ask("POST", {"jsonrpc": "2.0", "method": "notifications/x"}, headers)
    assert (told.status, told.body) == (202, b"")
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert demo.ask("POST", answer, headers).status == 400
    assert demo.ask("POST", [request_message("tools/list")], headers).status == 400


def test_a_stateless_stream_has_no_event_ids(demo: HttpDemo) -> None:
    message = request_message(
        "tools/call", {"name": "log", "_meta": meta(**{PREFIX + "logLevel": "alert"})}
    )
    reply = demo.ask("POST", message, stateless_headers(message))
    assert reply.kind == "text/event-stream"
    assert reply.headers["x-accel-buffering"] == "no"
    assert [event["event"] for event in reply.events] == ["message"] * 3
    assert not [event for event in reply.events if "id" in event]


def test_closing_the_stream_cancels_the_request(demo: HttpDemo) -> None:
    # A subscription is what shows it: the server forgets it, so a bump is told to one only.
    params = {"notifications": {"resourceSubscriptions": ["demo://counter"]}, "_meta": meta()}
    left = request_message("subscriptions/listen", params, "left")
    kept = request_message("subscriptions/listen", params, "kept")
    with EventStream(demo, "POST", kept, stateless_headers(kept)) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        with EventStream(demo, "POST", left, stateless_headers(left)) as other:
            tag = other.message()["params"]["_meta"]
            assert tag == {PREFIX + "subscriptionId": "left"}
        modern(demo, "tools/call", {"name": "bump"})
        told = stream.message()
        assert told["params"]["_meta"] == {PREFIX + "subscriptionId": "kept"}


def test_a_stateless_retry_works_on_any_connection(demo: HttpDemo) -> None:
    asked = modern(demo, "tools/call", {"name": "list_roots"}).message["result"]
    answers = {"roots": client_answer({"method": "roots/list"})}
    retry = {"name": "list_roots", "requestState": asked["requestState"], "inputResponses": answers}
    assert modern(demo, "tools/call", retry).message["result"]["resultType"] == "complete"
    forged = modern(demo, "tools/call", {**retry, "requestState": "1.2"})
    assert (forged.status, forged.code) == (400, -32602)


# Other ways to start it


def test_json_only_answers_carry_nothing_else(tmp_path: Path) -> None:
    with http_demo(tmp_path, "--response", "json") as demo:
        session = Session(demo)
        assert session.tool("log").kind == "application/json"
        refused = session.tool("ask_model", question="?")
        assert refused.message["result"]["isError"] is True
        assert modern(demo, "tools/call", {"name": "log"}).kind == "application/json"


def test_everything_can_be_answered_with_streams(tmp_path: Path) -> None:
    with http_demo(tmp_path, "--response", "sse") as demo:
        session = Session(demo)
        assert session.welcome.kind == "text/event-stream"
        assert session.request("ping").kind == "text/event-stream"
        assert modern(demo, "tools/list").kind == "text/event-stream"


def test_an_era_can_be_left_out(tmp_path: Path) -> None:
    with http_demo(tmp_path, "--era", "stateless") as demo:
        assert demo.ask("GET").status == 405
        assert demo.ask("GET", path="/sse").status == 404
        reply = demo.ask("POST", request_message("initialize", initialize_params(D)))
        assert (reply.status, reply.code) == (400, -32022)
        reply = demo.ask("POST", request_message("tools/list", {"_meta": meta()}))
        assert (reply.status, reply.code) == (400, -32020)
    with http_demo(tmp_path, "--spec-version", C) as demo:
        assert modern(demo, "server/discover").status == 400
        assert Session(demo, A).welcome.message["result"]["protocolVersion"] == C


def test_open_subscriptions_are_ended_when_the_server_ends(tmp_path: Path) -> None:
    with http_demo(tmp_path) as demo:
        message = request_message("subscriptions/listen", {"notifications": {}, "_meta": meta()})
        with EventStream(demo, "POST", message, stateless_headers(message)) as stream:
            stream.message()
            demo.process.send_signal(signal.SIGINT)
            assert stream.message()["result"]["resultType"] == "complete"
        assert demo.process.wait(BOUND) == 0


def test_a_port_in_use_is_told(demo: HttpDemo) -> None:
    command = [sys.executable, "-m", "mcptest.servers.demo", "--transport", "http"]
    process = subprocess.run(
        [*command, "--port", str(demo.port)], capture_output=True, timeout=BOUND
    )
    assert process.returncode == 2
    assert b"can't listen" in process.stderr


# HTTP+SSE


@pytest.mark.parametrize("version", [A, D])
def test_the_old_transport_answers_on_its_stream(demo: HttpDemo, version: str) -> None:
    with EventStream(demo, "GET", path="/sse") as stream:
        first = stream.event()
        assert first["event"] == "endpoint"
        path = first["data"]

        def post(message: Any) -> int:
            return demo.ask("POST", message, path=path).status

        hello = request_message("initialize", initialize_params(version, CAPABILITIES), "i")
        assert post(hello) == 202
        assert stream.message()["result"]["protocolVersion"] == version
        assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
        asking = {"name": "ask_model", "arguments": {"question": "?"}}
        assert post(request_message("tools/call", asking, "t")) == 202
        asked = stream.message()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": client_answer(asked)}
        assert post(answer) == 202
        assert stream.message()["id"] == "t"
        assert post(b"{bad") == 400
    assert demo.ask("POST", request_message("ping"), path="/messages?session_id=x").status == 404
