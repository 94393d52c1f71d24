"""Every expectation of the mapping form, met and not met, with the message that people know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.message import ABSENT
from mcptest.suite.expectations import CHECKS, evaluate
from mcptest.suite.model import Expect, Expectation
from mcptest.suite.observed import Observed
from tests.support.suites import check


def said(text: str, **others: Any) -> Observed:
    return Observed(
        "tools/call", result={"content": [{"type": "text", "text": text}], **others}, subject="x"
    )


def first_message(observed: Observed, **expected: Any) -> str | None:
    failures = check(Expect(**expected), observed)
    assert len(failures) <= 1
    return failures[0].message if failures else None


LONG = "é" * 300
DOCUMENT = (
    '{"a":{"b":[1,{"c":"x"}]},"n":42,"t":true,"z":null,"big":1234567,"f":1.5,"s":"42",'
    '"l":[1,"a"],"o":{"b":1,"a":[2]},"foo-bar":7,"m":[[1,2],[3]]}'
)
NO_BEGINNING = "invalid character 'h' looking for beginning of value"
NOT_COUNTABLE = "min/max_results: result is not an array or object with array field: "

# text, expectation, message or None when it holds
TEXTS: list[tuple[str, dict[str, Any], str | None]] = [
    ("x", {"not_empty": True}, None),
    ("[ ]", {"not_empty": True}, None),
    ('""', {"not_empty": True}, None),
    ("", {"not_empty": True}, 'expected non-empty result, got: ""'),
    (" null\n", {"not_empty": True}, 'expected non-empty result, got: "null"'),
    ("[]", {"not_empty": True}, 'expected non-empty result, got: "[]"'),
    ("{}", {"not_empty": True}, 'expected non-empty result, got: "{}"'),
    ("\xa0", {"not_empty": True}, 'expected non-empty result, got: ""'),
    ("a\n", {"equals": " a"}, None),
    ("", {"equals": ""}, None),
    ("a ", {"equals": "b"}, "expected exact match:\n  want: b\n  got:  a "),
    ("\ufeffa", {"equals": "a"}, "expected exact match:\n  want: a\n  got:  \ufeffa"),
    ("hello", {"contains": ("he", "lo")}, None),
    ("hello", {"contains": ("he", "He")}, 'expected result to contain "He", got: hello'),
    (LONG, {"contains": ('"\n',)}, rf'expected result to contain "\"\n", got: {"é" * 200}'),
    ("hello", {"contains_any": ("x", "ell")}, None),
    (
        "hello",
        {"contains_any": ("x", 'y"z')},
        r'expected result to contain at least one of ["x" "y\"z"], got: hello',
    ),
    ("hello", {"not_contains": ("x", "y")}, None),
    ("hello", {"not_contains": ("x", "l")}, 'expected result NOT to contain "l"'),
    ("abc", {"matches_regex": ("^a", "c$")}, None),
    ("abc\n", {"matches_regex": ("abc$",)}, 'expected result to match regex "abc$", got: abc\n'),
    ("abc\n", {"matches_regex": ("(?m)abc$",)}, None),
    ("a\nb", {"matches_regex": ("a.b",)}, 'expected result to match regex "a.b", got: a\nb'),
    (
        "a",
        {"matches_regex": ("(",)},
        'matches_regex: invalid pattern "(": error parsing regexp: missing ): (',
    ),
    (DOCUMENT, {"json_path": {"$.a.b[1].c": "x", "n": 42}}, None),
    (DOCUMENT, {"json_path": {"$.a.b[1].c": "y"}}, 'json_path "$.a.b[1].c": want y, got x'),
    (DOCUMENT, {"json_path": {"$.n": "42", "$.s": 42, "$.t": "true"}}, None),
    (DOCUMENT, {"json_path": {"$.n": 43}}, 'json_path "$.n": want 43, got 42'),
    (DOCUMENT, {"json_path": {"$.t": 1}}, 'json_path "$.t": want 1, got true'),
    (DOCUMENT, {"json_path": {"$.z": None}}, None),
    (DOCUMENT, {"json_path": {"$.y": None}}, 'json_path "$.y": field "y" not found'),
    (DOCUMENT, {"json_path": {"$.big": 1234567}}, None),
    (DOCUMENT, {"json_path": {"$.big": "1.234567e+06"}}, None),
    (DOCUMENT, {"json_path": {"$.big": 1234568}}, 'json_path "$.big": want 1234568, got 1234567'),
    (DOCUMENT, {"json_path": {"$.l": [1, "a"], "$.o": {"a": [2], "b": 1}}}, None),
    (DOCUMENT, {"json_path": {"$.l": "[1 a]", "$.o": "map[a:[2] b:1]"}}, None),
    (DOCUMENT, {"json_path": {"$.l": [1]}}, 'json_path "$.l": want [1], got [1 a]'),
    (DOCUMENT, {"json_path": {"$.foo-bar": 7, "$.m[0][1]": 2, "$.m[-1][0]": 3}}, None),
    (DOCUMENT, {"json_path": {"$.m[0][1]": 1}}, 'json_path "$.m[0][1]": want 1, got 2'),
    (DOCUMENT, {"json_path": {"$.m[*][0]": [1, 3]}}, None),
    (DOCUMENT, {"json_path": {"$..nope": []}}, None),
    (DOCUMENT, {"json_path": {"$.m[*][0]": 1}}, 'json_path "$.m[*][0]": want 1, got [1 3]'),
    (DOCUMENT, {"json_path": {"z": 1, "a": 1}}, 'json_path "a": want 1, got map[b:[1 map[c:x]]]'),
    ("[1,2]", {"json_path": {"$[0]": 1}}, None),
    ('noise\n{"n":42}\nmore', {"json_path": {"$.n": 42}}, None),
    ('noise\n 7 \n{"n":42}', {"json_path": {"$": 7}}, None),
    (
        '{"n":\n 42}\ntrail',
        {"json_path": {"$.n": 42}},
        "json_path: result is not valid JSON: invalid character 't' after top-level value",
    ),
    (
        "hello",
        {"json_path": {"$.n": 42}},
        "json_path: result is not valid JSON: invalid character 'h' looking for beginning of value",
    ),
    (
        "",
        {"json_path": {"$.n": 42}},
        "json_path: result is not valid JSON: unexpected end of JSON input",
    ),
    ("[1,2]", {"min_results": 2, "max_results": 2}, None),
    ("[1,2]", {"min_results": 3}, "expected at least 3 results, got 2"),
    ("[1,2]", {"max_results": 1}, "expected at most 1 results, got 2"),
    ("null", {"max_results": 0}, None),
    ("null", {"min_results": 1}, "expected at least 1 results, got 0"),
    ('x\n{"items":1,"symbols":[1]}', {"min_results": 1}, None),
    ('{"prompts":[1,2]}', {"min_results": 2}, None),
    ('{"completion":{"values":["a"]}}', {"min_results": 2}, "expected at least 2 results, got 1"),
    (
        '{"entities":[1]}',
        {"min_results": 0},
        NOT_COUNTABLE + "json: cannot unmarshal object into Go value of type []interface {}",
    ),
    (
        "true",
        {"max_results": 0},
        NOT_COUNTABLE + "json: cannot unmarshal bool into Go value of type []interface {}",
    ),
    ("", {"min_results": 0}, NOT_COUNTABLE + "unexpected end of JSON input"),
    ('{"net_delta":0}', {"net_delta": 0}, None),
    ('{"net_delta":0.0}', {"net_delta": 0}, None),
    ('{"net_delta":2}', {"net_delta": 0}, "expected net_delta=0, got 2"),
    ('{"net_delta":0.9}', {"net_delta": 0}, "expected net_delta=0, got 0.9"),
    ('{"net_delta":"0"}', {"net_delta": 0}, "net_delta: field not found or not a number in result"),
    ("{}", {"net_delta": 0}, "net_delta: field not found or not a number in result"),
    ("[]", {"net_delta": 0}, "net_delta: result is not valid JSON: expected an object, got array"),
    (
        'x\n{"net_delta":0}',
        {"net_delta": 0},
        "net_delta: result is not valid JSON: invalid character 'x' looking for beginning of value",
    ),
    ("abcabc", {"in_order": ("a", "b", "c", "a")}, None),
    ("éab", {"in_order": ("é", "z")}, 'in_order: "z" not found after position 2 in result'),
    ("aa", {"in_order": ("a", "a", "a")}, 'in_order: "a" not found after position 2 in result'),
    ('{"n":1}', {"schema": {"properties": {"n": {"type": "integer"}}}}, None),
    (
        '{"n":"1"}',
        {"schema": {"properties": {"n": {"type": "integer"}}}},
        'schema: the text does not match the schema at /n: expected integer, got "1"',
    ),
    (
        "hello",
        {"schema": {}},
        "schema: there is no structuredContent, and the text is not JSON: " + NO_BEGINNING,
    ),
]


@pytest.mark.parametrize(("text", "expected", "message"), TEXTS)
def test_a_text_meets_an_expectation_or_the_message_says_why(
    text: str, expected: dict[str, Any], message: str | None
) -> None:
    assert first_message(said(text), **expected) == message


def test_not_error_and_is_error() -> None:
    fine, failed = said("a"), said("boom", isError=True)
    response = "\n      server response: boom"
    assert first_message(fine, not_error=True) is None
    assert first_message(failed, is_error=True) is None
    assert first_message(failed, not_error=True) == (
        "expected no error but tool returned isError=true" + response
    )
    assert first_message(fine, is_error=True) == "expected error but tool returned isError=false"
    assert first_message(failed, contains=("zz",)) == (
        'expected result to contain "zz", got: boom' + response
    )


def test_only_true_is_an_error() -> None:
    assert first_message(said("a", isError="true"), not_error=True) is None
    assert first_message(said("a", isError=1), is_error=True) is not None


# -- JSON-RPC errors ---------------------------------------------------------------------------


def refused(code: Any = -32603, message: Any = "kaput", method: str = "tools/call") -> Observed:
    return Observed(method, error={"code": code, "message": message}, subject="x")


@pytest.mark.parametrize(
    "expected",
    [
        {"not_error": True},
        {"contains": ("kaput",)},
        {"not_contains": ("x",)},
        {"not_empty": True},
        {"max_duration": 5.0},
        {"checks": (Expectation("text", {"contains": "kaput"}),)},
    ],
)
def test_an_error_that_nobody_asked_for_fails_every_test(expected: dict[str, Any]) -> None:
    assert first_message(refused(), **expected) == (
        "tool call x failed: internal error: kaput (JSON-RPC error -32603)"
    )


def test_is_error_does_not_accept_a_protocol_error_and_names_its_code() -> None:
    message = first_message(refused(), is_error=True)
    assert message is not None
    assert "-32603" in message
    assert "use error_code" in message
    assert first_message(refused(), is_error=True, error_code=-32603) is not None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": -32601, "message": "m"}, "method not found: m (JSON-RPC error -32601)"),
        ({"code": -32602, "message": ""}, "invalid params (JSON-RPC error -32602)"),
        ({"code": -32002, "message": "m"}, "resource not found: m (JSON-RPC error -32002)"),
        ({"code": -1, "message": "m"}, "m (JSON-RPC error -1)"),
        ({"code": -1}, "JSON-RPC error -1"),
        ({"message": "m"}, "m (JSON-RPC error without a code)"),
        ({"code": True, "message": 5}, "JSON-RPC error without a code"),
        ("oops", "an error that is string, not an object"),
    ],
)
def test_an_error_is_told_in_words(error: Any, words: str) -> None:
    observed = Observed("prompts/get", error=error, subject="p")
    assert first_message(observed, not_error=True) == f'prompts/get failed for "p": {words}'


@pytest.mark.parametrize(
    ("method", "subject", "beginning"),
    [
        ("resources/read", "x:y", "resources/read failed for x:y: "),
        ("resources/subscribe", "x:y", "resources/subscribe failed for x:y: "),
        ("resources/list", "", "resources/list failed: "),
        ("completion/complete", "", "completion/complete failed: "),
    ],
)
def test_the_failing_call_is_named(method: str, subject: str, beginning: str) -> None:
    observed = Observed(method, error={"code": -1, "message": "m"}, subject=subject)
    assert (first_message(observed, not_error=True) or "").startswith(beginning)


def test_an_expected_error_code() -> None:
    assert first_message(refused(), error_code=-32603) is None
    assert first_message(refused(), error_code=-32603, contains=("kaput",)) is None
    assert first_message(refused(), error_code=-32602) == (
        "expected JSON-RPC error -32602, got internal error: kaput (JSON-RPC error -32603)"
    )
    assert first_message(said("a"), error_code=-32602) == (
        "expected JSON-RPC error -32602, but the call returned a result"
    )
    assert first_message(refused(), error_code=-32603, not_error=True) == (
        "expected no error but got internal error: kaput (JSON-RPC error -32603)"
    )
    assert first_message(refused(code=True), error_code=1) is not None


def test_a_target_that_asks_for_the_error_accepts_it() -> None:
    code = Expectation("error.code", {"exact": -32603})
    assert first_message(refused(), checks=(code,)) is None
    assert first_message(refused(-1), checks=(code,)) == "error.code: expected -32603, got -1"
    assert first_message(said("a"), checks=(code,)) == ("error.code: the call returned no error")


# -- results that are none ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({}, "content is missing"),
        ({"content": 1}, "content is not an array"),
        ({"content": [1]}, "content is not an object"),
        ({"content": [{"type": "zz"}]}, "unsupported content type: zz"),
        ({"content": [{"type": "image"}]}, "image data or mimeType is missing"),
        ({"content": [{"type": "audio", "data": "x"}]}, "audio data or mimeType is missing"),
        ({"content": [{"type": "resource_link"}]}, "resource_link uri or name is missing"),
        ({"content": [{"type": "resource"}]}, "resource is missing"),
        ({"content": [{"type": "resource", "resource": {}}]}, "resource uri is missing"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "x:y"}}]},
            "unsupported resource type",
        ),
        ("s", "the result is not an object but string"),
        (None, "the result is not an object but null"),
    ],
)
def test_a_result_that_is_none_fails_every_test(result: Any, problem: str) -> None:
    observed = Observed("tools/call", result=result, subject="x")
    for expected in ({"not_error": True}, {"not_contains": ("zz",)}, {"error_code": 1}):
        assert first_message(observed, **expected) == f"tool call x failed: {problem}"


# -- ours --------------------------------------------------------------------------------------


def test_min_progress() -> None:
    def counted(progress: int | None) -> Observed:
        return Observed("tools/call", result={"content": []}, progress=progress)

    assert first_message(counted(1), min_progress=1) is None
    assert first_message(counted(0), min_progress=1) == (
        "expected at least 1 progress notification(s), got 0"
    )
    assert "capture_progress" in (first_message(counted(None), min_progress=0) or "")


def test_max_duration() -> None:
    slow = Observed("tools/call", result={"content": []}, duration=1.25)
    assert first_message(slow, max_duration=1.25) is None
    assert first_message(slow, max_duration=1.0) == (
        "max_duration: expected a response within 1s, it took 1.250s"
    )


def test_schema_looks_at_structured_content_before_the_text() -> None:
    schema = {"required": ["n"]}
    assert first_message(said("{}", structuredContent={"n": 1}), schema=schema) is None
    message = first_message(said('{"n":1}', structuredContent={}), schema=schema)
    assert (
        message
        == 'schema: structuredContent does not match the schema: the property "n" is missing'
    )
    assert first_message(said("1"), schema=False) is not None


def test_structured_content_has_to_fit_the_tools_own_schema() -> None:
    def structured(value: Any, schema: Any, **others: Any) -> Observed:
        result = {"content": [], "structuredContent": value, **others}
        return Observed("tools/call", result=result, output_schema=schema)

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert check(Expect(not_error=True), structured({"n": 1}, schema)) == []
    failure = check(Expect(not_error=True), structured({"n": "1"}, schema))[0]
    assert failure.check == "output_schema"
    assert failure.pointer == "/n"
    assert "structuredContent does not match the schema at /n" in failure.message
    assert check(Expect(is_error=True), structured({"n": "1"}, schema, isError=True)) == []
    unusable = check(Expect(not_error=True), structured({"n": 1}, {"type": "nope"}))[0]
    assert "can't be checked against the schema" in unusable.message
    assert check(Expect(not_error=True), Observed("tools/call", result={"content": []})) == []


def test_the_list_form() -> None:
    rows = (
        Expectation("text", {"contains": "ell"}),
        Expectation("result.content", {"min_length": 1}),
        Expectation("result.content[0].annotations", {"exists": False}),
        Expectation("structured", {"exists": False}),
    )
    assert check(Expect(checks=rows), said("hello")) == []
    bad = Expectation("result.content[0].text", {"regex": "^z"})
    failure = check(Expect(checks=(*rows, bad)), said("hello"))[0]
    assert failure.check == "checks"
    assert failure.pointer == "result.content[0].text"
    assert failure.message == (
        'result.content[0].text: expected it to match regex "^z", got "hello"'
    )
    missing = Expectation("result.nope", {"not_contains": "x"})
    assert check(Expect(checks=(missing,)), said("a"))[0].message == (
        'result.nope: field "nope" not found'
    )


# -- order, number, and nothing at all ---------------------------------------------------------


def test_every_field_of_expect_is_checked_in_the_fixed_order() -> None:
    names = list(CHECKS)
    assert names == [
        *("not_error", "is_error", "not_empty", "equals", "contains", "contains_any"),
        *("not_contains", "matches_regex", "json_path", "min_results", "max_results"),
        *("net_delta", "file_contains", "file_not_contains", "file_not_exists", "in_order"),
        *("file_unchanged", "min_progress", "error_code", "schema", "max_duration", "checks"),
    ]
    assert set(names) == {field.name for field in msgspec.structs.fields(Expect)} - {"place"}


EVERYTHING: Mapping[str, Any] = {
    "not_error": True,
    "equals": "b",
    "contains": ("b", "c"),
    "contains_any": ("b",),
    "not_contains": ("a",),
    "matches_regex": ("b",),
    "json_path": {"$.a": 1},
    "min_results": 1,
    "max_results": 1,
    "net_delta": 1,
    "file_contains": {"f": "x"},
    "file_not_contains": {"f": "x"},
    "in_order": ("b",),
    "file_unchanged": ("f",),
    "min_progress": 1,
    "error_code": 1,
    "schema": {},
    "max_duration": 0.0,
    "checks": (Expectation("text", {"exact": 1}),),
}


def test_the_first_failure_is_told_unless_all_are_asked_for() -> None:
    slow = Observed("tools/call", result={"content": [{"type": "text", "text": "a"}]}, duration=1.0)
    found = evaluate(Expect(**EVERYTHING), slow)
    assert [failure.check for failure in found.failures] == ["equals"]
    assert found.checked == 2
    everything = evaluate(Expect(**EVERYTHING), slow, all_failures=True)
    assert [failure.check for failure in everything.failures] == [
        *("equals", "contains", "contains", "contains_any", "not_contains", "matches_regex"),
        *("json_path", "min_results", "max_results", "net_delta", "file_contains"),
        *("file_not_contains", "in_order", "file_unchanged", "min_progress", "error_code"),
        *("schema", "max_duration", "checks"),
    ]
    assert everything.checked == 20


@pytest.mark.parametrize(
    "expected", [{}, {"contains": ()}, {"not_error": False}, {"json_path": {}}]
)
def test_an_expectation_that_checks_nothing_does_not_pass(expected: dict[str, Any]) -> None:
    found = evaluate(Expect(**expected), said("a"))
    assert not found.passed
    assert found.checked == 0
    assert found.failures[0].message == "nothing was checked"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.sampled_from(["tools/call", "prompts/get", "resources/read", "prompts/list", "x/y"]),
    _JSON
    | st.builds(lambda items: {"content": items, "messages": items, "contents": items}, _JSON)
    | st.text(max_size=30).map(lambda text: {"content": [{"type": "text", "text": text}]}),
)
def test_no_result_makes_checking_crash(method: str, result: Any) -> None:
    observed = Observed(method, result=result, progress=0)
    found = evaluate(Expect(**EVERYTHING), observed, all_failures=True)
    assert not found.passed


def test_an_absent_result_is_no_text() -> None:
    assert Observed("tools/call").text == ""
    assert Observed("tools/call").structured is ABSENT


# -- large answers: quadratic work would take minutes ---------------------------------------------


def test_a_hundred_substrings_are_found_in_a_large_text() -> None:
    large = said("the quick brown fox, " * 50_000 + "end")
    assert check(Expect(contains=("quick brown",) * 99 + ("end",)), large) == []


def test_in_order_follows_twenty_thousand_steps() -> None:
    step = tuple("ab" for _ in range(20_000))
    assert check(Expect(in_order=step), said("xab" * 20_000)) == []


def test_a_json_line_is_found_behind_fifty_thousand_others() -> None:
    lines = said("{ not json\n" * 50_000 + '{"n":1}')
    assert check(Expect(json_path={"$.n": 1}), lines) == []
