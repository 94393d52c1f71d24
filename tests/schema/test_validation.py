"""Why a value does not match a schema, in our words."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.schema.validation import CompiledSchema


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (
            {"properties": {"words": {"type": "integer"}}},
            {"words": "1"},
            '/words: expected integer, got "1"',
        ),
        ({"type": ["null", "integer"]}, [1], "expected integer or null, got [1]"),
        ({"items": {"required": ["n"]}}, [{}], '/0: the property "n" is missing'),
        ({"enum": ["a", 1]}, "b", 'expected one of "a" or 1, got "b"'),
        ({"const": {"a": 1}}, 4, 'expected {"a":1}, got 4'),
        ({"minimum": 3}, 1, "expected at least 3, got 1"),
        ({"exclusiveMaximum": 3}, 3, "expected less than 3, got 3"),
        ({"multipleOf": 2}, 3, "expected a multiple of 2, got 3"),
        ({"pattern": "^a"}, "b", 'expected a match of "^a", got "b"'),
        ({"properties": {}, "additionalProperties": False}, {"z": 1}, 'unexpected property "z"'),
        ({"properties": {"n": False}}, {"n": 5}, "/n: the schema allows nothing here, got 5"),
        ({"maxItems": 1}, [1, 2], "[1,2] has more than 1 item"),
    ],
)
def test_a_misfit_names_the_place_and_what_was_expected(schema: Any, value: Any, told: str) -> None:
    assert str(CompiledSchema(schema).misfit(value)) == told


def test_a_huge_value_is_cut_in_the_reason() -> None:
    told = str(CompiledSchema({"type": "integer"}).misfit("x" * 100_000))
    assert told.startswith('expected integer, got "xxx')
    assert len(told) < 200


def test_an_integer_that_no_double_holds_is_shown() -> None:
    assert str(CompiledSchema({"type": "string"}).misfit(2**70)) == f"expected string, got {2**70}"
