"""The full form of a capture: what is written is what is read, and bad lines are named."""

from __future__ import annotations

import pytest

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Note,
    Opened,
    Sse,
    SseEvent,
    Stderr,
    StreamEnd,
    Trouble,
)
from mcptest.core.errors import UsageError
from mcptest.wire.capture_forms import decode_records
from tests.support.records import encode_record

RECORDS: list[AnyRecord] = [
    Opened(server_label="x", transport="http", channel="c", peer="http://127.0.0.1/"),
    Frame(t=0.5, sender="client", raw=b'{"jsonrpc":"2.0"}'),
    Frame(t=0.5, sender="server", raw=b"[]", stream=3, sse=Sse(id="4", event="message", retry=5)),
    HttpRequest(stream=1, method="POST", url="http://127.0.0.1/", headers=(("a", "b"),)),
    HttpResponse(stream=1, status=200, headers=(("a", "b"), ("a", "c"))),
    SseEvent(stream=1, sse=Sse(id="1"), comment="hi"),
    StreamEnd(stream=1, complete=False),
    Stderr(text="line\u2028"),
    Exited(code=1, after="kill"),
    Trouble(error="timeout", detail="nothing"),
    Note(text="n"),
    Closed(records=3, interrupted=True),
]

ODD_BYTES = [
    b'{"a" : 1, "a":2}',
    b' {"a":1}',
    b'{"a":1}\r',
    b'{"a":NaN}',
    b'{"a":"\xff"}',
    b"\xff\x00",
    b"",
    b"[" * 1000 + b"]" * 1000,
    b'{"a":\n1}',
    b'"x"',
    b'{"a":"\\ud800"}',
    b'{"a":1' + b"0" * 5000 + b"}",
    b"\xef\xbb\xbf{}",
    b"}{",
    b"{}{}",
    "\u2028é".encode(),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_survives_writing_and_reading(record: AnyRecord) -> None:
    line = encode_record(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert list(decode_records([line])) == [record]


@pytest.mark.parametrize("raw", ODD_BYTES, ids=lambda raw: repr(raw[:12]))
def test_the_bytes_of_a_message_survive_whatever_they_are(raw: bytes) -> None:
    frame = Frame(t=1.25, sender="server", raw=raw)
    line = encode_record(frame)
    assert line.count(b"\n") == 1
    assert list(decode_records([line])) == [frame]


def test_a_json_message_is_embedded_byte_for_byte() -> None:
    line = encode_record(Frame(t=0.5, sender="client", raw=b'{"a" : 1,  "a":2}'))
    assert line == b'{"kind":"message","t":0.5,"sender":"client","message":{"a" : 1,  "a":2}}\n'


def test_a_torn_last_line_is_forgiven() -> None:
    lines = [encode_record(RECORDS[0]), encode_record(RECORDS[1])[:30]]
    assert list(decode_records(lines)) == RECORDS[:1]


def test_a_last_line_that_only_lacks_its_newline_counts() -> None:
    lines = [encode_record(RECORDS[0]), encode_record(RECORDS[1]).rstrip(b"\n")]
    assert list(decode_records(lines)) == RECORDS[:2]


def test_an_empty_line_is_passed_over() -> None:
    assert list(decode_records([encode_record(RECORDS[0]), b"\n"])) == RECORDS[:1]


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        (b"nonsense\n", "not a record"),
        (b'{"kind":"banana"}\n', "banana"),
        (b'{"kind":"message","sender":"client"}\n', "without its message"),
        (b'{"kind":"message","sender":"me","message":{}}\n', "sender"),
        (b'{"kind":"message","sender":"client","base64":"%%%"}\n', "not base64"),
        (b'{"kind":"capture","server_label":"x","format":99}\n', "newer than this mcptest"),
        (b'{"kind":"message","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "deep"),
        (b'{"kind":"capture","server_label":"x","format":99}', "newer than this mcptest"),
    ],
)
def test_a_bad_line_is_named_with_its_number(line: bytes, phrase: str) -> None:
    lines = [encode_record(RECORDS[0]), line, encode_record(RECORDS[1])]
    with pytest.raises(UsageError) as caught:
        list(decode_records(lines, "f.jsonl"))
    assert "f.jsonl:2:" in caught.value.message
    assert phrase in caught.value.message
