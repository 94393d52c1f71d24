"""Arguments from schemas: each one fits, also after shrinking; and almost valid ones never do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from mcptest.schema.generator import Generator
from mcptest.schema.hypothesis_strategies import fitting_values
from mcptest.schema.validation import CompiledSchema
from mcptest.strategies import almost_valid_arguments, tool_arguments
from tests.properties.real_schemas import tool_schema
from tests.schema.test_from_schema import BRANCHES, SCHEMAS
from tests.schema.test_plausible import SCHEMAS as ANY_SCHEMAS

FEW = settings(max_examples=20)
_TOGETHER = 25


def misfits(schemas: Sequence[Any], examples: int) -> list[Any]:
    """Values that do not fit, of a few that are drawn from each schema."""
    pairs = [(CompiledSchema(schema), fitting_values(schema)) for schema in schemas]
    assert not [schema for schema, pair in zip(schemas, pairs, strict=True) if pair[1].is_empty]
    wrong: list[Any] = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[strategy for _, strategy in pairs]))
    def draw(values: tuple[Any, ...]) -> None:
        for (compiled, _), value in zip(pairs, values, strict=True):
            if compiled.misfit(value) is not None:
                wrong.append(value)

    draw()
    return wrong


@pytest.mark.parametrize("start", range(0, 1_000, 250))
def test_values_for_a_thousand_schemas_of_tools_fit(start: int) -> None:
    for first in range(start, start + 250, _TOGETHER):
        numbers = range(first, first + _TOGETHER)
        assert misfits([tool_schema(number) for number in numbers], examples=3) == []


def test_the_thousand_schemas_differ() -> None:
    assert len({msgspec.json.encode(tool_schema(number)) for number in range(1_000)}) > 990


def test_values_fit_whatever_keywords_a_schema_has() -> None:
    schemas = list(SCHEMAS.values())
    assert misfits(schemas, examples=40) == []


@FEW
@given(BRANCHES, st.data())
def test_any_satisfiable_schema_gets_values_that_fit(schema: Any, data: st.DataObject) -> None:
    assert CompiledSchema(schema).misfit(data.draw(fitting_values(schema))) is None


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(ANY_SCHEMAS)
def test_no_schema_can_make_us_fail(schema: Any) -> None:
    fitting_values(schema).is_empty  # noqa: B018 - translates it


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "nonsense"},
        {"$ref": "https://example.com/elsewhere"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    ],
)
def test_nothing_comes_where_nothing_fits(schema: Any) -> None:
    assert fitting_values(schema).is_empty


def reaches(schema: Any, wanted: Any, examples: int = 2_000) -> Any:
    """The smallest value that is drawn from the schema for which something holds."""
    return find(
        fitting_values(schema),
        wanted,
        settings=settings(max_examples=examples, suppress_health_check=list(HealthCheck)),
    )


TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
}


def test_a_schema_that_holds_itself_gives_values_that_do() -> None:
    found = reaches(
        TREE, lambda value: any(one.get("children") for one in value.get("children", ()))
    )
    assert found == {"name": "", "children": [{"name": "", "children": [{"name": ""}]}]}


def test_a_value_is_shrunk_to_what_makes_the_difference() -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in "abcdefgh"},
        "required": ["a"],
    }
    assert reaches(schema, lambda value: "c" in value and "f" in value) == {
        "a": "",
        "c": "",
        "f": "",
    }


def test_a_number_is_shrunk_to_the_edge() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 500}}}
    assert reaches(schema, lambda value: value.get("n", 0) > 41) == {"n": 42}


def test_every_alternative_is_reached() -> None:
    schema = {"anyOf": [{"const": word} for word in "abcdef"]}
    assert {reaches(schema, lambda value, word=word: value == word) for word in "abcdef"} == {
        *"abcdef"
    }


def test_a_long_pattern_is_met_in_its_length() -> None:
    schema = {"type": "string", "pattern": "^[a-z]+$", "minLength": 30, "maxLength": 31}
    value = reaches(schema, lambda value: True)
    assert value == "a" * 30


def test_a_part_is_read_once() -> None:
    part = {"type": "string", "minLength": 2}
    generator = Generator({})
    assert generator.part(part, 0) is generator.part(dict(part), 0)


# -- almost valid ----------------------------------------------------------------------------


def test_almost_valid_arguments_are_objects_that_do_not_fit_and_say_why() -> None:
    schemas = [tool_schema(number) for number in range(60)]
    spoilt = [(CompiledSchema(one), almost_valid_arguments(one)) for one in schemas]
    usable = [pair for pair in spoilt if not pair[1].is_empty]
    assert len(usable) > 50

    @settings(max_examples=4, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[strategy for _, strategy in usable]))
    def draw(cases: tuple[tuple[Any, str], ...]) -> None:
        for (compiled, _), (arguments, label) in zip(usable, cases, strict=True):
            assert isinstance(arguments, dict)
            assert label
            assert compiled.misfit(arguments) is not None

    draw()


def test_what_accepts_everything_has_no_almost_valid_arguments() -> None:
    assert almost_valid_arguments({"type": "object"}).is_empty
    assert almost_valid_arguments({"type": "nonsense"}).is_empty


def test_arguments_are_an_object_also_where_the_schema_does_not_say_so() -> None:
    def is_object(value: Any) -> bool:
        assert isinstance(value, dict)
        return bool(value)

    assert find(tool_arguments({}), is_object, settings=settings(max_examples=50))
