"""The headers a conforming client sends, in both eras, and what a response is taken for."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.revision import Revision
from mcptest.wire.mcp_headers import (
    Body,
    annotation_problems,
    classify_response,
    decode_header_value,
    encode_header_value,
    handshake_headers,
    has_annotations,
    is_legal_session_id,
    stateless_headers,
)

E = Revision.V2026_07_28


@pytest.mark.parametrize(
    ("revision", "session", "expected"),
    [
        (None, None, {}),
        (Revision.V2024_11_05, None, {}),
        (Revision.V2025_03_26, "s", {"Mcp-Session-Id": "s"}),
        (Revision.V2025_06_18, None, {"MCP-Protocol-Version": "2025-06-18"}),
        (Revision.V2025_11_25, "s", {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "s"}),
    ],
)
def test_a_session_repeats_its_id_and_since_2025_06_18_its_version(
    revision: Revision | None, session: str | None, expected: dict[str, str]
) -> None:
    assert handshake_headers(revision, session) == expected


def call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (call("tools/list"), None),
        (call("tools/call", name="add", arguments={}), "add"),
        (call("prompts/get", name="greet"), "greet"),
        (call("resources/read", uri="file:///a b"), "file:///a b"),
        (call("tasks/get", taskId="t1"), "t1"),
        (call("tools/call", name=7), None),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, None),
    ],
)
def test_a_stateless_message_names_its_version_method_and_name(
    message: dict[str, Any], name: str | None
) -> None:
    headers = stateless_headers(E, message)
    assert headers.pop("MCP-Protocol-Version") == "2026-07-28"
    assert headers.pop("Mcp-Method") == message["method"]
    assert headers == ({} if name is None else {"Mcp-Name": name})


def test_the_version_header_repeats_the_version_of_the_body() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
    headers = stateless_headers(E, call("tools/list", _meta=meta))
    assert headers["MCP-Protocol-Version"] == "1900-01-01"


def test_the_draft_speaks_as_the_newest_dated_revision() -> None:
    headers = stateless_headers(Revision.DRAFT, call("tools/list"))
    assert headers["MCP-Protocol-Version"] == "2026-07-28"


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("plain", "plain"),
        ("inner space, and;more", "inner space, and;more"),
        ("", ""),
        ("żółw", "=?base64?xbzDs8WCdw==?="),
        (" lead", "=?base64?IGxlYWQ=?="),
        ("trail ", "=?base64?dHJhaWwg?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("=?base64?x", "=?base64?x"),
    ],
)
def test_only_values_that_http_would_damage_are_encoded(value: str, encoded: str) -> None:
    assert encode_header_value(value) == encoded
    assert decode_header_value(encoded) == value


@given(st.text())
def test_every_value_comes_back_as_it_was_and_is_safe_on_the_way(value: str) -> None:
    encoded = encode_header_value(value)
    assert decode_header_value(encoded) == value
    assert encoded.isascii()
    assert encoded == encoded.strip()
    assert not set(encoded) & set("\r\n\0")


@pytest.mark.parametrize("value", ["=?base64?*?=", "=?base64?YQ?=", "=?base64?/w==?="])
def test_what_is_no_base64_of_text_between_the_sentinels_is_an_error(value: str) -> None:
    with pytest.raises(ValueError, match="sentinels"):
        decode_header_value(value)


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "nested": {
            "type": "object",
            "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}},
        },
        "plain": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"region": "eu", "plain": "x"}, {"Region": "eu"}),
        ({"count": 42}, {"Count": "42"}),
        ({"count": 42.0}, {"Count": "42"}),
        ({"dry": True}, {"Dry-Run": "true"}),
        ({"dry": False}, {"Dry-Run": "false"}),
        ({"nested": {"deep": "x"}}, {"Deep": "x"}),
        ({"nested": "not an object"}, {}),
        ({"region": None}, {}),
        ({"region": ["a"]}, {}),
        ({"region": "é"}, {"Region": "=?base64?w6k=?="}),
        ({}, {}),
        (None, {}),
    ],
)
def test_annotated_arguments_travel_as_headers(arguments: Any, expected: dict[str, str]) -> None:
    headers = stateless_headers(E, call("tools/call", name="t", arguments=arguments), SCHEMA)
    params = {name: value for name, value in headers.items() if name.startswith("Mcp-Param-")}
    assert params == {f"Mcp-Param-{name}": value for name, value in expected.items()}


def prop(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": schema}}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (SCHEMA, None),
        (True, None),
        (prop(type="string", default={"x-mcp-header": ""}), None),
        (prop(type="string", **{"x-mcp-header": ""}), "not a header name"),
        (prop(type="string", **{"x-mcp-header": "a b"}), "not a header name"),
        (prop(type="string", **{"x-mcp-header": 1}), "not a string"),
        (prop(type="number", **{"x-mcp-header": "A"}), "type other than"),
        (prop(**{"x-mcp-header": "A"}), "type other than"),
        (prop(type=["string", "null"], **{"x-mcp-header": "A"}), "type other than"),
        ({"type": "string", "x-mcp-header": "A"}, "do not reach"),
        (prop(type="array", items={"type": "string", "x-mcp-header": "A"}), "do not reach"),
        ({"anyOf": [prop(type="string", **{"x-mcp-header": "A"})]}, "do not reach"),
        ({"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}, "do not reach"),
        (
            {
                "properties": {
                    "a": {"type": "string", "x-mcp-header": "Same"},
                    "b": {"type": "string", "x-mcp-header": "sAME"},
                }
            },
            "used twice",
        ),
    ],
)
def test_an_annotation_that_a_client_must_refuse_is_explained(schema: Any, why: str | None) -> None:
    problems = annotation_problems(schema)
    assert bool(problems) is (why is not None)
    assert why is None or any(why in problem for problem in problems)


def test_a_schema_nested_beyond_recursion_is_walked() -> None:
    schema: dict[str, Any] = {"type": "string", "x-mcp-header": "Deep"}
    for _ in range(20_000):
        schema = {"not": schema}
    assert len(annotation_problems(schema)) == 1


@pytest.mark.parametrize(
    ("method", "status", "kind", "expected"),
    [
        ("POST", 200, "application/json", Body.JSON),
        ("POST", 200, "Application/JSON; charset=utf-8", Body.JSON),
        ("POST", 400, "application/json", Body.JSON),
        ("POST", 200, "text/event-stream", Body.EVENTS),
        ("POST", 404, "text/event-stream", Body.EVENTS),
        ("GET", 404, "text/event-stream", Body.ERROR_TEXT),
        ("POST", 200, "application/json-seq", Body.WRONG_TYPE),
        ("POST", 200, None, Body.WRONG_TYPE),
        ("POST", 202, None, Body.NOTHING),
        ("POST", 204, None, Body.NOTHING),
        ("POST", 404, "text/html", Body.ERROR_TEXT),
        ("POST", 405, None, Body.ERROR_TEXT),
        ("GET", 405, None, Body.NOTHING),
        ("DELETE", 405, "text/plain", Body.NOTHING),
        ("DELETE", 200, None, Body.NOTHING),
        ("GET", 404, None, Body.ERROR_TEXT),
    ],
)
def test_a_response_is_sorted_by_status_and_type(
    method: str, status: int, kind: str | None, expected: Body
) -> None:
    assert classify_response(method, status, kind) is expected


@pytest.mark.parametrize(
    ("value", "legal"),
    [("aZ~!", True), ("", False), ("a b", False), ("a\x7f", False), ("é", False)],
)
def test_a_session_id_is_visible_ascii(value: str, legal: bool) -> None:
    assert is_legal_session_id(value) is legal


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, False),
        (True, False),
        ({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}, True),
        ({"anyOf": [True, {"items": [{"x-mcp-header": 1}]}]}, True),
        ({"properties": {"a": {"description": "x-mcp-header"}}}, False),
    ],
)
def test_a_schema_has_annotations_wherever_they_stand(schema: Any, expected: bool) -> None:
    assert has_annotations(schema) is expected


def test_looking_for_annotations_copies_nothing() -> None:
    schema = {"properties": {letter * 1_000_000: {"type": "string"} for letter in "abc"}}
    tracemalloc.start()
    try:
        assert not has_annotations(schema)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
