"""Plausible inputs: they fit ordinary schemas, and no schema can do harm."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.schema.combinations import EFFORT, Effort
from mcptest.schema.tool_inputs import PlausibleArguments, plausible_arguments
from mcptest.schema.validation import CompiledSchema

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
WORDS = st.sampled_from(["string", "integer", "number", "array", "object", "null", "boolean", "a"])
KEYWORDS = st.sampled_from(
    [
        "type",
        "format",
        "enum",
        "anyOf",
        "allOf",
        "items",
        "minLength",
        "maxLength",
        "minItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "properties",
        "required",
        "$ref",
    ]
)
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, ANYTHING | WORDS, max_size=4),
    lambda inner: st.dictionaries(
        KEYWORDS,
        inner | st.lists(WORDS, max_size=3) | st.dictionaries(WORDS, inner, max_size=3) | WORDS,
        max_size=4,
    ),
    max_leaves=6,
)


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {},
        tool(a={"type": "string"}),
        tool(a={"type": "string", "minLength": 20, "maxLength": 30}),
        tool(a={"type": "string", "format": "date-time"}),
        tool(a={"type": "integer", "minimum": 5}),
        tool(a={"type": "integer", "exclusiveMinimum": 5}),
        tool(a={"type": "integer", "maximum": -2}),
        tool(a={"type": "integer", "exclusiveMaximum": 0}),
        tool(a={"type": "integer", "minimum": 0.5}),
        tool(a={"type": "number", "minimum": 0.25}),
        tool(a={"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}),
        tool(a={"type": "boolean"}, b={"type": "null"}),
        tool(a={"type": ["null", "string"]}),
        tool(a={"type": ["null"]}),
        tool(a={"enum": ["x", "y"]}),
        tool(a={"const": {"deep": [1]}}),
        tool(a={"type": "integer", "default": 7}),
        tool(a={"type": "array", "items": {"type": "integer"}, "minItems": 3}),
        tool(a={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        tool(a={"$ref": "#/$defs/p"}) | {"$defs": {"p": tool(x={"type": "number"})}},
        tool(a={"$ref": "#/$defs/a~1b"}) | {"$defs": {"a/b": {"type": "integer"}}},
        tool(a=tool(b=tool(c={"type": "string"}))),
        {"properties": {"a": {}, "b": {}}, "required": ["a"]},
    ],
)
def test_an_ordinary_schema_gets_an_input_that_fits(schema: dict[str, Any]) -> None:
    arguments = plausible_arguments(schema)
    assert CompiledSchema(schema).misfit(arguments) is None
    assert set(arguments) == set(schema.get("required", ()))


def test_only_required_members_are_filled_in() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}
    assert plausible_arguments(schema) == {"a": "a"}


def test_the_same_schema_gives_the_same_input() -> None:
    schema = tool(a={"type": "string"}, b={"type": "integer"})
    assert plausible_arguments(schema) == plausible_arguments(schema)


@given(SCHEMAS)
def test_no_schema_can_make_us_fail(schema: dict[str, Any]) -> None:
    assert isinstance(plausible_arguments(schema), dict)


@pytest.mark.parametrize(
    "schema",
    [
        tool(a={"type": "array", "minItems": 10**9, "items": {"type": "string"}}),
        tool(a={"type": "string", "minLength": 10**12}),
        tool(**{str(n): {"$ref": "#"} for n in range(10)}),
        tool(a={"$ref": "#/properties/a"}),
        tool(a={"anyOf": [{"$ref": "#/properties/a"}]}),
        tool(a={"type": "number", "minimum": float("inf")}),
        tool(a={"type": "integer", "minimum": float("nan")}),
    ],
)
def test_a_schema_that_asks_for_too_much_ends_soon(schema: dict[str, Any]) -> None:
    began = time.process_time()
    plausible_arguments(schema)
    assert time.process_time() - began < 1


def test_a_nest_of_arrays_ends_soon() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(15):
        schema = {"type": "array", "minItems": 50, "items": schema}
    assert plausible_arguments(tool(a=schema)) == {}


def costly(number: int) -> dict[str, Any]:
    """A schema of 2 kB that stays just below what one may cost."""
    definitions: dict[str, Any] = {"d20": {"type": "string", "title": f"number {number}"}}
    for level in range(20):
        reference = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {"allOf": [reference, reference]}
    properties = {"text": {"$ref": "#/$defs/d0"}}
    return {"properties": properties, "required": ["text"], "$defs": definitions}


def test_many_costly_schemas_together_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred tools took three minutes, four times a fifth of a second each."""
    spent = 0
    spend = Effort.spend

    def counted(effort: Effort, steps: int = 1) -> None:
        nonlocal spent
        spent += steps
        spend(effort, steps)

    monkeypatch.setattr(Effort, "spend", counted)
    make = PlausibleArguments()
    for number in range(200):
        make(costly(number))
    assert spent < 30 * EFFORT
    assert make({"properties": {"a": {"type": "string"}}, "required": ["a"]}) == {"a": "a"}


def test_arguments_are_made_once_and_nobody_changes_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = PlausibleArguments()
    schema = {"properties": {"a": {"type": "array"}}, "required": ["a"]}
    make(schema)["a"].append(1)
    monkeypatch.setattr("mcptest.schema.tool_inputs.fitting_value", None)
    assert make(schema) == {"a": []}
