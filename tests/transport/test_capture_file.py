"""Opening captures of both forms, and refusing everything else with a place and a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.capture import Closed, Frame, Opened
from mcptest.core.errors import UsageError
from mcptest.core.message import ABSENT
from mcptest.transport.capture_file import open_capture
from mcptest.wire.capture_forms import exchanges_of, stored_sessions
from tests.support.records import encode_record

PING = {"request": {"jsonrpc": "2.0", "id": 1, "method": "ping"}, "response": {"id": 1}}


def public(**members: Any) -> dict[str, Any]:
    return {
        "server_label": "a",
        "server_capabilities": {"tools": {}},
        "exchanges": [PING],
    } | members


def write(path: Path, content: Any) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(text)
    return str(path)


def read(path: str) -> list[tuple[Any, list[Any]]]:
    return [(source, list(source.records)) for source in open_capture(path)]


def messages(records: list[Any]) -> list[Any]:
    return [json.loads(record.raw) for _, record in records if isinstance(record, Frame)]


def test_a_session_object_is_read(tmp_path: Path) -> None:
    [(source, records)] = read(write(tmp_path / "a.json", public()))
    assert (source.label, source.form, source.unit) == ("a", "exchanges", "exchange")
    assert source.server_capabilities == {"tools": {}}
    assert messages(records) == [PING["request"], PING["response"]]


def test_an_array_gives_several_sessions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [public(), public(server_label="b", exchanges=[])])
    assert [(s.label, len(records)) for s, records in read(path)] == [("a", 2), ("b", 0)]


@pytest.mark.parametrize("indent", [None, 2])
def test_capabilities_after_the_exchanges_are_known_from_the_start(
    tmp_path: Path, indent: int | None
) -> None:
    value = {"exchanges": [PING] * 3, "extra": [1, {"a": "}"}], "server_capabilities": {"x": {}}}
    path = write(tmp_path / "a.json", json.dumps(value, indent=indent).encode())
    [(source, records)] = read(path)
    assert source.server_capabilities == {"x": {}}
    assert [place for place, _ in records] == [0, 0, 1, 1, 2, 2]
    assert source.label == "a.json"


def test_capabilities_may_be_null_or_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [public(server_capabilities=None), {"exchanges": []}])
    assert [s.server_capabilities for s, _ in read(path)] == [None, ABSENT]


def test_a_null_response_is_no_response(tmp_path: Path) -> None:
    entry = {"request": {"method": "x"}, "response": None}
    [(_, records)] = read(write(tmp_path / "a.json", public(exchanges=[entry, PING])))
    assert [place for place, _ in records] == [0, 1, 1]


def test_duplicate_keys_and_spaces_of_a_message_survive(tmp_path: Path) -> None:
    text = b'{"exchanges": [{"request": {"a" : 1, "a":2}, "note": 1}]}'
    [(_, [(_, frame)])] = read(write(tmp_path / "a.json", text))
    assert frame.raw == b'{"a" : 1, "a":2}'


def test_strings_that_look_like_the_next_exchange_do_not_mislead(tmp_path: Path) -> None:
    trap = {"request": {"method": '"}, {"request": {', "params": {"x": '\\"}]'}}}
    path = write(tmp_path / "a.json", public(exchanges=[trap, PING, trap, PING]))
    [(_, records)] = read(path)
    assert messages(records) == [trap["request"], *PING.values()] * 2


def test_exchanges_with_the_response_first_are_read(tmp_path: Path) -> None:
    turned = {"response": PING["response"], "request": PING["request"]}
    [(_, records)] = read(write(tmp_path / "a.json", public(exchanges=[turned] * 300)))
    assert len(records) == 600
    assert messages(records)[:2] == [PING["request"], PING["response"]]


def test_a_byte_order_mark_before_the_public_form_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", b"\xef\xbb\xbf" + json.dumps(public()).encode())
    assert len(read(path)) == 1


def full(*labels: str) -> bytes:
    frame = Frame(sender="client", raw=b"{}")
    return b"".join(
        encode_record(record)
        for label in labels
        for record in (Opened(server_label=label, transport="stdio"), frame, Closed())
    )


def test_the_full_form_may_hold_several_sessions(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.jsonl", full("a", "b")))
    assert [(s.label, s.form, [place for place, _ in records]) for s, records in found] == [
        ("a", "full", [0, 1, 2]),
        ("b", "full", [0, 1, 2]),
    ]


def test_a_session_that_is_not_read_to_its_end_does_not_hide_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", full("a", "b"))
    assert [source.label for source in open_capture(path)] == ["a", "b"]


def test_a_full_capture_cut_in_its_last_line_is_read(tmp_path: Path) -> None:
    [(_, records)] = read(write(tmp_path / "a.jsonl", full("a")[:-8]))
    assert len(records) == 2


DEEP = b"[" * 100_000 + b"]" * 100_000
BAD = {
    "empty": (b"", "empty"),
    "blank": (b" \n\n", "empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00", "not a capture"),
    "text": (b"hello", "not a capture"),
    "number": (b"5", "not a capture"),
    "empty array": (b"[]", "without a session"),
    "array of numbers": (b"[1]", "offset 1: expected a session"),
    "no exchanges": (b'{"server_label": "a"}', "the member exchanges"),
    "exchanges no array": (b'{"exchanges": {}}', "exchanges to be an array"),
    "exchange no object": (b'{"exchanges": [3]}', "an exchange object"),
    "no request": (b'{"exchanges": [{"response": {}}]}', "missing required field `request`"),
    "request a number": (b'{"exchanges": [{"request": 3}]}', "not an object"),
    "request null": (b'{"exchanges": [{"request": null}]}', "not an object"),
    "response a string": (b'{"exchanges": [{"request": {}, "response": "x"}]}', "not an object"),
    "label a number": (b'{"server_label": 1, "exchanges": []}', "server_label to be a string"),
    "capabilities a list": (b'{"server_capabilities": [], "exchanges": []}', "an object or null"),
    "twice": (b'{"exchanges": [], "exchanges": []}', "twice"),
    "NaN": (b'{"exchanges": [{"request": {"a": NaN}}]}', "malformed"),
    "missing comma": (b'{"exchanges": [{"request": {}} {"request": {}}]}', "a comma"),
    "trailing": (b'{"exchanges": []} x', "the end of the file"),
    "deep message": (b'{"exchanges": [{"request": {"a": ' + DEEP + b"}}]}", "512 levels"),
    "deep file": (DEEP, "a session"),
    "deep member": (b'{"x": ' + DEEP + b', "exchanges": []}', "512 levels"),
    "bad full line": (full("a") + b"oops\n" + full("b"), "a:4: not a record"),
    "only a torn line": (b'{"kind":"capture","server_la', "no whole record"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_capture_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    content, phrase = BAD[name]
    with pytest.raises(UsageError) as caught:
        read(write(tmp_path / "a", content))
    assert phrase in caught.value.message
    assert caught.value.hint
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("cut", [20, 60, 100, 140])
def test_a_truncated_file_is_refused_with_its_offset(tmp_path: Path, cut: int) -> None:
    text = json.dumps(public(exchanges=[PING] * 3)).encode()[:cut]
    with pytest.raises(UsageError, match=f"ends at offset {cut}"):
        read(write(tmp_path / "a.json", text))


def test_a_directory_a_missing_file_and_a_bad_name_are_refused(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "none"), "a\0b"):
        with pytest.raises(UsageError, match="can't read the capture"):
            read(path)


def test_a_huge_line_is_refused_before_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcptest.transport.capture_file.LINE_LIMIT", 1000)
    with pytest.raises(UsageError, match="a line of more than 1000 bytes"):
        read(write(tmp_path / "a.jsonl", b'{"kind":"note","text":"' + b"x" * 2000))


def test_the_full_form_becomes_the_public_form(tmp_path: Path) -> None:
    text = [
        '{"jsonrpc":"2.0","id":"i","method":"initialize"}',
        '{"jsonrpc":"2.0","id":2,"method":"ping" }',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ]
    answers = [
        '{"jsonrpc":"2.0","id":2,"result":{}}',
        '{"jsonrpc":"2.0","method":"notifications/message"}',
        '{"jsonrpc":"2.0","id":"i","result":{"capabilities":{"tools":{}}}}',
        '{"jsonrpc":"2.0","id":"2","result":{}}',
    ]
    records = [
        Opened(server_label="s"),
        *(Frame(sender="client", raw=line.encode()) for line in text),
        *(Frame(sender="server", raw=line.encode()) for line in answers),
    ]
    value = exchanges_of(records)
    assert (value["server_label"], value["server_capabilities"]) == ("s", {"tools": {}})
    pairs = [
        (bytes(entry["request"]).decode(), bytes(entry.get("response", b"")).decode())
        for entry in value["exchanges"]
    ]
    assert pairs == [(text[0], answers[2]), (text[1], answers[0]), (text[2], "")]


def test_guessing_is_given_up_on_files_that_are_written_differently() -> None:
    walked: list[int] = []
    entry = b'{"note":"}, {\\"request\\"","request":{}}'
    text = b'{"exchanges":[' + b",".join([entry] * 500) + b"]}"
    [session] = stored_sessions(text, "x", walked.append)
    assert len(session.spans) == 1000
    assert len(walked) == 500
