"""A server need not offer a stream to listen on, and may say so in words of its own."""

from __future__ import annotations

import json

import pytest

from mcptest.model.capture import Frame
from mcptest.model.verdict import Outcome, Severity
from mcptest.rules.catalogue import all_rules, find_rule
from mcptest.rules.judge import judge
from tests.rules.captures import answer, ask, event, full, got, http_handshake, posted, replied

SESSION = {"mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25"}
REFUSED = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Method not allowed."}}


def words(**members: object) -> Frame:
    return Frame(sender="server", raw=json.dumps(REFUSED | members).encode())


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("body", [words(), words(id=None)], ids=["no id", "null"])
def test_the_body_of_a_refused_get_is_no_response_on_a_stream(status: int, body: Frame) -> None:
    refused = replied(3, body, status=status)
    source = full(http_handshake(), got(3, SESSION), refused, transport="http")
    found = {verdict.rule: verdict.outcome for verdict in judge(source, all_rules()).verdicts}
    assert found["HTTP-009"] is Outcome.NOT_OBSERVED
    failed = [name for name, outcome in found.items() if outcome is Outcome.FAIL]
    assert [name for name in failed if find_rule(name).severity is Severity.MUST] == []


def test_a_response_on_a_stream_that_was_granted_is_held_against_the_server() -> None:
    granted = replied(3, headers={"content-type": "text/event-stream"})[:1]
    asked = [*posted(4, ask(1, "ping"), SESSION), event(3, answer(1, {}), "e")]
    source = full(http_handshake(), got(3, SESSION), granted, asked, transport="http")
    (verdict,) = judge(source, [find_rule("HTTP-009")]).verdicts
    assert verdict.outcome is Outcome.FAIL
