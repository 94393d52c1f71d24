"""`assert_conforms`: over captures in both forms, over what was read already, over a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.errors import UsageError
from mcptest.testing import (
    AsyncClient,
    Client,
    MalformedAnswer,
    Server,
    assert_conforms,
    capture_of,
)
from tests.e2e.suite_runs import REPLIER


def session(*answers: dict[str, Any]) -> dict[str, Any]:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
    asked = {**hello, "clientInfo": {"name": "c", "version": "1"}}
    told = {**hello, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    first = {
        "request": {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked},
        "response": {"jsonrpc": "2.0", "id": 0, "result": told},
    }
    exchanges = [first, {"request": {"jsonrpc": "2.0", "method": "notifications/initialized"}}]
    exchanges += [
        {"request": {"jsonrpc": "2.0", "id": n, "method": "tools/list"}, "response": answer}
        for n, answer in enumerate(answers, start=1)
    ]
    return {"server_label": "s", "server_capabilities": {"tools": {}}, "exchanges": exchanges}


GOOD = session({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}})
BOTH = session({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "m"}})


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Server(REPLIER).connect() as client:
        yield client


def test_what_conforms_gives_its_verdicts() -> None:
    (judged,) = assert_conforms(GOOD)
    assert "MSG-002" in {verdict.rule for verdict in judged.verdicts}


@pytest.mark.parametrize("form", ["read", "list", "str", "path"])
def test_a_violation_is_told_with_its_proof(form: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(BOTH))
    subject = {"read": BOTH, "list": [BOTH], "str": str(path), "path": path}[form]
    with pytest.raises(AssertionError) as caught:
        assert_conforms(subject)  # type: ignore[arg-type]  # each of them is one
    said = str(caught.value)
    assert "is broken" in said or "are broken" in said
    assert "exchange 2, from the server" in said
    assert "mcptest explain" in said
    assert "passed" not in said


def test_every_session_with_a_finding_is_told_and_no_hazard_is_claimed() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_conforms([BOTH, GOOD, {**BOTH, "server_label": "t"}])
    said = str(caught.value)
    assert said.count("exchange 2, from the server") >= 2
    assert "composition" not in said


def test_a_session_that_exercises_nothing_is_no_success() -> None:
    empty = {"server_label": "s", "server_capabilities": {}, "exchanges": []}
    with pytest.raises(AssertionError, match="nothing was judged"):
        assert_conforms(empty)


def test_what_is_no_capture_is_not_a_failed_assertion(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("hello")
    with pytest.raises(UsageError, match="not a capture"):
        assert_conforms(tmp_path / "c.json")


def test_the_revision_can_be_chosen() -> None:
    (judged,) = assert_conforms(GOOD, "2025-06-18")
    assert str(judged.revision) == "2025-06-18"


def test_a_client_is_judged_while_its_session_goes_on(client: Client) -> None:
    client.call_tool("echo", {"text": "hi"})
    before = sum(session.messages for session in assert_conforms(client))
    client.call_tool("echo", {"text": "hi"})
    assert sum(session.messages for session in assert_conforms(client)) == before + 2
    wrapped = AsyncClient(client)
    assert_conforms(wrapped)
    wrapped.stop()


def test_a_server_that_breaks_a_rule_is_told(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    text = Path(REPLIER[-1]).read_text()
    script.write_text(text.replace('"content": [', '"isError": "no", "content": ['))
    with Server((*REPLIER[:-1], str(script))).connect() as client:
        with pytest.warns(MalformedAnswer, match="isError is a string, not a boolean"):
            client.call_tool("echo")
        with pytest.raises(AssertionError, match="from the server"):
            assert_conforms(client)


def test_what_the_test_itself_sends_is_no_fault_of_the_server(tmp_path: Path) -> None:
    place = tmp_path / "session.jsonl"
    with Server(REPLIER).connect(place) as client:
        client.send_raw(b'{"jsonrpc":"1.0","method":"notifications/odd"}')
        client.call_tool("echo")
        assert_conforms(client)
    with pytest.raises(AssertionError, match="from the client"):
        assert_conforms(place)


def test_a_capture_is_there_behind_the_session_when_it_was_asked_for(tmp_path: Path) -> None:
    place = tmp_path / "session.jsonl"
    with Server(REPLIER).connect(place) as kept, Server(REPLIER).connect() as gone:
        assert capture_of(gone).is_file()
    assert capture_of(kept) == place
    assert_conforms(kept)
    with pytest.raises(UsageError, match="was not kept"):
        assert_conforms(gone)


def test_a_client_of_other_making_has_no_capture() -> None:
    from mcptest.transport.target import transport_for

    target = Server(REPLIER).target
    with pytest.raises(UsageError, match="no capture"):
        assert_conforms(Client(transport_for(target, lambda record: None)))


def test_what_names_no_server_is_refused() -> None:
    with pytest.raises(UsageError, match="a int names no server"):
        Server.of(7)
