"""The demo's own validator, judged by a real one."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.servers.demo.jsonrpc import problem_with
from mcptest.servers.demo.offers import EXTRA, TOOLS, Tool

ALL_TOOLS = (*TOOLS, EXTRA)
VALIDATORS = {tool.name: jsonschema_rs.validator_for(tool.input) for tool in ALL_TOOLS}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**13), 10**13)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.sampled_from(["celsius", "debug", "emergency", 20, 21, 1000, 5.0])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def calls_of(tool: Tool) -> st.SearchStrategy[tuple[Tool, dict[str, Any]]]:
    names = st.sampled_from([*tool.input["properties"], "unknown"])
    return st.tuples(st.just(tool), st.dictionaries(names, values, max_size=4))


@given(st.one_of([calls_of(tool) for tool in ALL_TOOLS]))
def test_it_accepts_what_a_json_schema_validator_accepts(call: tuple[Tool, dict[str, Any]]) -> None:
    tool, arguments = call
    expected = VALIDATORS[tool.name].is_valid(arguments)
    assert (problem_with(arguments, tool.input, "arguments") is None) is expected


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (True, {"type": "number"}, "x must be a number"),
        (1.5, {"type": "integer"}, "x must be an integer"),
        ([], {"type": "object"}, "x must be an object"),
        ("c", {"enum": ["a", "b"]}, "x must be one of a, b"),
        ({}, {"required": ["a"]}, "x.a is required"),
        ({"b": 1}, {"additionalProperties": False}, "x has an unknown member: 'b'"),
        (
            {"a": {"b": 5}},
            {"properties": {"a": {"properties": {"b": {"type": "string"}}}}},
            "x.a.b",
        ),
        ([1, "2"], {"items": {"type": "integer"}}, "x[1] must be an integer"),
        (float("inf"), {"type": "number", "maximum": 5}, "x must be at most 5"),
        (float("nan"), {"type": "number", "maximum": 5}, "x must be at most 5"),
    ],
)
def test_the_problem_names_the_place(value: Any, schema: dict[str, Any], problem: str) -> None:
    found = problem_with(value, schema, "x")
    assert found is not None
    assert found.startswith(problem)


def test_the_demo_does_not_wait_for_long() -> None:
    """No bound in the schema: a fuzz run would draw long waits from it, and call them hangs."""
    (slow,) = (tool for tool in TOOLS if tool.name == "slow")
    assert "maximum" not in slow.input["properties"]["seconds"]
    waiting = slow.run({"seconds": 60.5}, None)  # type: ignore[arg-type]  # it asks for nothing
    with pytest.raises(StopIteration) as ended:
        next(waiting)
    assert ended.value.value["isError"] is True
