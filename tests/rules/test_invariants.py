"""INV-001 to INV-007 in the cases that are easy to get wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcptest.core.revision import Era, Revision
from mcptest.core.verdict import Outcome, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declaration import RULES
from mcptest.rules.judge import judge
from mcptest.wire.capture_forms import SessionSource
from tests.rules.captures import (
    A,
    B,
    D,
    answer,
    ask,
    call,
    complete,
    discover,
    fail,
    full,
    handshake,
    initialize,
    initialized,
    message,
    modern,
    modern_call,
    posted,
    public,
    raw,
    replied,
)

PASS, FAIL = Outcome.PASS, Outcome.FAIL
UNSEEN, UNSURE = Outcome.NOT_OBSERVED, Outcome.INCONCLUSIVE
ELSEWHERE = Outcome.NOT_APPLICABLE


def verdict(rule: str, source: SessionSource, revision: Revision | None = None) -> Verdict:
    all_rules()
    return judge(source, [RULES[rule]], revision).verdicts[0]


def outcome(rule: str, *parts: Any, **facts: Any) -> Outcome:
    return verdict(rule, full(*parts, **facts)).outcome


SEED_SAMPLE = (
    (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ),
    (
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}},
    ),
)


def test_the_sample_capture_fails_inv_002_and_nothing_else() -> None:
    judged = judge(public(*SEED_SAMPLE, capabilities={"tools": {}}), all_rules())
    found = {one.rule: one.outcome for one in judged.verdicts}
    assert [rule for rule, result in found.items() if result is FAIL] == ["INV-002"]
    assert [rule for rule, result in found.items() if result is UNSURE] == []
    assert all(found[rule] is PASS for rule in ("INV-001", "INV-003", "INV-004"))
    assert all(found[rule] is UNSEEN for rule in ("INV-005", "INV-006", "INV-007"))


@pytest.mark.parametrize("rule", ["INV-001", "INV-002"])
def test_the_handshake_rules_do_not_apply_to_a_stateless_session(rule: str) -> None:
    assert outcome(rule, discover(), modern_call(1, "tools/list", {}, complete())) is ELSEWHERE


def test_a_refused_probe_of_the_other_era_may_come_before_initialize() -> None:
    probe = [modern("p", "server/discover"), fail("p", -32601)]
    session = full(probe, handshake())
    assert verdict("INV-001", session).outcome is PASS
    assert outcome("META-001", probe, handshake(), ask(1, "tools/list")) is ELSEWHERE


PROBES = {
    "refused": [modern("p", "server/discover"), fail("p", -32601)],
    "refused twice": [
        *[modern("p", "server/discover"), fail("p", -32022)],
        *[modern("q", "server/discover"), fail("q", -32601)],
    ],
    "bare": [ask("p", "server/discover"), fail("p", -32600)],
    "another request": [modern("p", "tools/list"), fail("p", -32600)],
    "unanswered": [modern("p", "server/discover")],
    "refused by HTTP": [
        *posted(9, modern("p", "server/discover")),
        *replied(9, raw("server", "no"), 400),
    ],
    "older revisions only": modern_call(
        "p", "server/discover", {}, complete(supportedVersions=[D], capabilities={})
    ),
}


@pytest.mark.parametrize("forced", [None, Revision.V2025_11_25], ids=str)
@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_a_probe_of_the_stateless_era_comes_before_initialize_and_nothing_else_does(
    probe: list[Any], forced: Revision | None
) -> None:
    assert verdict("INV-001", full(probe, handshake()), forced).outcome is PASS
    judged = judge(full(probe, handshake(), ask(1, "tools/list")), all_rules(), forced)
    assert [
        one.rule for one in judged.verdicts if one.outcome is FAIL and one.rule[:3] == "INV"
    ] == []
    assert judged.era is Era.HANDSHAKE
    if probe is not PROBES["unanswered"]:
        between = [probe, ask(1, "tools/list"), fail(1, -32600), handshake()]
        assert verdict("INV-001", full(between), forced).outcome is FAIL


def test_a_session_whose_discovery_was_answered_first_is_no_handshake() -> None:
    judged = judge(full(discover(), handshake(), ask(1, "tools/list")), all_rules())
    assert (judged.era, judged.revision) == (Era.STATELESS, Revision.V2026_07_28)


def test_a_session_that_speaks_both_eras_is_judged_by_both() -> None:
    parts = [discover(), handshake(server={"tools": {}}), ask(1, "tools/list")]
    assert outcome("INV-001", parts) is PASS
    assert outcome("META-007", parts) is PASS


def test_initialized_before_the_response_is_a_violation() -> None:
    first, agreed = initialize()
    assert outcome("INV-002", first, initialized(), agreed) is FAIL


def test_a_capture_that_ends_after_initialize_has_not_shown_inv_002() -> None:
    assert outcome("INV-002", initialize()) is UNSEEN
    assert outcome("INV-002", initialize(), ask(1, "ping")) is UNSEEN


def test_a_failed_initialize_asks_for_no_notification() -> None:
    assert outcome("INV-002", initialize()[0], fail("init", -32602), ask(1, "x")) is UNSEEN


def test_each_lack_of_initialized_is_reported_once() -> None:
    asks = [ask(number, "tools/list") for number in range(5)]
    assert verdict("INV-002", full(initialize(), asks)).findings_total == 1


@pytest.mark.parametrize("capabilities", [None, {}, {"tools": None}])
def test_a_list_without_its_capability_is_a_violation(capabilities: Any) -> None:
    source = public(*SEED_SAMPLE, capabilities=capabilities)
    assert verdict("INV-003", source).outcome is FAIL


def test_an_error_answer_to_a_list_is_not_answering_it() -> None:
    assert outcome("INV-003", handshake(), ask(1, "tools/list"), fail(1, -32601)) is UNSEEN


def test_without_discover_a_stateless_server_can_not_be_blamed() -> None:
    assert outcome("INV-003", modern_call(1, "tools/list", {}, complete(tools=[]))) is UNSURE


def test_calls_that_fail_by_the_callers_fault_decide_nothing() -> None:
    server = handshake(server={"prompts": {}})
    assert outcome("INV-004", server, ask(1, "prompts/get"), fail(1, -32602)) is UNSURE


def test_a_capability_that_was_not_advertised_is_not_inv_004s_business() -> None:
    assert outcome("INV-004", handshake(), ask(1, "tools/list"), fail(1, -32603)) is UNSEEN


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": []}, PASS),
        ({"content": [], "isError": True}, PASS),
        ({"structuredContent": {}}, PASS),
        ({"structuredContent": [1]}, FAIL),
        ({"content": {}}, FAIL),
        ({}, FAIL),
        ([], FAIL),
        ({"content": [], "isError": "false"}, FAIL),
        ({"content": [], "isError": None}, FAIL),
        ({"resultType": "input_required"}, UNSEEN),
    ],
)
def test_tool_results(result: Any, expected: Outcome) -> None:
    assert outcome("INV-005", handshake(), call(1, "tools/call", {}, result)) is expected


def test_structured_content_may_be_anything_in_the_stateless_era() -> None:
    result = complete(structuredContent=[1])
    assert outcome("INV-005", modern_call(1, "tools/call", {}, result)) is PASS


def test_the_result_of_a_call_that_became_a_task_is_not_final() -> None:
    parts = [ask(1, "tools/call", {"task": {}}), answer(1, {"task": {"taskId": "t"}})]
    assert outcome("INV-005", handshake(), parts) is UNSEEN


@pytest.mark.parametrize("code", ["-32601", True, 1.0, None])
def test_a_code_that_is_no_integer(code: Any) -> None:
    assert outcome("INV-006", handshake(), ask(1, "x"), fail(1, code)) is FAIL


def test_errors_of_the_client_and_broken_envelopes_are_judged_too() -> None:
    bad = {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1}}
    assert outcome("INV-006", handshake(), fail(1, -1, None, by="client")) is FAIL
    assert outcome("INV-006", handshake(), message("server", bad)) is FAIL
    assert outcome("INV-006", handshake(), message("server", {**bad, "error": 3})) is FAIL


@pytest.mark.parametrize(
    ("method", "code", "text", "expected"),
    [
        ("tools/list", -32603, "Method not found", FAIL),
        ("tools/list", -32000, "unknown METHOD 'tools/list'", FAIL),
        ("tools/list", -32603, "tools/list is not implemented", FAIL),
        ("tools/list", -32603, "No such method", FAIL),
        ("tools/list", -32601, "whatever", PASS),
        ("nope/nope", -32601, "Method not found", PASS),
        ("nope/nope", -32602, "Invalid request parameters", FAIL),
        ("nope/nope", -32600, "not initialized", UNSEEN),
        ("tools/call", -32602, "Unknown tool: method", UNSEEN),
        ("tools/call", -32602, "Tool add not found", UNSEEN),
        ("tools/call", -32602, "tools/call: tool not found", UNSEEN),
        ("resources/read", -32002, "Resource not found", UNSEEN),
        ("prompts/get", -32602, "Prompt method not found", UNSEEN),
        ("tools/call", -32603, "boom", UNSEEN),
    ],
)
def test_method_not_found_is_told_by_its_meaning(
    method: str, code: int, text: str, expected: Outcome
) -> None:
    assert outcome("INV-007", handshake(), ask(1, method), fail(1, code, text)) is expected


def test_a_method_of_another_revision_does_not_exist() -> None:
    parts = [ask(1, "elicitation/create", by="server"), fail(1, -32603, "x", by="client")]
    assert outcome("INV-007", handshake(B), parts) is FAIL
    assert outcome("INV-007", handshake(), parts) is UNSEEN


def test_a_stateless_revision_that_was_asked_for_decides_the_era() -> None:
    source = replace(full(ask(1, "tools/list")), spec_version="2026-07-28")
    assert verdict("INV-001", source).outcome is ELSEWHERE
    source = replace(full(ask(1, "tools/list")), spec_version="2026-07-28")
    assert verdict("META-001", source).outcome is FAIL


def test_a_revision_can_be_forced() -> None:
    source = full(handshake(A), ask(1, "ping"))
    assert judge(source, [], Revision.V2026_07_28).revision is Revision.V2026_07_28
    forced = verdict("INV-001", full(handshake(A)), Revision.V2026_07_28)
    assert forced.outcome is ELSEWHERE


@pytest.mark.parametrize(
    ("method", "params", "text", "expected"),
    [
        ("tools/call", {"name": "add"}, "Method add not found", UNSEEN),
        ("tools/call", {"name": "add"}, "Unknown method: 'add'", UNSEEN),
        ("tools/call", {"name": "no.such"}, "no such method no.such", UNSEEN),
        ("prompts/get", {"name": "greet"}, "method greet is not implemented", UNSEEN),
        ("resources/read", {"uri": "demo://x"}, "unsupported method for demo://x", UNSEEN),
        ("tools/call", {"name": "add"}, "Method not found", FAIL),
        ("tools/call", {"name": "add"}, "Method tools/call not found (add)", FAIL),
        ("tools/call", {"name": "add"}, "Unknown method: address", FAIL),
        ("tools/call", {"name": "method"}, "Unknown method", FAIL),
        ("tools/call", {"name": ""}, "Unknown method", FAIL),
        ("no/such", {"name": "add"}, "Method add not found", FAIL),
    ],
)
def test_a_tool_that_is_called_a_method_is_no_method(
    method: str, params: Any, text: str, expected: Outcome
) -> None:
    for begin, asked in (
        (handshake(server={"tools": {}}), ask(1, method, params)),
        (discover({"tools": {}}), modern(1, method, params)),
    ):
        assert outcome("INV-007", begin, asked, fail(1, -32602, text)) is expected
