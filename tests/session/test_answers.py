"""Static answers to what a server may ask, also when the question is hostile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.revision import TIMELINE, Revision
from mcptest.schema.validation import CompiledSchema
from mcptest.session.answers import NO_ANSWERS, Answers
from mcptest.session.connection import encode

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYWORDS = st.sampled_from(
    [
        "type",
        "format",
        "enum",
        "oneOf",
        "anyOf",
        "items",
        "minLength",
        "maxLength",
        "minItems",
        "minimum",
        "maximum",
        "const",
    ]
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])
FIELDS = st.dictionaries(KEYWORDS, ANYTHING | KINDS, max_size=5)


def form(**properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"message": "?", "requestedSchema": schema}


def filled_in(**properties: Any) -> Any:
    outcome = Answers().answer("elicitation/create", form(**properties))
    return outcome["result"]["content"]


@pytest.mark.parametrize("revision", TIMELINE)
def test_what_is_answered_is_declared_and_nothing_else(revision: Revision) -> None:
    declared = set(Answers().capabilities(revision))
    expected = {"roots", "sampling"}
    if revision >= Revision.V2025_06_18:
        expected |= {"elicitation"}
    assert declared == expected
    assert NO_ANSWERS.capabilities(revision) == {}


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create"])
def test_what_is_not_offered_is_not_found(method: str) -> None:
    assert NO_ANSWERS.answer(method, {})["error"]["code"] == -32601
    assert "result" in Answers().answer(method, {})


def test_a_ping_is_always_answered() -> None:
    assert NO_ANSWERS.answer("ping", {}) == {"result": {}}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string"},
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 2},
        {"type": "string", "maxLength": 0},
        {"type": "string", "format": "email"},
        {"type": "string", "format": "uri"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "enum": ["x", "y"]},
        {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
        {"type": "string", "default": "given"},
        {"type": "integer"},
        {"type": "integer", "minimum": 3},
        {"type": "integer", "maximum": -3},
        {"type": "integer", "minimum": -9, "maximum": -3},
        {"type": "number", "minimum": 0.5, "maximum": 0.6},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 2},
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    ],
)
def test_a_field_of_a_form_is_filled_in_as_its_schema_demands(field: dict[str, Any]) -> None:
    content = filled_in(field=field)
    assert CompiledSchema(form(field=field)["requestedSchema"]).misfit(content) is None


def test_values_that_were_given_are_used() -> None:
    answers = Answers(form={"name": "Ada"})
    outcome = answers.answer(
        "elicitation/create", form(name={"type": "string"}, age={"type": "integer"})
    )
    assert outcome["result"]["content"] == {"name": "Ada", "age": 0}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_is_not_accepted_has_no_content(action: str) -> None:
    outcome = Answers(elicitation=action).answer("elicitation/create", form(a={"type": "string"}))
    assert outcome == {"result": {"action": action}}


@pytest.mark.parametrize("mode", ["url", "", None, ["form"]])
def test_a_mode_that_was_not_declared_is_an_error(mode: Any) -> None:
    outcome = Answers().answer("elicitation/create", {"mode": mode, "url": "https://example.com"})
    assert outcome["error"]["code"] == -32602


@given(st.dictionaries(st.text(max_size=3), FIELDS | ANYTHING, max_size=4))
def test_no_form_can_make_us_fail(properties: dict[str, Any]) -> None:
    params = {"message": "?", "requestedSchema": {"properties": properties}}
    outcome = Answers().answer("elicitation/create", params)
    assert set(outcome["result"]["content"]) == set(properties)
    assert encode(outcome)


@given(
    st.sampled_from(["elicitation/create", "sampling/createMessage", "roots/list", "x"]), ANYTHING
)
def test_no_question_can_make_us_fail(method: str, schema: Any) -> None:
    assert len(Answers().answer(method, {"requestedSchema": schema, "messages": schema})) == 1


def test_a_text_of_absurd_length_is_not_written() -> None:
    assert len(filled_in(a={"type": "string", "minLength": 10**15})["a"]) <= 10_000
