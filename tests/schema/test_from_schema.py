"""Values made from a schema: every one fits, whatever keywords the schema has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.core.message import ABSENT
from mcptest.schema.choices import Seeded
from mcptest.schema.generator import fitting_value
from mcptest.schema.texts import PatternError, text_matching
from mcptest.schema.validation import CompiledSchema

TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name", "next"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "a pattern": {"type": "string", "pattern": r"^[A-Z]{3}-\d{3,5}$"},
    "a pattern without ends": {"type": "string", "pattern": "abc", "minLength": 5},
    "a pattern with alternatives": {
        "type": "string",
        "pattern": "^(get|set)_[a-z]+(/[0-9a-f]{2})*$",
    },
    "a pattern with a class left out": {"type": "string", "pattern": r"^[^/\s]+$"},
    "a version": {"type": "string", "pattern": r"^v?\d+\.\d+\.\d+(-[\w.]+)?$"},
    "lengths": {"type": "string", "minLength": 40, "maxLength": 41},
    "a range of integers": {"type": "integer", "minimum": 17, "exclusiveMaximum": 19},
    "a range below zero": {"type": "number", "maximum": -5, "exclusiveMinimum": -6},
    "a narrow range": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.25},
    "steps": {"type": "number", "multipleOf": 0.05, "minimum": 0.1, "maximum": 1},
    "steps of integers": {"type": "integer", "multipleOf": 7, "exclusiveMinimum": 7},
    "several types": {"type": ["integer", "string", "null"]},
    "an enumeration of a type": {"type": "string", "enum": [1, "b", None]},
    "all of": {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"multipleOf": 2}]},
    "all of with members": {
        "allOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"a": {"minLength": 3}, "b": {"const": 1}}, "required": ["b"]},
        ]
    },
    "any of with a common part": {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "anyOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["x"]},
            {"properties": {"kind": {"const": "b"}}},
        ],
    },
    "one of": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    "not": {"type": "string", "not": {"enum": ["", "a"]}},
    "not required": {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "not": {"required": ["a"]},
        "minProperties": 1,
    },
    "if then else": {
        "properties": {"mode": {"enum": ["on", "off"]}, "level": {"type": "integer"}},
        "required": ["mode"],
        "if": {"properties": {"mode": {"const": "on"}}},
        "then": {"required": ["level"]},
        "else": {"properties": {"level": False}},
    },
    "dependent members": {
        "type": "object",
        "properties": {"card": {"type": "string"}, "address": {"type": "string"}},
        "required": ["card"],
        "dependentRequired": {"card": ["address"]},
    },
    "dependent schemas": {
        "type": "object",
        "properties": {"card": {"type": "string"}},
        "required": ["card"],
        "dependentSchemas": {
            "card": {"properties": {"cvc": {"pattern": "^[0-9]{3}$"}}, "required": ["cvc"]}
        },
    },
    "a tuple": {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    },
    "an old tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "string"}, {"type": "integer"}],
        "additionalItems": {"type": "boolean"},
        "minItems": 3,
    },
    "distinct items": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 4},
        "minItems": 5,
        "uniqueItems": True,
    },
    "contains": {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"minimum": 100},
        "minContains": 2,
    },
    "unknown members": {
        "type": "object",
        "minProperties": 3,
        "additionalProperties": {"type": "integer"},
    },
    "names of members": {
        "type": "object",
        "minProperties": 2,
        "propertyNames": {"pattern": "^[a-z]{4}$"},
        "additionalProperties": {"type": "boolean"},
    },
    "patterns of members": {
        "type": "object",
        "minProperties": 2,
        "patternProperties": {"^x-[a-z]+$": {"type": "string"}},
        "additionalProperties": False,
    },
    "at most so many members": {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in "abcdef"},
        "required": ["a", "b"],
        "maxProperties": 2,
    },
    "recursion": TREE,
    "definitions": {
        "type": "object",
        "properties": {"where": {"$ref": "#/$defs/point", "description": "a place"}},
        "required": ["where"],
        "$defs": {
            "point": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
        },
    },
    "an anchor": {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "integer"}}},
    "a default of the wrong type": {"type": "integer", "default": "many"},
    "a default out of range": {"type": "integer", "default": 0, "minimum": 1},
    "an example": {"type": "string", "examples": ["like this"], "minLength": 5},
    "draft four": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "integer",
        "minimum": 3,
        "exclusiveMinimum": True,
    },
    "anything": True,
    "nothing said": {},
    "as pydantic writes it": {
        "type": "object",
        "title": "SearchArguments",
        "properties": {
            "query": {"title": "Query", "type": "string", "minLength": 1},
            "limit": {
                "anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}],
                "default": None,
            },
            "sort": {"$ref": "#/$defs/Sort", "default": "asc"},
            "tags": {"items": {"type": "string"}, "type": "array", "uniqueItems": True},
        },
        "required": ["query", "sort"],
        "$defs": {"Sort": {"enum": ["asc", "desc"], "type": "string"}},
    },
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_the_plainest_value_fits(schema: Any) -> None:
    value = fitting_value(schema)
    assert value is not ABSENT
    assert CompiledSchema(schema).misfit(value) is None


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_values_by_chance_fit_and_are_the_same_for_the_same_seed(schema: Any) -> None:
    compiled = CompiledSchema(schema)
    for seed in range(25):
        value = fitting_value(schema, Seeded(seed))
        assert value is not ABSENT, seed
        assert compiled.misfit(value) is None
        assert fitting_value(schema, Seeded(seed)) == value


def test_chance_reaches_different_values() -> None:
    found = {repr(fitting_value(SCHEMAS["several types"], Seeded(seed))) for seed in range(40)}
    assert len(found) > 10


def test_a_member_without_constraints_is_its_own_name_zero_false_or_an_empty_array() -> None:
    kinds = {"text": "string", "number": "number", "truth": "boolean", "list": "array"}
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": list(kinds),
    }
    assert fitting_value(schema) == {"text": "text", "number": 0, "truth": False, "list": []}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"enum": [1], "not": {"const": 1}},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "nonsense"},
        {"$ref": "https://example.com/elsewhere"},
    ],
)
def test_what_no_value_fits_gets_none(schema: Any) -> None:
    assert fitting_value(schema) is ABSENT


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean", "null"])}),
    st.builds(
        lambda low, width: {"type": "integer", "minimum": low, "maximum": low + width},
        st.integers(-50, 50),
        st.integers(0, 9),
    ),
    st.builds(
        lambda low, width: {"type": "string", "minLength": low, "maxLength": low + width},
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    st.builds(lambda options: {"enum": options}, st.lists(st.integers(0, 9), min_size=1)),
    st.builds(
        lambda text: {"type": "string", "pattern": text}, st.sampled_from(["^a+$", "[0-9]{2}"])
    ),
)
BRANCHES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda members, extra: {
                "type": "object",
                "properties": members,
                "required": sorted(members)[:2],
                "additionalProperties": extra,
            },
            st.dictionaries(NAMES, inner, max_size=3),
            st.booleans(),
        ),
        st.builds(
            lambda items, least: {"type": "array", "items": items, "minItems": least},
            inner,
            st.integers(0, 3),
        ),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


@given(BRANCHES, st.integers(0, 1000))
def test_any_satisfiable_schema_gets_values_that_fit(schema: Any, seed: int) -> None:
    compiled = CompiledSchema(schema)
    for value in (fitting_value(schema), fitting_value(schema, Seeded(seed))):
        assert value is not ABSENT
        assert compiled.misfit(value) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\w+@\w+\.com$",
        r"^(?:a|b){2,4}[^c]$",
        r"^(?<year>\d{4})-\d\d$",
        r"^([ab])\1$",
        r"^\S+\s\D$",
        r"^[\d\-_]{3}$",
        r"^/api\/v[0-9]$",
    ],
)
def test_a_pattern_is_matched_by_the_text_made_from_it(pattern: str) -> None:
    import re

    texts = [text_matching(pattern, Seeded(seed)) for seed in range(30)]
    matcher = re.compile(pattern.replace("?<year>", "?P<year>"))
    assert sum(matcher.search(text) is not None for text in texts) >= len(texts) - 5


@pytest.mark.parametrize("pattern", ["(", "a{100000}", "[b-a]"])
def test_a_pattern_that_can_not_be_used_is_told(pattern: str) -> None:
    with pytest.raises(PatternError):
        text_matching(pattern, Seeded(1))
