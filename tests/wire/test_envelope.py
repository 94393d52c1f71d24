"""JSON-RPC 2.0: kinds, the predicate of the property, and every reason against a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.message import Flaw, Kind
from mcptest.core.revision import Revision
from mcptest.wire.envelope import (
    Faults,
    answer_problems,
    batch_problems,
    decode,
    envelope_problems,
    faults_of_answer,
    is_tolerable,
    is_valid_jsonrpc,
    kind_of,
)

REQUEST, NOTE, RESULT, ERROR, BATCH, INVALID = (
    Kind.REQUEST,
    Kind.NOTIFICATION,
    Kind.RESULT,
    Kind.ERROR,
    Kind.BATCH,
    Kind.INVALID,
)
F = Flaw

TABLE: list[tuple[bytes, Kind, set[Flaw]]] = [
    # sound messages
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', REQUEST, set()),
    (b'{"jsonrpc":"2.0","id":"a","method":"m","params":{}}', REQUEST, set()),
    (b'{"jsonrpc":"2.0","id":"","method":"m","params":[]}', REQUEST, set()),
    (b'{"jsonrpc":"2.0","method":"notifications/x"}', NOTE, set()),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', RESULT, set()),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', RESULT, set()),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', ERROR, set()),
    (b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}', ERROR, set()),
    (b' {"jsonrpc":"2.0","id":1,"method":"ping","extra":1}\r', REQUEST, set()),
    # the version
    (b'{"id":1,"method":"ping"}', REQUEST, {F.JSONRPC_MISSING}),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', REQUEST, {F.JSONRPC_WRONG}),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', REQUEST, {F.JSONRPC_WRONG}),
    (b'{"jsonrpc":null,"id":1,"result":{}}', RESULT, {F.JSONRPC_WRONG}),
    # the members
    (b'{"jsonrpc":"2.0","id":1}', INVALID, {F.NO_MEMBER}),
    (b"{}", INVALID, {F.JSONRPC_MISSING, F.NO_MEMBER}),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', INVALID, {F.RESULT_AND_ERROR}),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', RESULT, {F.RESULT_AND_ERROR}),
    (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{}}', ERROR, {F.RESULT_AND_ERROR}),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', INVALID, {F.METHOD_AND_ANSWER}),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","error":{}}', INVALID, {F.METHOD_AND_ANSWER}),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', REQUEST, {F.METHOD_NOT_STRING}),
    (b'{"jsonrpc":"2.0","id":1,"method":null}', REQUEST, {F.METHOD_NOT_STRING}),
    (b'{"jsonrpc":"2.0","id":1,"error":"no"}', ERROR, {F.ERROR_TYPE}),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}', REQUEST, {F.PARAMS_TYPE}),
    (b'{"jsonrpc":"2.0","method":"m","params":null}', NOTE, {F.PARAMS_TYPE}),
    # the id
    (b'{"jsonrpc":"2.0","id":null,"method":"m"}', REQUEST, {F.ID_NULL}),
    (b'{"jsonrpc":"2.0","id":null,"error":{}}', ERROR, {F.ID_NULL}),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', REQUEST, set()),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', REQUEST, {F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","id":true,"result":{}}', RESULT, {F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","id":[1],"result":{}}', RESULT, {F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","id":{},"result":{}}', RESULT, {F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","result":{}}', RESULT, {F.ID_MISSING}),
    # what is no message at all
    (b"null", INVALID, {F.NOT_AN_OBJECT}),
    (b"17", INVALID, {F.NOT_AN_OBJECT}),
    (b'"hello"', INVALID, {F.NOT_AN_OBJECT}),
    (b"[]", BATCH, {F.EMPTY_BATCH}),
    (b"[1]", BATCH, {F.NOT_AN_OBJECT}),
    (b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":1}]', BATCH, set()),
    (b'[{"jsonrpc":"2.0","method":"a"},[]]', BATCH, {F.NOT_AN_OBJECT}),
    # text that is at fault
    (b"", INVALID, {F.NOT_JSON}),
    (b"\xff", INVALID, {F.INVALID_UTF8, F.NOT_JSON}),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"m"}', NOTE, {F.BYTE_ORDER_MARK}),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"m"}', REQUEST, {F.NOT_FINITE, F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"m"}', REQUEST, {F.HUGE_NUMBER, F.ID_TYPE}),
    (b'{"jsonrpc":"2.0","method":"\\ud800"}', NOTE, {F.LONE_SURROGATE}),
    (b"[" * 1000 + b"]" * 1000, INVALID, {F.TOO_DEEP}),
    (b"[" + b"{}," * 200_000 + b"{}]", INVALID, {F.TOO_MANY_VALUES}),
]


@pytest.mark.parametrize(("raw", "kind", "flaws"), TABLE)
def test_a_frame_has_its_kind_and_exactly_these_flaws(
    raw: bytes, kind: Kind, flaws: set[Flaw]
) -> None:
    message = decode(raw)
    assert message.kind is kind
    assert message.raw == raw
    unread = {F.NOT_JSON, F.TOO_DEEP, F.TOO_MANY_VALUES}
    unreadable = unread & {problem.flaw for problem in message.problems}
    envelope = () if unreadable else batch_problems(message.value)
    assert {problem.flaw for problem in (*message.problems, *envelope)} == flaws
    assert all(problem.reason for problem in (*message.problems, *envelope))


def test_the_table_shows_every_flaw_but_those_of_answers() -> None:
    shown = {flaw for _, _, flaws in TABLE for flaw in flaws}
    of_answers = {flaw for _, flaws in ANSWERS for flaw in flaws} | {F.IN_BATCH, F.CONTENT_TYPE}
    assert set(Flaw) - shown <= of_answers


REFUSED, WARNED = True, False
ANSWERS: list[tuple[bytes, dict[Flaw, bool]]] = [
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}),
    (b'{"jsonrpc":"2.0","id":1.0,"result":{}}', {}),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"extra":1}', {}),
    (b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}', {}),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}', {}),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1.0,"message":"no"}}', {}),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1.5,"message":"no"}}', {F.ERROR_CODE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}', {F.ERROR_CODE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1}}', {F.ERROR_MESSAGE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', {F.RESULT_TYPE: REFUSED}),
    (b'{"jsonrpc":"2.0","result":{}}', {F.ID_MISSING: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', {F.NOT_FINITE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":-Infinity}}', {F.NOT_FINITE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', {F.INVALID_UTF8: REFUSED}),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}', {F.BYTE_ORDER_MARK: REFUSED}),
    (b'{"jsonrpc":"1.0","id":1,"result":{}}', {F.JSONRPC_WRONG: REFUSED}),
    (b'{"id":1,"result":{}}', {F.JSONRPC_MISSING: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', {F.RESULT_AND_ERROR: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1}', {F.NO_MEMBER: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"error":"no"}', {F.ERROR_TYPE: REFUSED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}', {F.DUPLICATE_KEY: WARNED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800"}}', {F.LONE_SURROGATE: WARNED}),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}', {F.HUGE_NUMBER: WARNED}),
]


@pytest.mark.parametrize(("raw", "flaws"), ANSWERS)
def test_an_answer_has_exactly_these_problems_and_some_are_tolerable(
    raw: bytes, flaws: dict[Flaw, bool]
) -> None:
    problems = answer_problems(decode(raw), Revision.V2025_11_25)
    assert {one.flaw: not is_tolerable(one) for one in problems} == flaws


def test_an_answer_in_an_array_is_refused_but_in_the_one_revision_with_batches() -> None:
    (item,) = decode(b'[{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}]').items
    for revision in (None, *Revision):
        found = {one.flaw for one in answer_problems(item, revision)}
        batched = {F.IN_BATCH} if revision is not Revision.V2025_03_26 else set()
        assert found == {F.NOT_FINITE, *batched}


MEMBERS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["2.0", "m", ""])
)
VALUES = st.recursive(
    MEMBERS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": VALUES,
        "method": st.just("ping") | VALUES,
        "params": VALUES,
        "result": VALUES,
        "error": st.just({"code": 1, "message": ""}) | VALUES,
        "extra": VALUES,
    },
)


def formal_expression(m: Any) -> bool:
    """The formal expression of the property, conjunct by conjunct."""

    def has_field(name: str) -> bool:
        return isinstance(m, dict) and name in m

    version = has_field("jsonrpc") and isinstance(m["jsonrpc"], str) and m["jsonrpc"] == "2.0"
    says_something = has_field("method") or has_field("result") or has_field("error")
    not_both = (not has_field("error")) or (not has_field("result"))
    return version and says_something and not_both


@given(MESSAGES | VALUES)
def test_the_predicate_is_the_formal_expression(value: Any) -> None:
    assert is_valid_jsonrpc(value) is formal_expression(value)


@given(MESSAGES | VALUES)
def test_a_message_without_problems_fulfils_the_predicate(value: Any) -> None:
    if not envelope_problems(value):
        assert is_valid_jsonrpc(value)


@given(MESSAGES)
def test_what_breaks_the_predicate_is_always_explained(value: Any) -> None:
    flaws = {problem.flaw for problem in envelope_problems(value)}
    formal = {F.JSONRPC_MISSING, F.JSONRPC_WRONG, F.NO_MEMBER, F.RESULT_AND_ERROR}
    assert is_valid_jsonrpc(value) is not bool(flaws & formal)


@given(MESSAGES)
def test_a_sound_message_keeps_the_four_informal_rules(value: Any) -> None:
    if envelope_problems(value):
        return
    kind = kind_of(value)
    assert value["jsonrpc"] == "2.0"
    if kind is REQUEST:
        assert isinstance(value["method"], str)
        assert type(value["id"]) in {int, str}
    elif kind is NOTE:
        assert isinstance(value["method"], str)
        assert "id" not in value
    else:
        assert kind in {RESULT, ERROR}
        assert ("result" in value) is not ("error" in value)
        assert "id" in value or kind is ERROR


@given(st.lists(MESSAGES | VALUES, min_size=1, max_size=4))
def test_the_problems_of_a_batch_are_those_of_its_members(items: list[Any]) -> None:
    expected = [
        (problem.flaw, f"/{place}{problem.pointer}")
        for place, item in enumerate(items)
        for problem in envelope_problems(item)
    ]
    assert [(problem.flaw, problem.pointer) for problem in batch_problems(items)] == expected


@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_a_batch_is_decoded_item_by_item(items: list[Any]) -> None:
    message = decode(json.dumps(items, allow_nan=True).encode())
    assert message.kind is BATCH
    assert [item.kind for item in message.items] == [kind_of(item) for item in items]


def test_a_pointer_leads_to_the_fault() -> None:
    problems = batch_problems([{"jsonrpc": "2.0", "method": "m"}, {"jsonrpc": "2.0", "method": 1}])
    assert [problem.pointer for problem in problems] == ["/1/method"]


def test_a_reason_does_not_carry_a_peers_control_codes() -> None:
    (problem,) = envelope_problems({"jsonrpc": "\x1b[2J", "method": "m"})
    assert "\x1b" not in problem.reason


CALLED = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"},{"type":"%b"}]}}'
PROMPTED = (
    b'{"jsonrpc":"2.0","id":1,"result":{"messages":[{"role":"user","content":{"type":"%b"}}]}}'
)
KNOWN_SINCE = {
    b"text": Revision.V2024_11_05,
    b"resource": Revision.V2024_11_05,
    b"audio": Revision.V2025_03_26,
    b"resource_link": Revision.V2025_06_18,
    b"video": None,
}


@pytest.mark.parametrize("kind", KNOWN_SINCE)
@pytest.mark.parametrize(("method", "answer"), [("tools/call", CALLED), ("prompts/get", PROMPTED)])
def test_content_is_of_a_type_that_the_revision_has(
    method: str, answer: bytes, kind: bytes
) -> None:
    since = KNOWN_SINCE[kind]
    for revision in Revision:
        problems = answer_problems(decode(answer % kind), revision, method)
        known = since is not None and revision >= since
        assert {one.flaw for one in problems} == (set() if known else {F.CONTENT_TYPE})


@pytest.mark.parametrize(
    ("method", "result", "words"),
    [
        ("initialize", {"capabilities": "tools"}, "result.capabilities is a string, not an object"),
        ("tools/list", {"tools": {}}, "result.tools is an object, not an array"),
        ("tools/list", {"tools": [{}, 7]}, "result.tools[1] is a number, not an object"),
        ("prompts/list", {"prompts": [], "nextCursor": 7}, "result.nextCursor is a number"),
        ("tools/call", {"content": [], "isError": "yes"}, "result.isError is a string"),
        ("tools/call", {"content": "hello"}, "result.content is a string, not an array"),
        ("resources/read", {"contents": [None]}, "result.contents[0] is null, not an object"),
        ("prompts/get", {"messages": True}, "result.messages is a boolean, not an array"),
    ],
)
def test_a_member_of_another_type_is_refused(
    method: str, result: dict[str, Any], words: str
) -> None:
    message = decode(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
    assert words in faults_of_answer(message, None, method).refused


@pytest.mark.parametrize("result", [{"tools": [], "nextCursor": None}, {"tools": None}, {}])
def test_a_null_counts_as_absent(result: dict[str, Any]) -> None:
    message = decode(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
    assert faults_of_answer(message, None, "tools/list") == Faults()


def answer(number: int, items: int) -> bytes:
    tools = [{"name": f"tool-{one}"} for one in range(items)]
    result = {"tools": tools, "nextCursor": str(number)}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


@pytest.mark.parametrize(("items", "is_shared"), [(20_000, True), (20, False)])
def test_what_is_large_and_came_before_is_held_once(items: int, is_shared: bool) -> None:
    first, second = (decode(answer(number, items)) for number in (1, 2))
    assert (first.result["tools"] is second.result["tools"]) is is_shared
    assert first.result["tools"] == second.result["tools"]
    assert [one.id for one in (first, second)] == [1, 2]
    assert [one.result["nextCursor"] for one in (first, second)] == ["1", "2"]


def test_a_large_text_that_came_before_is_held_once() -> None:
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"nextCursor": "c" * 500_000}}).encode()
    first, second = decode(raw), decode(raw)
    assert first.result["nextCursor"] is second.result["nextCursor"]
