"""Not all JSON is a message: log lines on stdout and bodies of HTTP are judged as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcptest.core.capture import Frame, HttpRequest, StreamEnd, Trouble
from mcptest.core.revision import Revision
from mcptest.core.verdict import Finding, Outcome, Severity
from mcptest.probe.conformance.client.seen import SeenSession
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import judge
from tests.rules.captures import (
    D,
    answer,
    ask,
    discover,
    fail,
    full,
    got,
    handshake,
    http_handshake,
    initialized,
    message,
    meta,
    posted,
    public,
    raw,
    replied,
    tell,
)

SESSION = {"mcp-session-id": "s1", "mcp-protocol-version": D}
LOG_LINES = [
    '{"level":30,"time":1531171074631,"pid":657,"hostname":"h","msg":"listening"}',
    '{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"request","method":"tools/list","id":3}',
    '{"level":"error","message":"failed","error":"no backend"}',
    '{"error":"no backend"}',
    '{"id":7,"message":"accepted"}',
    "null",
    "42",
    '"ready"',
    "[1,2]",
    '[{"level":"info"}]',
    "[INFO] ready",
    "{",
]
ATTEMPTS = {
    '{"jsonrpc":"2.0","id":99}': "MSG-001",
    '{"jsonrpc":"1.0","method":"notifications/message","params":{"level":"info","data":1}}': (
        "MSG-001"
    ),
    '{"id":99,"result":{}}': "MSG-001",
    '{"method":"notifications/message","params":{"level":"info","data":1}}': "MSG-001",
    "[]": "MSG-001",
    '{"jsonrpc":"2.0","id":99,"result":{': "MSG-002",
}


def failing(
    source: Any, only: Severity | None = Severity.MUST
) -> Mapping[str, tuple[Finding, ...]]:
    """The rules that fail, with their findings."""
    rules = all_rules()
    judged = judge(source, rules)
    return {
        rule.id: verdict.findings
        for rule, verdict in zip(rules, judged.verdicts, strict=True)
        if verdict.outcome is Outcome.FAIL
        and (only is None or rule.severity_in(judged.revision) is only)
        and (only is None or rule.severity_in(judged.revision) is only)
    }


@pytest.mark.parametrize("begin", [handshake, discover], ids=["handshake", "stateless"])
@pytest.mark.parametrize("line", LOG_LINES)
def test_a_line_on_stdout_that_is_no_message_is_noise_and_nothing_else(
    line: str, begin: Any
) -> None:
    found = failing(full(begin(), raw("server", line)), only=None)
    assert list(found) == ["STDIO-001"]
    assert found["STDIO-001"][0].excerpt == line


@pytest.mark.parametrize("line", LOG_LINES)
def test_the_same_holds_for_what_a_client_writes(line: str) -> None:
    found = failing(full(handshake(), raw("client", line)), only=None)
    assert list(found) == ["STDIO-002"]


@pytest.mark.parametrize(("line", "rule"), ATTEMPTS.items())
def test_a_malformed_message_on_stdout_is_judged_as_a_message(line: str, rule: str) -> None:
    found = failing(full(handshake(), raw("server", line)))
    assert rule in found
    assert "STDIO-001" not in found


def test_a_message_in_utf_16_is_judged_as_a_message() -> None:
    line = '{"jsonrpc":"2.0","method":"notifications/message"}'.encode("utf-16-le")
    assert list(failing(full(handshake(), raw("server", line)))) == ["MSG-002"]


REFUSALS = ['{"detail":"Not Found"}', '{"error":"Method Not Allowed"}', "null", '"no"']
REFUSED_AS_JSONRPC = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}'


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("body", [*REFUSALS, REFUSED_AS_JSONRPC])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_body_of_a_refused_get_or_delete_is_no_message(
    method: str, body: str, status: int
) -> None:
    asked = got(3, SESSION)
    asked = HttpRequest(stream=3, method=method, url=asked.url, headers=asked.headers)
    source = full(
        http_handshake(), asked, replied(3, raw("server", body), status=status), transport="http"
    )
    assert not failing(source, only=None)


@pytest.mark.parametrize("body", REFUSALS)
def test_a_request_may_be_refused_in_words_of_http_alone(body: str) -> None:
    refused = replied(3, raw("server", body), status=400)
    asked = posted(3, ask(1, "tools/list"), SESSION)
    assert not failing(full(http_handshake(), asked, refused, transport="http"))


def test_a_refusal_that_is_a_message_is_judged_as_one() -> None:
    refused = replied(3, fail(1, "bad"), status=400)
    asked = posted(3, ask(1, "tools/list"), SESSION)
    assert "INV-006" in failing(full(http_handshake(), asked, refused, transport="http"))


@pytest.mark.parametrize("body", ["null", '{"level":"info"}', "{"])
def test_a_body_that_answers_a_request_has_to_be_a_message(body: str) -> None:
    answered = replied(3, raw("server", body))
    asked = posted(3, ask(1, "tools/list"), SESSION)
    found = failing(full(http_handshake(), asked, answered, transport="http"))
    assert found.keys() & {"MSG-001", "MSG-002"}


def test_an_event_has_to_be_a_message() -> None:
    events = replied(3, raw("server", "null"), headers={"content-type": "text/event-stream"})
    assert "MSG-001" in failing(full(http_handshake(), got(3, SESSION), events, transport="http"))


STATELESS_TELL = tell("notifications/vendor", {"_meta": meta()}, by="client")


@pytest.mark.parametrize("body", ["null", '{"status":"accepted"}', '"ok"', "{}"])
@pytest.mark.parametrize(
    "sent",
    [initialized(), answer(5, {}, by="client"), STATELESS_TELL],
    ids=["old", "answer", "new"],
)
def test_a_body_below_a_202_breaks_the_rule_about_the_202_alone(sent: Frame, body: str) -> None:
    asked = [ask(5, "ping", by="server", stream=8), *posted(3, sent, SESSION)]
    accepted = replied(3, raw("server", body), status=202)
    found = failing(full(http_handshake(), asked, accepted, transport="http"))
    assert list(found) == ["HTTP-001"]
    assert found["HTTP-001"][0].actual == body


def test_a_body_of_plain_text_below_a_202_breaks_it_too() -> None:
    said = Trouble(
        error="bad-content-type",
        detail="a 202 that should be empty has a body",
        stream=3,
        excerpt="Accepted",
    )
    accepted = [*replied(3, status=202)[:1], said, StreamEnd(stream=3)]
    source = full(http_handshake(), posted(3, initialized(), SESSION), accepted, transport="http")
    found = failing(source)
    assert list(found) == ["HTTP-001"]
    assert found["HTTP-001"][0].actual == "Accepted"


def test_an_answer_below_a_202_is_an_answer_to_a_notification() -> None:
    accepted = replied(3, message("server", {"jsonrpc": "2.0", "result": {}}), status=202)
    asked = posted(3, initialized(), SESSION)
    found = failing(full(http_handshake(), asked, accepted, transport="http"))
    assert "MSG-008" in found
    assert "HTTP-001" not in found


def test_an_entry_of_a_public_capture_is_always_a_message() -> None:
    entry = ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"level": "info"})
    assert "MSG-001" in failing(public(entry))


# -- whose answer is it? -------------------------------------------------------------------------

MADE_UP = fail("server-error", -32600, "Bad Request")


def test_an_id_that_was_made_up_answers_nothing_also_below_an_error_status() -> None:
    refused = [*posted(3, ask(1, "tools/list"), {}), *replied(3, MADE_UP, status=400)]
    assert "MSG-006" in failing(full(http_handshake(), refused, transport="http"))
    assert "MSG-006" in failing(full(handshake(), ask(1, "tools/list"), MADE_UP))


@pytest.mark.parametrize(
    "sent",
    [
        '{"jsonrpc":"2.0","id":7}',
        '{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}',
        '{"jsonrpc":"2.0","id":7,"method":"ping"',
        '{"jsonrpc":"2.0","id":7,"method":"ping","params":' + "[" * 600 + "]" * 600 + "}",
        '{"jsonrpc":"2.0","id":7,"result":{}}',
    ],
    ids=["neither", "both", "cut off", "deep", "unasked"],
)
def test_an_error_with_the_id_of_what_is_no_request_answers_that(sent: str) -> None:
    rude = [handshake(), raw("client", sent), fail(7, -32600)]
    found = failing(full(rude))
    assert not any(one.sender == "server" for one in found.get("MSG-006", ()))
    found = failing(full([handshake(), raw("client", sent), fail(8, -32600)]))
    assert any(one.sender == "server" for one in found["MSG-006"])


def test_a_log_line_of_a_client_does_not_count_as_its_request() -> None:
    log = raw("client", '{"level":"info","id":3,"method":"tools/call","msg":"sent"}')
    asked = ask(4, "tools/call", {"name": "add"})
    seen = SeenSession([log, asked], revision=Revision.V2025_11_25, transport="stdio")
    assert [one.message.id for one in seen.requests("tools/call")] == [4]
    assert len(seen.said) == 2


def test_a_message_of_more_values_than_we_read_is_not_said_to_be_no_json() -> None:
    """It may be as good as any: that we don't read it is no fault of its sender."""
    line = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":[' + "{}," * 200_000
    assert "MSG-002" not in failing(full(handshake(), raw("server", line + "{}]}}")))
