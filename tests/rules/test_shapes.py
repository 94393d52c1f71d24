"""The rules on shapes: what they leave to others, and what they say without a revision."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.message import ABSENT
from mcptest.core.verdict import Outcome, Verdict
from mcptest.rules.catalogue import all_rules
from mcptest.rules.declaration import RULES, WrongShape
from mcptest.rules.judge import judge
from mcptest.rules.shapes import left_to_others
from mcptest.wire.capture_forms import SessionSource
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

# For each wrong shape that a rule reports: a capture for each pattern, that the rule must fail.
PROOFS: dict[str, list[list[Part]]] = {
    "MSG-012": [[result_of("tools/list", 5)]],
    "META-003": [[newest("tools/list", {"tools": [], **CACHED})]],
    "META-004": [
        [
            newest("tools/list", complete(tools=[], cacheScope="public")),
            newest("tools/list", complete(tools=[], ttlMs=0, cacheScope="mine")),
        ]
    ],
    "PAGE-002": [[result_of("tools/list", {"tools": [], "nextCursor": None})]],
    "MRTR-002": [
        [
            newest("tools/call", {**ASKS, "inputRequests": 5}),
            newest("tools/call", {**ASKS, "inputRequests": {"q": 5}}),
            newest("tools/call", {**ASKS, "inputRequests": {"q": {"method": "ping"}}}),
        ]
    ],
    "LIFE-004": [
        [
            agreed({**WHOLE, "protocolVersion": 5}),
            agreed({**WHOLE, "capabilities": None}),
            agreed({**WHOLE, "serverInfo": "n"}),
            agreed({**WHOLE, "serverInfo": {"version": "1"}}),
            agreed({**WHOLE, "serverInfo": {"name": "n", "version": 1}}),
        ]
    ],
    "META-007": [
        [
            newest("server/discover", complete(**{**FOUND, "supportedVersions": E})),
            newest("server/discover", complete(**{**FOUND, "supportedVersions": [5]})),
            newest("server/discover", complete(**{**FOUND, "capabilities": []})),
        ]
    ],
    "TOOL-003": [
        [
            result_of("tools/list", {}),
            listed("tools/list", "tools", 5),
            listed("tools/list", "tools", {**TOOL, "name": 5}),
            listed("tools/list", "tools", {"name": "t"}),
            listed("tools/list", "tools", {"name": "t", "inputSchema": {"type": "array"}}),
        ]
    ],
    "INV-005": [
        [
            result_of("tools/call", {"content": [], "structuredContent": 5}),
            result_of("tools/call", {"content": [], "isError": "no"}),
        ],
        [result_of("tools/call", {})],
    ],
    "CONTENT-001": [[block({"type": "image", "data": 5, "mimeType": "image/png"})]],
    "RES-001": [
        [result_of("resources/read", {})],
        [result_of("resources/read", {"contents": [{"uri": "a:b"}]})],
    ],
    "RES-002": [
        [
            listed("resources/list", "resources", 5),
            listed("resources/list", "resources", {"name": "n"}),
            listed("resources/list", "resources", {"uri": "a:b", "name": None}),
            listed("resources/templates/list", "resourceTemplates", 5),
            listed("resources/templates/list", "resourceTemplates", {"name": "n"}),
            listed("resources/templates/list", "resourceTemplates", {"uriTemplate": "a:{b}"}),
        ]
    ],
    "PROMPT-001": [
        [prompt(5), prompt({"role": "system", "content": {"type": "text", "text": "t"}})],
        [prompt({"role": "user", "content": {"type": "text"}})],
    ],
    "PROMPT-002": [
        [
            listed("prompts/list", "prompts", 5),
            listed("prompts/list", "prompts", {}),
            listed("prompts/list", "prompts", {"name": "n", "arguments": None}),
            listed("prompts/list", "prompts", {"name": "n", "arguments": [5]}),
            listed("prompts/list", "prompts", {"name": "n", "arguments": [{}]}),
        ]
    ],
    "COMPLETE-001": [
        [
            result_of("completion/complete", {}),
            result_of("completion/complete", {"completion": {}}),
            result_of("completion/complete", {"completion": {"values": [5]}}),
            result_of("completion/complete", {"completion": {"values": [], "total": "5"}}),
            result_of("completion/complete", {"completion": {"values": [], "hasMore": 1}}),
        ]
    ],
    "INV-006": [
        [
            [*asked("ping"), message("server", {"jsonrpc": "2.0", "id": 1, "error": 5})],
            [*asked("ping"), fail(1, "-32603")],
            [*asked("ping"), fail(1, -32603, None)],
        ]
    ],
    "MSG-015": [
        [newest_error(-32021, 5), newest_error(-32021, {})],
        [
            newest_error(-32022, 5),
            newest_error(-32022, {"requested": "x"}),
            newest_error(-32022, {"supported": []}),
        ],
    ],
    "LIFE-003": [
        [
            first(ABSENT),
            first({**OFFER, "protocolVersion": 5}),
            first({**OFFER, "capabilities": []}),
            first({**OFFER, "clientInfo": "n"}),
            first({**OFFER, "clientInfo": {"version": "1"}}),
            first({**OFFER, "clientInfo": {"name": "n"}}),
        ]
    ],
    "META-001": [
        [
            [discover(), ask(1, "tools/list")],
            [discover(), ask(1, "tools/list", {"_meta": 5})],
            [discover(), ask(1, "tools/list", {"_meta": {CLIENT_CAPABILITIES: {}}})],
            [discover(), ask(1, "tools/list", {"_meta": {PROTOCOL_VERSION: E}})],
        ]
    ],
    "MSG-001": [
        [asked("tools/call", 5)],
        [[handshake(), tell("notifications/tools/list_changed", 5)]],
    ],
    "PROG-004": [[asked("ping", {"_meta": {"progressToken": None}})]],
    "PAGE-001": [[asked("tools/list", {"cursor": 5})]],
    "MRTR-004": [[[discover(), modern(1, "tools/call", {"name": "t", "inputResponses": 5})]]],
    "LOG-002": [
        [
            [handshake(), tell("notifications/message")],
            [handshake(), tell("notifications/message", {"level": "loud", "data": 1})],
        ],
        [[handshake(), tell("notifications/message", {"level": "info"})]],
    ],
    "PROG-001": [
        [
            [handshake(), tell("notifications/progress")],
            [handshake(), tell("notifications/progress", {"progressToken": 1, "progress": "1"})],
        ]
    ],
    "PROG-002": [[[handshake(), tell("notifications/progress", {"progress": 1})]]],
    "CANCEL-001": [[[handshake(C), tell("notifications/cancelled", {}, by="client")]]],
    "SUBS-001": [
        [
            [discover(), tell("notifications/subscriptions/acknowledged", params)]
            for params in (ABSENT, {"notifications": {}, "_meta": 5})
        ]
        + [
            [
                discover(),
                tell(
                    "notifications/subscriptions/acknowledged",
                    {
                        "notifications": {},
                        "_meta": {"io.modelcontextprotocol/subscriptionId": None},
                    },
                ),
            ]
        ]
    ],
    "SUBS-002": [
        [
            [discover(), tell("notifications/tools/list_changed", params)]
            for params in (
                [],
                {"_meta": 5},
                {"_meta": {"io.modelcontextprotocol/subscriptionId": []}},
            )
        ]
    ],
}


def verdicts(source: SessionSource, *names: str) -> dict[str, Verdict]:
    wanted = [RULES[name] for name in names] if names else SHAPE_RULES
    return {each.rule: each for each in judge(source, wanted).verdicts}


def failing(source: SessionSource) -> list[str]:
    return [name for name, each in verdicts(source).items() if each.outcome is Outcome.FAIL]


REPORTED = {rule.id: rule.reports_shapes for rule in all_rules() if rule.reports_shapes}
ROWS = [
    pytest.param(named, shape, capture, id=f"{named}-{pattern}")
    for named, shapes in REPORTED.items()
    for shape, captures in zip(shapes, PROOFS.get(named, []), strict=False)
    for pattern, capture in zip(shape.patterns, captures, strict=False)
]


def test_every_wrong_shape_that_is_left_to_a_rule_is_proved() -> None:
    assert {name: [len(one.patterns) for one in shapes] for name, shapes in REPORTED.items()} == {
        name: [len(captures) for captures in proofs] for name, proofs in PROOFS.items()
    }


@pytest.mark.parametrize(("named", "shape", "capture"), ROWS)
def test_what_is_left_to_a_rule_is_reported_by_it(
    named: str, shape: WrongShape, capture: Part
) -> None:
    assert verdicts(full(capture), named)[named].outcome is Outcome.FAIL
    assert failing(full(capture)) == []


@pytest.mark.parametrize(("named", "shape", "capture"), ROWS)
def test_what_is_left_to_a_rule_would_be_a_finding_without_it(
    named: str, shape: WrongShape, capture: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tuple(row for row in left_to_others() if row[1] is not shape)
    monkeypatch.setattr("mcptest.rules.shapes.left_to_others", lambda: others)
    assert failing(full(capture))


def test_the_documentation_names_every_rule_that_something_is_left_to() -> None:
    page = Path(__file__).parents[2] / "docs" / "compliance" / "message-shapes.md"
    named = set(re.findall(r"[A-Z]{3,8}-\d{3}", page.read_text().partition("One fault")[2]))
    assert named - {"SHAPE-001"} == {*REPORTED}


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
