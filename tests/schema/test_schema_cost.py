"""What a schema may cost: beyond the limit it is refused, and below it nothing changes."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from mcptest.core.limits import cancellation
from mcptest.core.message import ABSENT
from mcptest.core.verdict import Outcome, Verdict
from mcptest.probe.properties.message_strategies import almost_valid_arguments, tool_arguments
from mcptest.rules.judge import decisiveness
from mcptest.schema import validation
from mcptest.schema.choices import Seeded
from mcptest.schema.generator import fitting_value
from mcptest.schema.tool_inputs import form_of, near_valid_cases
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from tests.rogues.offers import INPUTS, OUTPUTS

REFUSED = {
    "all-of": "its references multiply",
    "any-of": "its references multiply",
    "one-of": "its references multiply",
    "conditions": "its references multiply",
    "anchors": "its references multiply",
    "addresses": "its references multiply",
    "members-of-members": "its references multiply",
    "left-over-members": "its unevaluated members or items multiply",
    "left-over-items": "its unevaluated members or items multiply",
    "reference-chain": "more than 400 levels deep",
    "many-patterns": "patterns that are too large",
    "multiplying-pattern": "its repetitions multiply",
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "name": {"type": "string"}},
}


def _compiled(schema: Any) -> tuple[CompiledSchema | None, str]:
    try:
        return CompiledSchema(schema), ""
    except SchemaError as error:
        return None, str(error)


def _refusal(compiled: CompiledSchema, value: Any) -> str:
    try:
        misfit = compiled.misfit(value)
    except SchemaLimitError as error:
        return str(error)
    return "" if misfit is None else misfit.reason


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_schema_that_multiplies_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(SchemaLimitError, match=REFUSED[name]):
        CompiledSchema(INPUTS[name]())


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_making_inputs_for_any_schema_comes_to_an_end(name: str) -> None:
    schema = INPUTS[name]()
    for value in (fitting_value(schema), fitting_value(schema, Seeded(1))):
        assert value is ABSENT or CompiledSchema(schema).fits(value)
    form = form_of({"name": "bomb", "inputSchema": schema})
    assert len(list(near_valid_cases(form))) >= 3
    tool_arguments(schema).validate()
    almost_valid_arguments(schema).validate()


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_checking_any_result_comes_to_an_end(name: str) -> None:
    schema, value = OUTPUTS[name]
    compiled, refusal = _compiled(schema())
    if compiled is not None:
        refusal = _refusal(compiled, value())
    assert "steps" in refusal or "too many alternatives" in refusal


def test_a_value_that_no_alternative_fits_is_told_even_where_the_reason_costs_too_much() -> None:
    schema, value = OUTPUTS["output-tree"]
    misfit = CompiledSchema(schema()).misfit(value())
    assert misfit is not None
    assert "too many alternatives to say why" in misfit.reason


def test_a_match_that_was_given_up_is_no_misfit() -> None:
    compiled = CompiledSchema({"pattern": "^(?:(?=a)a|(?=a)a)*$"})
    assert compiled.misfit("aaa") is None
    with pytest.raises(SchemaLimitError, match="patterns"):
        compiled.misfit("a" * 60 + "b")


def test_a_recursive_schema_is_used_on_values_of_any_depth() -> None:
    compiled = CompiledSchema(TREE)
    value: dict[str, Any] = {}
    for _ in range(200):
        value = {"left": value, "right": {"name": "leaf"}}
    assert compiled.misfit(value) is None
    deep = {"left": {"right": {"name": 1}}}
    misfit = compiled.misfit(deep)
    assert misfit is not None
    assert misfit.pointer == "/left/right/name"


def test_a_large_result_that_fits_a_plain_schema_is_never_refused() -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    row = {"type": "object", "properties": {f"c{n}": optional for n in range(10)}}
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
        "$defs": {"row": row},
    }
    value = {"rows": [{f"c{n}": "x" for n in range(10)} for _ in range(30_000)]}
    assert CompiledSchema(schema).misfit(value) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-f0-9]{8}-[a-f0-9]{4}-[1-5][a-f0-9]{3}-[a-f0-9]{4}-[a-f0-9]{12}$",
        r"^(?=.*[A-Z])(?=.*\d).{8,64}$",
        r"^\w{1,255}(\.\w{1,63}){0,8}$",
        r"^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$",
    ],
)
def test_patterns_that_people_write_are_used(pattern: str) -> None:
    CompiledSchema({"type": "string", "pattern": pattern}).misfit("x" * 300)


@pytest.mark.parametrize(
    "reference", ["#", "#/$defs/a", "#/$defs/a%2Fb", "#there", "urn:x:inner", "http://[", "#/1/2"]
)
def test_wherever_a_reference_leads_the_cost_is_counted(reference: str) -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": reference}},
        "$defs": {
            "a": {"type": "string"},
            "a/b": {"type": "string"},
            "c": {"$anchor": "there"},
            "d": {"$id": "urn:x:inner"},
        },
    }
    compiled, refusal = _compiled(schema)
    assert compiled is not None or "steps" not in refusal


def test_a_pass_in_another_session_does_not_hide_what_could_not_be_checked() -> None:
    failed, passed = Verdict("R", Outcome.FAIL), Verdict("R", Outcome.PASS, observed=1)
    unchecked = Verdict("R", Outcome.INCONCLUSIVE, "why", unchecked=True)
    unsure = Verdict("R", Outcome.INCONCLUSIVE, "why")
    in_order = sorted((unsure, passed, unchecked, failed), key=decisiveness)
    assert in_order == [failed, unchecked, passed, unsure]
    doubtful = Verdict("R", Outcome.INCONCLUSIVE, "why", doubtful=True)
    assert sorted((passed, doubtful, failed), key=decisiveness) == [failed, doubtful, passed]


def test_a_search_for_inputs_ends_with_the_command() -> None:
    schema = {"type": "object", "allOf": [{"required": ["a"]}], "properties": {"a": {}}}
    assert fitting_value(schema) is not ABSENT
    with cancellation.heeding(lambda: True):
        assert fitting_value(schema) is ABSENT
    assert fitting_value(schema) is not ABSENT


def test_a_large_schema_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each validator takes ten times what its schema does, and does not give it back."""
    compiled = []
    once = validation._compile

    def counted(schema: Any) -> Any:
        compiled.append(schema)
        return once(schema)

    monkeypatch.setattr(validation, "_compile", counted)
    large = {"type": "string", "enum": [f"choice {number}" for number in range(10_000)]}
    assert CompiledSchema(large).fits("choice 3")
    assert not CompiledSchema(dict(large)).fits("no choice")
    assert CompiledSchema({**large, "minLength": 9}).misfit("choice 3") is not None
    assert len(compiled) == 2


