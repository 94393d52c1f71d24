"""A server played from a recording."""

from __future__ import annotations

import json
from typing import Any

from mcptest.core.capture import AnyRecord, Frame, Opened, Sender, Stderr
from mcptest.servers.demo.jsonrpc import Refusal
from mcptest.servers.replay import Replay
from mcptest.wire.envelope import decode


def recording(*lines: tuple[Sender, str]) -> list[AnyRecord]:
    opened: list[AnyRecord] = [Opened(server_label="x"), Stderr(text="noise")]
    return opened + [Frame(sender=sender, raw=text.encode()) for sender, text in lines]


def play(records: list[AnyRecord], *sent: str) -> list[str]:
    """What the server says to these messages, refusals by their words."""
    server = Replay(records)
    said = [raw.decode() for raw in server.begin()]
    for text in sent:
        try:
            said += [raw.decode() for raw in server.take(decode(text.encode()))]
        except Refusal as refusal:
            said.append(f"{refusal.code}: {refusal.message}")
    return said


def request(identifier: Any, method: str, params: object = None) -> str:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method}
    return json.dumps(message | ({} if params is None else {"params": params}))


CALL = {"name": "echo", "arguments": {"x": 1}}


def test_an_answer_is_byte_for_byte_the_same_but_for_its_id() -> None:
    answer = '{ "result": {"b":1.0, "id": 7},"id":7 ,"jsonrpc":"2.0"}'
    records = recording(("client", request(7, "tools/call", CALL)), ("server", answer))
    assert play(records, request(7, "tools/call", CALL)) == [answer]
    assert play(records, request("new", "tools/call", CALL)) == [
        '{ "result": {"b":1.0, "id": 7},"id":"new" ,"jsonrpc":"2.0"}'
    ]


def test_initialize_matches_whatever_the_client_says_of_itself() -> None:
    records = recording(
        ("client", request(0, "initialize", {"clientInfo": {"name": "old"}})),
        ("server", '{"id":0,"result":{}}'),
    )
    assert play(records, request(5, "initialize", {"x": 1})) == ['{"id":5,"result":{}}']


def test_a_request_matches_whatever_its_client_says_of_itself() -> None:
    def asked(identifier: int, **said: Any) -> str:
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}
        return request(identifier, "tools/list", {"_meta": meta})

    old = {"clientInfo": {"name": "old"}, "clientCapabilities": {"roots": {}}, "logLevel": "info"}
    new = {"clientInfo": {"name": "new"}, "clientCapabilities": {}}
    records = recording(
        ("client", asked(1, protocolVersion="2026-07-28", **old)),
        ("server", '{"id":1,"result":{}}'),
    )
    assert play(records, asked(5, protocolVersion="2026-07-28", **new)) == ['{"id":5,"result":{}}']
    (refused,) = play(records, asked(5, protocolVersion="1999-01-01", **new))
    assert "no response to tools/list" in refused


def test_equal_questions_get_the_recorded_answers_in_turn_and_then_the_last() -> None:
    records = recording(
        ("client", request(1, "ping")),
        ("server", '{"id":1,"result":"first"}'),
        ("client", request(2, "ping")),
        ("server", '{"id":2,"result":"second"}'),
    )
    said = play(records, request(1, "ping"), request(1, "ping", {}), request(3, "ping"))
    assert said == [
        '{"id":1,"result":"first"}',
        '{"id":1,"result":"second"}',
        '{"id":3,"result":"second"}',
    ]


def test_params_of_other_types_are_another_question() -> None:
    records = recording(
        ("client", request(1, "tools/call", {"x": 1})), ("server", '{"id":1,"result":{}}')
    )
    (said,) = play(records, request(1, "tools/call", {"x": True}))
    assert said == "-32603: the capture has no response to tools/call with these params"


def test_progress_goes_to_its_request_with_todays_token() -> None:
    then = CALL | {"_meta": {"progressToken": "old"}}
    now = CALL | {"_meta": {"progressToken": 9}}
    progress = '{"method":"notifications/progress","params":{"progressToken":%s,"progress":1}}'
    records = recording(
        ("client", request(1, "tools/call", then)),
        ("client", request(2, "ping")),
        ("server", progress % '"old"'),
        ("server", '{"id":2,"result":{}}'),
        ("server", '{"id":1,"result":{}}'),
    )
    assert play(records, request(2, "ping")) == ['{"id":2,"result":{}}']
    assert play(records, request(4, "tools/call", now)) == [progress % "9", '{"id":4,"result":{}}']


def test_notifications_in_between_are_replayed_and_other_records_are_not() -> None:
    note = '{"method":"notifications/message","params":{}}'
    records = recording(
        ("client", request(1, "ping")), ("server", note), ("server", '{"id":1,"result":{}}')
    )
    assert play(records, request(1, "ping")) == [note, '{"id":1,"result":{}}']


def test_what_follows_a_notification_of_the_client_follows_it_again() -> None:
    initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    records = recording(("client", initialized), ("server", '{"method":"hello"}'))
    assert play(records, initialized) == ['{"method":"hello"}']
    assert play(records, '{"method":"notifications/other"}') == []


def test_a_banner_comes_before_anything_is_asked() -> None:
    assert play(recording(("server", "Welcome!"))) == ["Welcome!"]


def test_the_answer_waits_until_the_client_has_answered_the_server() -> None:
    records = recording(
        ("client", request(3, "tools/call", CALL)),
        ("server", '{"id":1,"method":"roots/list"}'),
        ("client", '{"id":1,"result":{"roots":[]}}'),
        ("server", '{"id":3,"result":{}}'),
    )
    call = request(8, "tools/call", CALL)
    assert play(records, call) == ['{"id":1,"method":"roots/list"}']
    assert play(records, call, '{"id":1,"result":{}}') == [
        '{"id":1,"method":"roots/list"}',
        '{"id":8,"result":{}}',
    ]


def test_a_batch_is_answered_with_the_new_ids() -> None:
    then = f"[{request(1, 'ping')},{request(2, 'tools/list')}]"
    now = f"[{request('a', 'ping')},{request('b', 'tools/list')}]"
    records = recording(("client", then), ("server", '[{"id":2,"result":2}, {"id":1,"result":1}]'))
    assert play(records, now) == ['[{"id":"b","result":2}, {"id":"a","result":1}]']


def test_a_subscription_is_named_by_todays_id() -> None:
    changed = '{"method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}'
    records = recording(
        ("client", request(1, "subscriptions/listen")),
        ("client", request(2, "ping")),
        ("server", changed % "1"),
        ("server", '{"id":2,"result":{}}'),
    )
    said = play(records, request("s", "subscriptions/listen"), request(2, "ping"))
    assert said == [changed % '"s"', '{"id":2,"result":{}}']


def test_what_could_not_be_read_is_replayed_as_it_was() -> None:
    records = recording(("client", request(1, "ping")), ("server", '{"id":1,"result":'))
    assert play(records, request(2, "ping")) == ['{"id":1,"result":']
