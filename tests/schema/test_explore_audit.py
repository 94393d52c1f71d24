"""Inputs of an audit are valid according to the tool's schema, and plain where nothing is asked."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.schema.tool_inputs import (
    FixturePaths,
    expanded,
    input_for,
    looks_internal,
    prompt_arguments,
    structured_misfit,
    template_variables,
)


def tool(schema: Any, name: str = "tool") -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


def test_where_nothing_constrains_a_member_the_defaults_of_the_seed_are_used() -> None:
    properties = {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    made = input_for(tool(schema))
    assert made.arguments == {"path": "path", "count": 0, "ratio": 0, "deep": False, "tags": []}
    assert made.doubt == ""


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": 5}, {"$ref": "http://x/y"}, False])
def test_a_schema_that_can_not_be_met_leaves_a_doubt(schema: Any) -> None:
    made = input_for(tool(schema))
    assert made.arguments == {}
    assert made.doubt


def test_without_a_schema_the_input_is_an_empty_object() -> None:
    assert input_for({"name": "bare"}).arguments == {}


def test_on_a_fixture_a_place_is_one_of_the_fixture() -> None:
    ground = FixturePaths("/data", "/data/a.txt")
    place = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert input_for(tool(place, "read_file"), ground).arguments == {"path": "/data/a.txt"}
    assert input_for(tool(place, "list_directory"), ground).arguments == {"path": "/data"}


def test_a_place_that_its_schema_does_not_accept_is_not_used() -> None:
    place = {
        "type": "object",
        "properties": {"path": {"type": "string", "maxLength": 4}},
        "required": ["path"],
    }
    made = input_for(tool(place), FixturePaths("/data", "/data/a.txt"))
    assert made.arguments == {"path": "path"}


def test_only_required_arguments_of_a_prompt_are_given() -> None:
    listed = [{"name": "a", "required": True}, {"name": "b"}, {"name": 5, "required": True}, "c"]
    assert prompt_arguments({"name": "p", "arguments": listed}) == ("a",)


@pytest.mark.parametrize(
    ("template", "names", "uri"),
    [
        ("note://{id}", ("id",), "note://id"),
        ("file:///{+path}", ("path",), "file:///a/b"),
        ("x://{a}/{b}{?q,r}", ("a", "b", "q", "r"), "x://a/b?q=q&r=r"),
        ("x://{list*}", ("list",), "x://list"),
        ("x://{a:3}", ("a",), "x://a"),
        ("x://plain", (), "x://plain"),
    ],
)
def test_a_template_is_filled_in(template: str, names: tuple[str, ...], uri: str) -> None:
    assert template_variables(template) == names
    values = {name: name for name in names} | ({"path": "a/b"} if "path" in names else {})
    assert expanded(template, values) == uri


def test_a_value_can_not_lead_out_of_its_place_in_a_template() -> None:
    assert expanded("note://{id}/x", {"id": "../a?b"}) == "note://..%2Fa%3Fb/x"


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("result", "phrase"),
    [
        ({"structuredContent": {"n": 1}}, ""),
        ({"structuredContent": {"n": "1"}}, "/n: expected integer"),
        ({"structuredContent": {}}, "does not match its outputSchema"),
        ({"content": []}, "returns no structuredContent"),
        ({"isError": True, "content": []}, ""),
    ],
)
def test_structured_content_is_held_against_the_output_schema(
    result: dict[str, Any], phrase: str
) -> None:
    found = structured_misfit({"name": "x", "outputSchema": OUTPUT}, result)
    assert phrase in found
    assert bool(found) is bool(phrase)


def test_insides_are_told_from_plain_failures() -> None:
    assert looks_internal("Traceback (most recent call last): …")
    assert not looks_internal("file not found")
