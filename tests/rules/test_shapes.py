"""The rules on shapes: what they leave to others, and what they say without a revision."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcptest.model.message import ABSENT
from mcptest.model.verdict import Outcome, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declare import RULES
from mcptest.rules.judge import judge
from mcptest.rules.shape_overlap import TOLD
from mcptest.wire.session_source import SessionSource
from tests.rules.captures import (
    CACHED,
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    A,
    C,
    D,
    E,
    answer,
    ask,
    call,
    complete,
    discover,
    fail,
    full,
    handshake,
    initialize,
    message,
    meta,
    modern,
    modern_call,
    public,
    tell,
)

SHAPE_RULES = [rule for rule in all_rules() if rule.id.startswith("SHAPE-")]
Part = list[Any]


RIGHT_PARAMS: dict[str, Any] = {
    "tools/call": {"name": "t"},
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "a:b"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    },
}


def result_of(method: str, result: Any, version: str = D) -> Part:
    return [handshake(version), call(1, method, RIGHT_PARAMS.get(method, {}), result)]


def newest(method: str, result: Any) -> Part:
    return [discover(), modern_call(1, method, RIGHT_PARAMS.get(method, {}), result)]


def block(content: Any) -> Part:
    return result_of("tools/call", {"content": [content]})


def prompt(message: Any) -> Part:
    return result_of("prompts/get", {"messages": [message]})


def listed(method: str, member: str, item: Any) -> Part:
    return result_of(method, {member: [item]})


def asked(method: str, params: Any = ABSENT, version: str = D) -> Part:
    return [handshake(version), ask(1, method, params)]


def first(params: Any) -> Part:
    return [ask("init", "initialize", params)]


def agreed(result: Any) -> Part:
    return [initialize()[0], answer("init", result)]


def newest_error(code: int, data: Any) -> Part:
    return [discover(), modern(1, "tools/call", {"name": "t"}), fail(1, code, data=data)]


WHOLE = {"protocolVersion": D, "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}}
OFFER = {"protocolVersion": D, "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
ASKS = {"resultType": "input_required"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
FOUND = {"supportedVersions": [E], "capabilities": {}, **CACHED}

# For each row of the table, in its order: a capture for each pattern, that its rule must fail.
PROOFS: list[list[Part]] = [
    [result_of("tools/list", 5)],
    [newest("tools/list", {"tools": [], **CACHED})],
    [
        newest("tools/list", complete(tools=[], cacheScope="public")),
        newest("tools/list", complete(tools=[], ttlMs=0, cacheScope="mine")),
    ],
    [result_of("tools/list", {"tools": [], "nextCursor": None})],
    [
        newest("tools/call", {**ASKS, "inputRequests": 5}),
        newest("tools/call", {**ASKS, "inputRequests": {"q": 5}}),
        newest("tools/call", {**ASKS, "inputRequests": {"q": {"method": "ping"}}}),
    ],
    [
        agreed({**WHOLE, "protocolVersion": 5}),
        agreed({**WHOLE, "capabilities": None}),
        agreed({**WHOLE, "serverInfo": "n"}),
        agreed({**WHOLE, "serverInfo": {"version": "1"}}),
        agreed({**WHOLE, "serverInfo": {"name": "n", "version": 1}}),
    ],
    [
        newest("server/discover", complete(**{**FOUND, "supportedVersions": E})),
        newest("server/discover", complete(**{**FOUND, "supportedVersions": [5]})),
        newest("server/discover", complete(**{**FOUND, "capabilities": []})),
    ],
    [
        result_of("tools/list", {}),
        listed("tools/list", "tools", 5),
        listed("tools/list", "tools", {**TOOL, "name": 5}),
        listed("tools/list", "tools", {"name": "t"}),
        listed("tools/list", "tools", {"name": "t", "inputSchema": {"type": "array"}}),
    ],
    [result_of("tools/call", {})],
    [
        result_of("tools/call", {"content": [], "structuredContent": 5}),
        result_of("tools/call", {"content": [], "isError": "no"}),
    ],
    [block({"type": "image", "data": 5, "mimeType": "image/png"})],
    [result_of("resources/read", {})],
    [result_of("resources/read", {"contents": [{"uri": "a:b"}]})],
    [
        listed("resources/list", "resources", 5),
        listed("resources/list", "resources", {"name": "n"}),
        listed("resources/list", "resources", {"uri": "a:b", "name": None}),
    ],
    [
        listed("resources/templates/list", "resourceTemplates", 5),
        listed("resources/templates/list", "resourceTemplates", {"name": "n"}),
        listed("resources/templates/list", "resourceTemplates", {"uriTemplate": "a:{b}"}),
    ],
    [prompt(5), prompt({"role": "system", "content": {"type": "text", "text": "t"}})],
    [prompt({"role": "user", "content": {"type": "text"}})],
    [
        listed("prompts/list", "prompts", 5),
        listed("prompts/list", "prompts", {}),
        listed("prompts/list", "prompts", {"name": "n", "arguments": None}),
        listed("prompts/list", "prompts", {"name": "n", "arguments": [5]}),
        listed("prompts/list", "prompts", {"name": "n", "arguments": [{}]}),
    ],
    [
        result_of("completion/complete", {}),
        result_of("completion/complete", {"completion": {}}),
        result_of("completion/complete", {"completion": {"values": [5]}}),
        result_of("completion/complete", {"completion": {"values": [], "total": "5"}}),
        result_of("completion/complete", {"completion": {"values": [], "hasMore": 1}}),
    ],
    [
        [*asked("ping"), message("server", {"jsonrpc": "2.0", "id": 1, "error": 5})],
        [*asked("ping"), fail(1, "-32603")],
        [*asked("ping"), fail(1, -32603, None)],
    ],
    [newest_error(-32021, 5), newest_error(-32021, {})],
    [
        newest_error(-32022, 5),
        newest_error(-32022, {"requested": "x"}),
        newest_error(-32022, {"supported": []}),
    ],
    [
        first(ABSENT),
        first({**OFFER, "protocolVersion": 5}),
        first({**OFFER, "capabilities": []}),
        first({**OFFER, "clientInfo": "n"}),
        first({**OFFER, "clientInfo": {"version": "1"}}),
        first({**OFFER, "clientInfo": {"name": "n"}}),
    ],
    [
        [discover(), ask(1, "tools/list")],
        [discover(), ask(1, "tools/list", {"_meta": 5})],
        [discover(), ask(1, "tools/list", {"_meta": {CLIENT_CAPABILITIES: {}}})],
        [discover(), ask(1, "tools/list", {"_meta": {PROTOCOL_VERSION: E}})],
    ],
    [asked("tools/call", 5)],
    [asked("ping", {"_meta": {"progressToken": None}})],
    [asked("tools/list", {"cursor": 5})],
    [[discover(), modern(1, "tools/call", {"name": "t", "inputResponses": 5})]],
    [[handshake(), tell("notifications/tools/list_changed", 5)]],
    [
        [handshake(), tell("notifications/message")],
        [handshake(), tell("notifications/message", {"level": "loud", "data": 1})],
    ],
    [[handshake(), tell("notifications/message", {"level": "info"})]],
    [
        [handshake(), tell("notifications/progress")],
        [handshake(), tell("notifications/progress", {"progressToken": 1, "progress": "1"})],
    ],
    [[handshake(), tell("notifications/progress", {"progress": 1})]],
    [[handshake(C), tell("notifications/cancelled", {}, by="client")]],
    [
        [discover(), tell("notifications/subscriptions/acknowledged", params)]
        for params in (ABSENT, {"notifications": {}, "_meta": 5})
    ]
    + [
        [
            discover(),
            tell(
                "notifications/subscriptions/acknowledged",
                {"notifications": {}, "_meta": {"io.modelcontextprotocol/subscriptionId": None}},
            ),
        ]
    ],
    [
        [discover(), tell("notifications/tools/list_changed", params)]
        for params in ([], {"_meta": 5}, {"_meta": {"io.modelcontextprotocol/subscriptionId": []}})
    ],
]


def verdicts(source: SessionSource, *names: str) -> dict[str, Verdict]:
    wanted = [RULES[name] for name in names] if names else SHAPE_RULES
    return {each.rule: each for each in judge(source, wanted).verdicts}


def failing(source: SessionSource) -> list[str]:
    return [name for name, each in verdicts(source).items() if each.outcome is Outcome.FAIL]


ROWS = [
    pytest.param(place, number, id=f"{row.rule}-{pattern}")
    for place, row in enumerate(TOLD)
    for number, pattern in enumerate(row.patterns)
]


def test_every_row_of_the_table_is_proved() -> None:
    assert [len(row.patterns) for row in TOLD] == [len(proofs) for proofs in PROOFS]


@pytest.mark.parametrize(("place", "number"), ROWS)
def test_what_is_left_to_a_rule_is_reported_by_it(place: int, number: int) -> None:
    capture = PROOFS[place][number]
    named = TOLD[place].rule
    assert verdicts(full(capture), named)[named].outcome is Outcome.FAIL
    assert failing(full(capture)) == []


@pytest.mark.parametrize(("place", "number"), ROWS)
def test_what_is_left_to_a_rule_would_be_a_finding_without_it(
    place: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for at, row in enumerate(TOLD) if at != place]
    monkeypatch.setattr("mcptest.rules.shape_overlap.TOLD", rows)
    assert failing(full(PROOFS[place][number]))


def test_the_documentation_names_every_rule_that_something_is_left_to() -> None:
    page = Path(__file__).parents[2] / "docs" / "compliance" / "message-shapes.md"
    named = set(re.findall(r"[A-Z]{3,8}-\d{3}", page.read_text().partition("One fault")[2]))
    assert named - {"SHAPE-001"} == {row.rule for row in TOLD}


# -- what is reported ----------------------------------------------------------------------


def test_a_finding_has_the_pointer_and_both_sides_of_the_matter() -> None:
    tool = {**TOOL, "annotations": {"readOnlyHint": "yes"}}
    verdict = verdicts(full(listed("tools/list", "tools", tool)))["SHAPE-001"]
    [finding] = verdict.findings
    assert finding.pointer == "/result/tools/0/annotations/readOnlyHint"
    assert finding.expected == "a boolean"
    assert finding.actual == "string 'yes'"
    assert finding.record == 5


def test_structured_content_alone_is_not_enough() -> None:
    assert failing(full(result_of("tools/call", {"structuredContent": {}}))) == ["SHAPE-001"]


def test_a_fault_of_a_block_that_its_rule_does_not_see_is_reported() -> None:
    text = {"type": "text", "text": "t"}
    assert failing(full(block({**text, "annotations": {"priority": 2}}))) == ["SHAPE-001"]
    assert failing(full(prompt({"role": "user", "content": {**text, "_meta": 5}}))) == ["SHAPE-001"]


def test_a_member_of_a_later_revision_is_no_fault() -> None:
    result = {"content": [], "structuredContent": [5]}
    assert failing(full(result_of("tools/call", result, A))) == []


def test_methods_without_a_shape_are_not_observed() -> None:
    records = [ask(1, "vendor/thing", {}), answer(1, {"a": 5})]
    for name, verdict in verdicts(full(records)).items():
        assert verdict.outcome is Outcome.NOT_OBSERVED, name


def test_members_of_a_batch_are_judged_too() -> None:
    call_it = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
    capture = full(handshake("2025-03-26"), message("client", [call_it]))
    assert failing(capture) == ["SHAPE-005"]


# -- captures that do not say everything ---------------------------------------------------


def exchange(method: str, params: Any, result: Any) -> tuple[Any, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not ABSENT:
        request["params"] = params
    return request, {"jsonrpc": "2.0", "id": 1, "result": result}


def test_without_a_revision_only_what_is_wrong_in_all_of_them_counts() -> None:
    audio = {"content": [{"type": "audio", "data": "QQ==", "mimeType": "a/b", "annotations": 5}]}
    assert failing(public(exchange("tools/call", {"name": "t"}, audio))) == []
    image = {"content": [{"type": "image", "data": "QQ==", "mimeType": "a/b", "annotations": 5}]}
    assert failing(public(exchange("tools/call", {"name": "t"}, image))) == ["SHAPE-001"]


def test_an_abridged_exchange_is_not_held_against_anyone() -> None:
    assert failing(public(exchange("tools/call", ABSENT, {}))) == []
    assert failing(public(exchange("prompts/get", {"name": 5}, {"messages": []}))) == ["SHAPE-005"]


@pytest.mark.parametrize(("version", "faults"), [(A, []), (C, ["SHAPE-005"])])
def test_initialize_is_judged_by_the_version_it_offers(version: str, faults: list[str]) -> None:
    offer = {**OFFER, "protocolVersion": version, "capabilities": {"elicitation": 5}}
    assert failing(full(first(offer))) == faults


def test_the_stateless_era_has_its_questions_in_results() -> None:
    question = {"method": "elicitation/create", "params": {"message": "m"}}
    records = newest("tools/call", {**ASKS, "inputRequests": {"q": question}})
    assert failing(full(records)) == ["SHAPE-001"]
    [finding] = verdicts(full(records))["SHAPE-001"].findings
    assert finding.pointer == "/result/inputRequests/q/params/requestedSchema"


def test_the_newest_requests_are_judged_below_their_meta() -> None:
    named = meta({"roots": 5})
    capture = full(discover(), ask(1, "tools/list", {"_meta": named}))
    assert failing(capture) == ["SHAPE-005"]
