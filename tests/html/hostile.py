"""The worst that a peer, a test or a stored file could say, and pages made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Opened,
    Sse,
    Stderr,
    StreamEnd,
    Trouble,
)
from mcptest.core.results import FailedCheck, Proof, RunReport, Status
from mcptest.core.results import TestResult as Result
from tests.support.records import encode_record

SCRIPT = (
    "</script><script>window.ran=1</script><img src=x onerror='window.ran=1'>"
    "<!--<script>&lt;svg/onload=window.ran=1>"
)
REVERSED = "safe\u202egpj.exe\u2066\u200b"
CONTROL = "\x1b[2J\x1b]0;owned\x07\x00\r\n::error:: \x9b"
LONG = "BEGIN" + "A" * 10_000_000 + SCRIPT + "THE END"
SEPARATORS = "one\u2028two\u2029three\u0085four"
HALF = "half \ud800 of a pair"
HALF_SENT = b'{"jsonrpc":"2.0","method":"half","params":{"name":"\\ud800 \\udc00 \\u2028"}}'
NOT_TEXT = b"\xff\xfe<script>window.ran=1</script>"
DUPLICATE = b'{"jsonrpc":"2.0","id":99,"result":{},"result":{"big":12345678901234567890123}}'


def said(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def records(long: str) -> Iterator[AnyRecord]:
    yield Opened(server_label=SCRIPT + REVERSED, transport="http")
    headers = (("content-type", "application/json"), ("x-hostile", SCRIPT))
    yield HttpRequest(t=0.001, stream=1, method="POST", url="http://x/" + SCRIPT, headers=headers)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": REVERSED}}
    yield Frame(t=0.002, sender="client", raw=said(call), stream=1)
    yield HttpResponse(t=0.003, stream=1, status=200, headers=(("content-type", SCRIPT),))
    yield Stderr(t=0.004, text=CONTROL + SCRIPT)
    yield Frame(t=0.005, sender="server", raw=NOT_TEXT, stream=1)
    yield Frame(t=0.006, sender="server", raw=SCRIPT.encode(), stream=1, sse=Sse(event=SCRIPT))
    yield Frame(t=0.007, sender="server", raw=DUPLICATE)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"text": long}}
    yield Frame(t=0.5, sender="server", raw=said(answer), stream=1)
    yield StreamEnd(t=0.6, stream=1, complete=False)
    yield Frame(t=0.7, sender="server", raw=b"[" * 400 + b"]" * 400)
    rtl = {"jsonrpc": "2.0", "method": "\u05d0\u05d1\u05d2", "params": {"name": "7"}}
    yield Frame(t=0.8, sender="server", raw=said(rtl))
    yield Frame(t=0.85, sender="server", raw=said({"jsonrpc": "2.0", "method": SEPARATORS}))
    yield Frame(t=0.86, sender="server", raw=HALF_SENT)
    yield Trouble(t=0.9, error="bad-http", detail=SCRIPT + CONTROL, excerpt=REVERSED)
    yield Exited(t=1.0, signal=9, after="kill")
    yield Closed(t=1.0, records=17)


LONG_ROW = 8
NOT_TEXT_ROW = 5
HALF_ROW = 13
ROWS = 17


def write_capture(path: Path, long: str = LONG) -> Path:
    path.write_bytes(b"".join(map(encode_record, records(long))))
    return path


RUN = RunReport(
    results=(
        Result(name="a quiet test", status=Status.PASS, duration_ms=3, file="evals/a.yaml"),
        Result(
            name=SCRIPT + REVERSED + CONTROL,
            status=Status.FAIL,
            detail=SCRIPT,
            duration_ms=12,
            file="evals/" + SCRIPT,
            line=3,
            failures=(
                FailedCheck(
                    SCRIPT,
                    SCRIPT + CONTROL,
                    expected='{"a":1,"b":[1,2]}',
                    actual='{"a":1,"b":[1,"</script><script>window.ran=1</script>"]}',
                ),
            ),
            proof=Proof(
                request=SCRIPT,
                response='{"x":"' + REVERSED + '"}',
                stderr=(CONTROL,),
                repeat="mcptest run 'javascript:window.ran=1'",
                capture="javascript:window.ran=1",
            ),
            server=SCRIPT,
        ),
    ),
    tool="mcptest 0",
    started=SCRIPT,
    duration_ms=15,
    notes=(SCRIPT, REVERSED, SEPARATORS, HALF),
)
