"""Fuzz inputs: every label is true, validity is what validation says, a seed gives the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.commands.fuzz.inputs import Inputs, given_input, inputs_for
from mcptest.core.message import ABSENT
from mcptest.schema.tool_inputs import (
    TRAVERSAL,
    Category,
    InputCase,
    can_be_sent,
    form_of,
    judged_again,
    near_valid_cases,
    params_of,
)
from mcptest.schema.validation import CompiledSchema
from tests.properties.pace import few
from tests.schema.test_from_schema import BRANCHES, SCHEMAS

# Those that refer to their own root mean something else inside of another schema.
PARTS = [one for one in SCHEMAS.values() if one is not True and "$" not in str(one.keys())]
PARTS = [one for one in PARTS if "'$ref'" not in str(one)]
MEMBERS = st.dictionaries(
    st.sampled_from(["path", "query", "limit", "tags", "options"]),
    st.one_of(BRANCHES, st.sampled_from(PARTS)),
    min_size=1,
    max_size=4,
)


@st.composite
def tools(draw: st.DrawFn) -> dict[str, Any]:
    """Tools with schemas as real ones have them."""
    members = draw(MEMBERS)
    required = draw(st.lists(st.sampled_from(sorted(members)), unique=True))
    schema: dict[str, Any] = {"type": "object", "properties": members, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return {"name": "any", "inputSchema": schema}


def all_of(inputs: Inputs) -> Sequence[InputCase]:
    return inputs.some(0, inputs.total)


def claims_to_break(case: InputCase) -> bool:
    """Whether the label itself says that the schema is broken."""
    label = case.label.removeprefix(f"{case.member}: ")
    beginnings = (
        "missing required:",
        "wrong type for ",
        "one character too",
        "a string that the pattern",
        "a string that the format",
        "beyond the m",
        "at the exclusive",
        "not a multiple",
        "with a fraction",
        "one item too",
        "the same item twice",
        "without ",
        "with an unknown property",
        "not one of the allowed",
    )
    return label.startswith(beginnings)


def assert_true(
    case: InputCase, compiled: CompiledSchema, schema: dict[str, Any], base: dict[str, Any] | None
) -> None:
    arguments = {} if case.arguments is ABSENT else case.arguments
    fits = compiled.misfit(arguments) is None
    assert case.valid is fits
    assert bool(case.misfit) is not fits
    if claims_to_break(case):
        assert not fits, case.label
    if case.label == "valid input":
        assert fits
    if case.label.startswith("missing required:"):
        assert case.member in schema["required"]
        assert case.member not in arguments
    if case.member and base is not None:
        others = {key: value for key, value in arguments.items() if key != case.member}
        assert others == {key: value for key, value in base.items() if key != case.member}


@few(300)
@given(tools())
def test_every_near_valid_input_is_what_its_label_says(tool: dict[str, Any]) -> None:
    form = form_of(tool)
    schema = tool["inputSchema"]
    base = None if form.base is None else dict(form.base)
    labels, compiled = [], CompiledSchema(schema)
    for case in near_valid_cases(form):
        assert_true(case, compiled, schema, base)
        labels.append(case.label)
    assert len(labels) == len(set(labels))
    assert {"empty object", "null args"} <= set(labels)


@few(60)
@given(tools(), st.integers(0, 99))
def test_inputs_follow_from_the_seed_and_more_runs_only_add(
    tool: dict[str, Any], seed: int
) -> None:
    many = inputs_for(tool, 120, seed)
    assert all_of(many) == all_of(inputs_for(tool, 120, seed))
    assert all_of(inputs_for(tool, 30, seed)) == all_of(many)[:30]
    mutations = [case for case in all_of(many) if case.category is Category.MUTATION]
    assert len({repr(case.arguments) for case in mutations}) == len(mutations)
    for case in all_of(many):
        assert case.arguments in (None, ABSENT) or can_be_sent(case.arguments)
        assert judged_again(many.form, case).valid is not None


def test_another_seed_gives_other_mutations() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {}}}}
    one, other = (all_of(inputs_for(tool, 200, seed)) for seed in (1, 2))
    assert one[:10] == other[:10]
    assert one != other


TEXT = {"type": "string"}
KINDS = {
    "string": (
        TEXT,
        (
            "empty string,whitespace only,very long string (10KB),null bytes,unicode edge case,"
            "newlines,path traversal,shell injection,SQL injection"
        ),
    ),
    "number": ({"type": "number"}, "zero,negative,MAX_INT,MIN_INT,float precision,negative zero"),
    "boolean": ({"type": "boolean"}, 'null value,0,1,"true","false"'),
    "array": ({"type": "array"}, "empty array,null value,1000 elements,mixed types,nested arrays"),
    "object": ({"type": "object"}, "empty object,null value,20 levels deep,100 keys"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_gets_all_its_categories(kind: str) -> None:
    schema, labels = KINDS[kind]
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"x": schema}}}
    found = {case.label: case for case in near_valid_cases(form_of(tool))}
    for label in labels.split(","):
        case = found[f"x: {label}"]
        assert case.category.value == kind


def test_required_members_are_left_out_one_at_a_time() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a", "b"]}
    cases = {c.label: c for c in near_valid_cases(form_of({"name": "t", "inputSchema": schema}))}
    assert cases["missing required: a"].arguments == {"b": "b"}
    assert cases["missing required: b"].arguments == {"a": "a"}
    assert cases["missing required: a"].category is Category.CROSS_PROPERTY
    assert cases["wrong type for a (sent integer)"].category is Category.STRUCTURAL


def test_a_short_run_still_has_something_of_each_member() -> None:
    members = dict.fromkeys("abcdef", TEXT)
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": members}}
    short = inputs_for(tool, 20, 1)
    assert {case.member for case in all_of(short)} >= set("abcdef")
    assert short.left_out > 0


def test_a_tool_that_writes_is_not_led_to_a_file_that_exists() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"path": TEXT}}}
    for case in all_of(inputs_for(tool, 600, 1, writes=True)):
        assert TRAVERSAL not in repr(case.arguments)


@pytest.mark.parametrize("schema", [None, 5, {"type": "nonsense"}, {"$ref": "https://x.test/"}])
def test_without_a_usable_schema_nothing_is_called_valid_or_not(schema: Any) -> None:
    cases = all_of(inputs_for({"name": "t", "inputSchema": schema}, 40, 1))
    assert len(cases) == 40
    assert {case.valid for case in cases} == {None}


def test_a_malformed_request_is_one_whose_arguments_are_no_object() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    malformed = [
        case.label
        for case in all_of(inputs_for(tool, 50, 1))
        if case.arguments is not ABSENT and not isinstance(case.arguments, dict)
    ]
    assert malformed == ["null args"]
    assert params_of("t", None) == {"name": "t", "arguments": None}
    assert params_of("t", ABSENT) == {"name": "t"}


def test_an_input_that_was_given_is_judged_too() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "required": ["a"]}}
    assert all_of(given_input(tool, {"a": 1}))[0].valid is True
    assert all_of(given_input(tool, {}))[0].valid is False


def test_numbers_that_no_message_can_hold_are_not_made() -> None:
    huge = {"type": "integer", "minimum": 10**30}
    tool = {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"n": huge}, "required": ["n"]},
    }
    for case in all_of(inputs_for(tool, 100, 1)):
        assert case.arguments in (None, ABSENT) or can_be_sent(case.arguments)
