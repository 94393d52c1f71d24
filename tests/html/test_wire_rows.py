"""Captures as rows: requests with their answers, in both forms, findings on their message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcptest.core.capture import AnyRecord, Exited, Frame, HttpResponse, Opened, Stderr
from mcptest.core.errors import ExitCode
from mcptest.report.html import building
from mcptest.report.html.building import Pictures, pictured
from mcptest.report.html.embedded import Chunks
from mcptest.report.html.wire_rows import CLIENT_WORKS, SERVER_WORKS, WireSession
from mcptest.report.verdicts import SessionsReport
from tests.support.records import encode_record


def frame(sender: str, text: str, t: float = 0.0) -> Frame:
    assert sender in ("client", "server")
    return Frame(t=t, sender="client" if sender == "client" else "server", raw=text.encode())


def rows_of(*records: AnyRecord) -> WireSession:
    session = WireSession("x", "x.jsonl", "stdio", "full", Chunks("wire"))
    for place, record in enumerate(records):
        session.note(place, record)
    return session


CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'


def test_a_request_and_its_answer_name_each_other() -> None:
    session = rows_of(
        frame("client", CALL),
        frame("server", '{"jsonrpc":"2.0","method":"notifications/progress"}'),
        frame("server", '{"jsonrpc":"2.0","id":1,"result":{"isError":true}}'),
    )
    assert session.mates == {0: 2, 2: 0}
    assert session.kinds == ["request", "notification", "result"]
    assert session.labels[0] == "tools/call add #1"
    assert session.labels[2] == "tools/call #1 result isError"


def test_equal_ids_of_both_sides_are_two_requests() -> None:
    session = rows_of(
        frame("client", CALL),
        frame("server", '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'),
        frame("client", '{"jsonrpc":"2.0","id":1,"result":{}}'),
        frame("server", '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'),
    )
    assert session.mates == {0: 3, 3: 0, 1: 2, 2: 1}
    assert session.working == [SERVER_WORKS, SERVER_WORKS | CLIENT_WORKS, SERVER_WORKS, 0]
    assert session.labels[3] == "tools/call #1 error -32602 no"


def test_an_id_of_another_type_is_no_answer() -> None:
    session = rows_of(
        frame("client", CALL), frame("server", '{"jsonrpc":"2.0","id":"1","result":{}}')
    )
    assert session.mates == {}
    assert session.labels[1] == "response without a request #1 result"


def test_a_batch_answers_each_of_its_requests() -> None:
    session = rows_of(
        frame("client", f"[{CALL}]"), frame("server", '[{"jsonrpc":"2.0","id":1,"result":{}}]')
    )
    assert session.mates == {0: 1, 1: 0}


def test_everything_that_is_no_message_has_a_row_too() -> None:
    session = rows_of(
        Opened(server_label="demo", transport="http"),
        HttpResponse(stream=1, status=404, headers=(("Content-Type", "text/html"),)),
        Stderr(text="boom"),
        frame("server", "no json"),
    )
    assert session.labels == [
        "session demo · http",
        "404 text/html",
        "boom",
        "not a JSON-RPC message: no json",
    ]


def test_a_message_is_found_by_its_beginning() -> None:
    session = rows_of(Stderr(text="x"), frame("client", CALL + " " * 400))
    assert session.row_showing(CALL + " " * 100 + "…") == 1
    assert session.row_showing('{"other":1}') is None


def test_a_finding_of_the_public_form_is_on_the_side_that_sent_it(tmp_path: Path) -> None:
    exchange = {
        "request": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        "response": {"jsonrpc": "1.0", "id": 1, "result": {}},
    }
    path = tmp_path / "public.json"
    path.write_text(json.dumps({"server_label": "x", "exchanges": [exchange]}))
    pictures = pictured([str(path)])
    judged = pictures.judged()
    assert judged is not None
    assert judged.exit_code is ExitCode.FAILED
    assert isinstance(judged.report, SessionsReport)
    content = pictures.page([judged], judged.exit_code)
    sessions = content.partition(b'id="sessions">')[2].partition(b"</script>")[0]
    pins = json.loads(sessions)[0]["pins"]
    assert {pin["row"] for pin in pins if pin["rule"] == "MSG-001"} == {1}


def test_each_session_of_a_file_is_drawn_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    one = encode_record(Opened(server_label="a")) + encode_record(frame("client", CALL))
    path.write_bytes(one + one.replace(b'"a"', b'"b"'))
    pictures = pictured([str(path)])
    assert [session.label for session in pictures.sessions] == ["a", "b"]
    assert [session.first for session in pictures.sessions] == [0, 2]


def test_a_gap_has_one_row_that_says_how_much_is_missing() -> None:
    session = WireSession("x", "x.jsonl", "stdio", "full", Chunks("wire"))
    note = frame("server", '{"jsonrpc":"2.0","method":"notifications/message"}')
    for place in (0, 1, 2, 50_000, 50_001):
        session.note(place, note)
    assert session.left_out == 49_997
    assert session.kinds == ["notification"] * 3 + ["note"] + ["notification"] * 2
    assert session.labels[3].startswith("… and 49,997 more records")
    assert [session.row_of(place) for place in (2, 40_000, 50_000, 50_001)] == [2, 3, 4, 5]


def test_a_session_is_judged_up_to_the_first_record_that_is_left_out() -> None:
    session = WireSession("x", "x.jsonl", "stdio", "full", Chunks("wire"))
    note = frame("server", '{"jsonrpc":"2.0","method":"notifications/message"}')
    records = iter([(0, note), (1, note), (9, note), (10, note)])
    assert [place for place, _ in session.watching(records)] == [0, 1]
    assert len(session.kinds) == 5


def test_a_long_message_is_cut_once_the_page_has_many_bytes() -> None:
    chunks = Chunks("wire")
    session = WireSession("x", "x.jsonl", "stdio", "full", chunks)
    large = frame("server", json.dumps({"data": "x" * 6_000_000}))
    for place in range(20):
        session.note(place, large)
    kept = [json.loads(block)[0] for block in (*chunks.blocks, b"[" + chunks._waiting[0] + b"]")]
    assert {one["bytes"] for one in kept} == {len(large.raw)}
    assert len(kept[0]["raw"]) == len(large.raw)
    assert len(kept[-1]["raw"]) == 64 * 1024


def test_a_page_that_took_its_time_shows_less_of_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = Pictures().excerpt()
    monkeypatch.setattr(building, "SEARCHING", 0.0)
    late = Pictures().excerpt()
    assert usual.first > late.first == late.least
    assert late.telling == late.least
    assert Pictures().excerpt(judged=[]).first == usual.first, "what is asked for is shown"


@pytest.mark.parametrize(
    ("ended", "kind", "said"),
    [
        (Exited(code=0, after="stdin-closed"), "exit", "exit code 0 after stdin was closed"),
        (Exited(signal=15, after="terminate"), "exit", "ended by SIGTERM after our SIGTERM"),
        (Exited(code=143, after="terminate"), "exit", "exit code 143 after our SIGTERM"),
        (Exited(code=1, after="terminate"), "exit-badly", "exit code 1 after our SIGTERM"),
        (Exited(signal=9, after="kill"), "exit-badly", "ended by SIGKILL after our SIGKILL"),
        (Exited(code=0), "exit-badly", "exit code 0"),
        (Exited(signal=15), "exit-badly", "ended by SIGTERM"),
    ],
)
def test_a_server_that_ends_by_our_sigterm_has_ended_well(
    ended: Exited, kind: str, said: str
) -> None:
    session = rows_of(ended)
    assert (session.kinds, session.labels) == ([kind], [said])
