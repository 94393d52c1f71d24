"""A server need not offer a stream to listen on, and may say so in words of its own."""

from __future__ import annotations

import json

import pytest

from mcptest.core.capture import Frame
from mcptest.core.verdict import Outcome, Severity
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


ABOUT_HEADERS = ("HTTP-005", "HTTP-006", "HTTP-007")


def outcomes(*parts: object) -> dict[str, Outcome]:
    source = full(*parts, transport="http")
    rules = [find_rule(name) for name in ABOUT_HEADERS]
    return {verdict.rule: verdict.outcome for verdict in judge(source, rules).verdicts}


@pytest.mark.parametrize("headers", [{}, {"mcp-protocol-version": "2026-07-28"}], ids=["none", "E"])
def test_a_get_that_may_have_crossed_the_answer_to_initialize_is_left_alone(
    headers: dict[str, str],
) -> None:
    shaken = http_handshake()
    after_answer = next(at for at, one in enumerate(shaken) if getattr(one, "stream", 0) == 2)
    crossing = [*shaken[:after_answer], got(3, headers), *shaken[after_answer:]]
    found = outcomes(crossing, got(4, SESSION))
    assert set(found.values()) == {Outcome.PASS}


@pytest.mark.parametrize(
    ("headers", "broken"),
    [
        ({"mcp-protocol-version": "2025-11-25"}, "HTTP-005"),
        ({"mcp-session-id": "s1"}, "HTTP-006"),
        ({**SESSION, "mcp-protocol-version": "2025-06-18"}, "HTTP-007"),
    ],
)
def test_a_get_after_the_client_has_read_the_answer_is_held_to_it(
    headers: dict[str, str], broken: str
) -> None:
    found = outcomes(http_handshake(), got(3, headers))
    assert [name for name, outcome in found.items() if outcome is Outcome.FAIL] == [broken]
