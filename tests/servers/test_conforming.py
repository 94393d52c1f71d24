"""The server that scripts derive from behaves as the specification says, in both eras."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from mcptest.core.capture import HttpResponse
from mcptest.core.revision import Revision
from mcptest.servers.scripted.script import Obj, ScriptedCall, Visit
from tests.support.playing import (
    BOTH,
    BOUND,
    PREFIX,
    Adder,
    D,
    E,
    Http,
    Play,
    headers_of,
    on_its_own,
    playing,
    read_until,
)

ALL_OF_THEM: Obj = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "completions": {},
    "logging": {},
}


class Everything(Adder):
    capabilities = ALL_OF_THEM


@pytest.fixture(scope="module")
def old() -> Iterator[Play]:
    with playing(Everything(), D) as play:
        yield play


@pytest.fixture(scope="module")
def new() -> Iterator[Play]:
    with playing(Everything(), E) as play:
        yield play


# -- the handshake era -----------------------------------------------------------------------


def test_initialize_gives_a_session_and_the_revision_of_the_stage(old: Play) -> None:
    client = Http(old.port)
    answer = client.initialize("1999-01-01")
    assert answer.status == 200
    assert len(answer.headers["Mcp-Session-Id"]) == 32
    result = answer.message["result"]
    assert result["protocolVersion"] == "2025-11-25"
    assert result["serverInfo"]["name"] == "mcptest-scripted"
    assert result["capabilities"] == Everything.capabilities


def test_a_request_without_its_session_gets_400_and_with_a_foreign_one_404(old: Play) -> None:
    client = Http(old.port)
    assert client.ask("tools/list").status == 400
    client.headers["Mcp-Session-Id"] = "nobody's"
    assert client.ask("tools/list").status == 404


def test_a_deleted_session_is_gone(old: Play) -> None:
    client = Http(old.port)
    client.initialize()
    assert client.send("DELETE").status == 200
    assert client.ask("ping").status == 404


def test_another_version_than_the_agreed_one_gets_400(old: Play) -> None:
    client = Http(old.port)
    client.initialize()
    client.headers["MCP-Protocol-Version"] = "2025-06-18"
    assert client.ask("ping").status == 400
    client.headers["MCP-Protocol-Version"] = "2025-11-25"
    assert client.ask("ping").message["result"] == {}


def test_a_version_header_is_no_matter_before_a_version_is_agreed_on(old: Play) -> None:
    client = Http(old.port, {"MCP-Protocol-Version": "2025-06-18"})
    assert client.initialize("2025-06-18").status == 200


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("completion/complete", "completion"),
    ],
)
def test_what_is_declared_is_served(old: Play, new: Play, method: str, key: str) -> None:
    client = Http(old.port)
    client.initialize()
    assert key in client.ask(method).message["result"]
    assert key in Http(new.port).ask_on_its_own(method).message["result"]


@pytest.mark.parametrize("method", ["logging/setLevel", "resources/subscribe", "ping"])
def test_what_only_the_handshake_era_has_is_unknown_later(
    old: Play, new: Play, method: str
) -> None:
    client = Http(old.port)
    client.initialize()
    assert client.ask(method, {}).message["result"] == {}
    answer = Http(new.port).ask_on_its_own(method)
    assert (answer.status, answer.message["error"]["code"]) == (404, -32601)


def test_what_is_not_declared_is_unknown() -> None:
    with playing(Adder(), D) as play:
        client = Http(play.port)
        client.initialize()
        answer = client.ask("prompts/list")
        assert (answer.status, answer.message["error"]["code"]) == (200, -32601)


def test_a_tool_is_called_and_an_unknown_one_refused(old: Play) -> None:
    client = Http(old.port)
    client.initialize()
    answer = client.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert answer.message["result"]["content"][0]["text"] == "3"
    assert client.ask("tools/call", {"name": "sub"}).message["error"]["code"] == -32602
    assert client.ask("tools/call", {"name": 3}).message["error"]["code"] == -32602
    assert client.ask("resources/read", {"uri": "x://y"}).message["error"]["code"] == -32002


def test_notifications_and_answers_are_accepted(old: Play) -> None:
    client = Http(old.port)
    client.initialize()
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "s1", "result": {}},
    ):
        answer = client.post(message)
        assert (answer.status, answer.body) == (202, b"")


def test_what_belongs_to_no_request_goes_to_the_open_stream() -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}
    sent = []

    class Telling(Everything):
        def acknowledge(self, call: ScriptedCall) -> None:
            sent.append(self.stage.send(told))
            super().acknowledge(call)

    with playing(Telling(), D) as play:
        client = Http(play.port)
        client.initialize()
        client.ask("ping")
        session = f"Mcp-Session-Id: {client.headers['Mcp-Session-Id']}"
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", play.port), timeout=BOUND) as stream:
            stream.sendall(head.encode())
            assert b" 200 " in read_until(stream, b"\r\n\r\n")
            client.ask("ping")
            assert json.dumps(told, separators=(",", ":")).encode() in read_until(stream, b"}}")
    assert sent == [False, True]


# -- the stateless era -------------------------------------------------------------------------


def test_a_result_says_what_it_is_how_long_it_holds_and_who_gave_it(new: Play) -> None:
    result = Http(new.port).ask_on_its_own("tools/list").message["result"]
    assert result["resultType"] == "complete"
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "mcptest-scripted"


def test_discovery_names_the_version_and_the_capabilities(new: Play) -> None:
    result = Http(new.port).ask_on_its_own("server/discover").message["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == Everything.capabilities


@pytest.mark.parametrize("missing", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_missing_header_is_a_mismatch(new: Play, missing: str) -> None:
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    answer = Http(new.port).ask_on_its_own("tools/call", call, without=missing)
    assert (answer.status, answer.message["error"]["code"]) == (400, -32020)
    assert missing in answer.message["error"]["message"]


def test_a_request_without_its_meta_is_refused(new: Play) -> None:
    message = on_its_own("tools/list")
    for key in (f"{PREFIX}protocolVersion", f"{PREFIX}clientCapabilities"):
        broken = json.loads(json.dumps(message))
        del broken["params"]["_meta"][key]
        answer = Http(new.port).post(broken, headers_of(message))
        assert (answer.status, answer.message["error"]["code"]) == (400, -32602)


def test_another_version_is_refused_with_those_that_are_spoken(new: Play) -> None:
    message = on_its_own("tools/list")
    message["params"]["_meta"][f"{PREFIX}protocolVersion"] = "2030-01-01"
    headers = {**headers_of(message), "MCP-Protocol-Version": "2030-01-01"}
    answer = Http(new.port).post(message, headers)
    assert (answer.status, answer.message["error"]["code"]) == (400, -32022)
    assert answer.message["error"]["data"]["supported"] == ["2026-07-28"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_allowed_in_the_stateless_era(new: Play, method: str) -> None:
    answer = Http(new.port).send(method)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_a_client_of_the_handshake_era_learns_which_versions_there_are(new: Play) -> None:
    answer = Http(new.port).initialize()
    assert (answer.status, answer.message["error"]["code"]) == (400, -32022)


def test_a_designated_parameter_must_be_in_its_header() -> None:
    class Routed(Adder):
        tools = (
            {
                "name": "add",
                "inputSchema": {
                    "type": "object",
                    "properties": {"a": {"type": "number", "x-mcp-header": "First"}},
                },
            },
        )

    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    with playing(Routed(), E) as play:
        client = Http(play.port)
        assert client.ask_on_its_own("tools/call", call).status == 400
        ways = {"1": 200, "1.0": 200, "2": 400, "=?base64?MQ==?=": 200, "=?base64?!?=": 400}
        for value, status in ways.items():
            answer = client.ask_on_its_own("tools/call", call, **{"Mcp-Param-First": value})
            assert (value, answer.status) == (value, status)


def test_a_lenient_script_serves_requests_with_wrong_headers() -> None:
    class Lenient(Adder):
        checks_requests = False

    with playing(Lenient(), E) as play:
        assert Http(play.port).ask("tools/list").status == 200


def test_a_subscription_is_acknowledged_told_of_changes_and_forgotten() -> None:
    forgotten = threading.Event()

    class Changing(Everything):
        def hung_up(self, visit: Visit) -> None:
            super().hung_up(visit)
            forgotten.set()

        def call_tool(self, call: ScriptedCall, name: str, arguments: dict[str, object]) -> None:
            self.publish("notifications/tools/list_changed")
            self.text(call, str(len(self.listening)))

    with playing(Changing(), E) as play:
        wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
        message = on_its_own("subscriptions/listen", wanted, "sub")
        body = json.dumps(message).encode()
        lines = [f"{name}: {value}" for name, value in headers_of(message).items()]
        lines += ["Host: localhost", f"Accept: {BOTH}", f"Content-Length: {len(body)}"]
        head = "POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n"
        with socket.create_connection(("127.0.0.1", play.port), timeout=BOUND) as stream:
            stream.sendall(head.encode() + body)
            acknowledged = read_until(stream, b"}}\n\n")
            assert b'"notifications":{"toolsListChanged":true}}' in acknowledged
            assert b'subscriptionId":"sub"' in acknowledged
            told = Http(play.port).ask_on_its_own("tools/call", {"name": "x"})
            assert told.message["result"]["content"][0]["text"] == "1"
            assert b"tools/list_changed" in read_until(stream, b"}}\n\n")
        assert forgotten.wait(BOUND), "closing the stream is how this era cancels"
        told = Http(play.port).ask_on_its_own("tools/call", {"name": "x"})
        assert told.message["result"]["content"][0]["text"] == "0"


@pytest.mark.parametrize("revision", list(Revision))
def test_every_revision_has_its_stage(revision: Revision) -> None:
    with playing(Adder(), revision) as play:
        client = Http(play.port)
        if play.site.stateless:
            assert client.ask_on_its_own("tools/list").status == 200
        else:
            assert client.initialize().message["result"]["protocolVersion"] == revision.value
            assert client.ask("tools/list").status == 200
        assert play.site.defect == ""
    assert {record.status for record in play.of(HttpResponse)} == {200}


def test_batches_are_served_where_there_are_batches() -> None:
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    batch = [*pings, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    with playing(Adder(), Revision.V2025_03_26) as play:
        client = Http(play.port)
        client.initialize("2025-03-26")
        answers = [json.loads(event["data"]) for event in client.post(batch).events]
        assert [answer["id"] for answer in answers] == [1, 2]
        assert client.post(batch[2:]).status == 202
        assert client.post([]).status == 400
    with playing(Adder(), D) as play:
        client = Http(play.port)
        client.initialize()
        assert client.post(batch).message["error"]["code"] == -32600