def test_what_a_misfit_was_held_against_goes_without_the_collector() -> None:
    """An enum may have 100,000 texts, and each error holds them."""
    choices = [f"choice {number}" for number in range(1_000)]
    schema = CompiledSchema({"enum": choices})
    gc.disable()
    try:
        for _ in range(3):
            assert schema.misfit("none of them")
        kept = [one for one in gc.get_objects() if isinstance(one, list) and one == choices]
    finally:
        gc.enable()
    assert len(kept) == 1


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"enum": [{"a": n, "b": {"c": n}} for n in range(30_000)]}, "too many parts"),
        ({"const": [f"part {n}" for n in range(300_000)]}, "too many parts"),
        ({"required": [letter * 400_000 for letter in "abcdefghijkl"]}, "4,800,0"),
    ],
    ids=["objects", "texts", "names"],
)
def test_a_schema_of_which_the_validator_takes_too_much_memory_is_refused(
    schema: Any, reason: str
) -> None:
    with pytest.raises(SchemaLimitError, match=reason):
        CompiledSchema(schema)


def test_a_large_schema_that_people_write_is_used() -> None:
    choices = {"enum": [f"choice {n}" for n in range(100_000)]}
    members = {f"m{n}": {"type": "string", "description": "One of many."} for n in range(5_000)}
    assert CompiledSchema({"properties": {"one": choices, **members}}).fits({"one": "choice 7"})


def test_of_a_value_with_very_many_parts_it_is_not_said_why_it_does_not_fit() -> None:
    wide = {f"member {number}": {"a": True} for number in range(20_000)}
    misfit = CompiledSchema({"type": "object", "maxProperties": 3}).misfit(wide)
    assert misfit is not None
    assert misfit.reason == "it does not match the schema; it has too many parts to say why"
