"""The forms of 2025-11-25: defaults for every primitive type, and five ways to offer a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcptest.clients.scenario import Row
from mcptest.model.show import show
from mcptest.run.conformance.scenarios.judges import found, sep
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    ONLY_2025_11_25,
    Judge,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

_DEFAULTS: dict[str, tuple[str, str, Any, str]] = {
    "string": ("name", "string", "John Doe", "StringDefault"),
    "integer": ("age", "integer", 30, "IntegerDefault"),
    "number": ("score", "number", 95.5, "NumberDefault"),
    "enum": ("status", "string", "active", "EnumDefault"),
    "boolean": ("verified", "boolean", True, "BooleanDefault"),
}


def _fields(scene: Scene) -> tuple[Obj, str]:
    """The fields of the form that was asked for, or why there are none."""
    heard = scene["called"]
    for one in heard.exchange.asked:
        if one.get("method") == "elicitation/create":
            params = one.get("params")
            schema = params.get("requestedSchema") if isinstance(params, dict) else None
            fields = schema.get("properties") if isinstance(schema, dict) else None
            return (fields, "") if isinstance(fields, dict) else ({}, "the form has no fields")
    return {}, heard.without_result or "the server did not send elicitation/create"


def _judge(field: str, problems: Callable[[Obj], Iterator[str]]) -> Judge:
    def judge(scene: Scene) -> Iterator[Row]:
        fields, why = _fields(scene)
        schema = fields.get(field)
        if why or not isinstance(schema, dict):
            yield found([why or f"the form has no field {field}"], scene["called"])
        else:
            yield found((f"{field}: {one}" for one in problems(schema)), scene["called"])

    return judge


def _default_problems(kind: str, wanted: Any, is_choice: bool) -> Callable[[Obj], Iterator[str]]:
    def problems(schema: Obj) -> Iterator[str]:
        yield from _type_problems(schema, kind)
        choices = schema.get("enum")
        if is_choice and not isinstance(choices, list):
            yield "enum is no array"
        if "default" not in schema:
            yield "there is no default"
            return
        given = schema["default"]
        # In JSON 1 is no true; in Python they are equal.
        if isinstance(given, bool) is not isinstance(wanted, bool) or given != wanted:
            yield f"default is {show(repr(given), 60)}, not {wanted!r}"
        if isinstance(choices, list) and given not in choices:
            yield "the default is none of the choices"

    return problems


def _type_problems(schema: Obj, kind: str) -> Iterator[str]:
    if schema.get("type") != kind:
        yield f"type is {show(repr(schema.get('type')), 60)}, not {kind!r}"


def _has_titles(options: Any) -> bool:
    return isinstance(options, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("const"), str)
        and isinstance(one.get("title"), str)
        for one in options
    )


def _untitled_single(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "string")
    if not isinstance(schema.get("enum"), list):
        yield "enum is no array"
    yield from (f"it has {one} too" for one in ("oneOf", "enumNames") if schema.get(one))


def _titled_single(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "string")
    if not _has_titles(schema.get("oneOf")):
        yield "oneOf is no array of const and title"
    if schema.get("enum"):
        yield "it has enum too"


def _legacy(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "string")
    values, names = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        yield "enum is no array"
    if not isinstance(names, list):
        yield "enumNames is no array"
    elif isinstance(values, list) and len(names) != len(values):
        yield f"there are {len(values)} values and {len(names)} names"


def _untitled_multi(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "array")
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is no object"
        return
    yield from (f"items: {one}" for one in _type_problems(items, "string"))
    if not isinstance(items.get("enum"), list):
        yield "items.enum is no array"
    if items.get("anyOf"):
        yield "items has anyOf too"


def _titled_multi(schema: Obj) -> Iterator[str]:
    yield from _type_problems(schema, "array")
    items = schema.get("items")
    if not isinstance(items, dict):
        yield "items is no object"
        return
    if not _has_titles(items.get("anyOf")):
        yield "items.anyOf is no array of const and title"
    if items.get("enum"):
        yield "items has enum too"


_CHOICES = {
    "untitled-single": ("untitledSingle", "UntitledSingle", _untitled_single, "enum"),
    "titled-single": ("titledSingle", "TitledSingle", _titled_single, "oneOf"),
    "legacy-enumnames": ("legacyEnum", "LegacyEnumNames", _legacy, "enum and enumNames"),
    "untitled-multi": ("untitledMulti", "UntitledMulti", _untitled_multi, "items.enum"),
    "titled-multi": ("titledMulti", "TitledMulti", _titled_multi, "items.anyOf"),
}


def _call(tool: str) -> Callable[[Stage], None]:
    def script(stage: Stage) -> None:
        stage.call("called", tool, {})

    return script


SCENARIOS = (
    ServerScenario(
        name="elicitation-sep1034-defaults",
        title="A form has defaults",
        description="The fixture `test_elicitation_sep1034_defaults` asks for a form with five "
        "fields, each with a default: `name` (John Doe), `age` (30), `score` (95.5), `status` "
        "(active, one of active, inactive, pending) and `verified` (true).",
        revisions=ONLY_2025_11_25,
        suites=ACTIVE,
        script=_call("test_elicitation_sep1034_defaults"),
        needs=Needs(capabilities=("tools",), tools=("test_elicitation_sep1034_defaults",)),
        checks=tuple(
            ServerCheck(
                id=f"elicitation-sep1034-{what}-default",
                name=f"ElicitationSEP1034{name}",
                description=f"the {what} field of the form has its default",
                judge=_judge(field, _default_problems(kind, wanted, what == "enum")),
                references=sep(1034),
            )
            for what, (field, kind, wanted, name) in _DEFAULTS.items()
        ),
    ),
    ServerScenario(
        name="elicitation-sep1330-enums",
        title="A form offers choices",
        description="The fixture `test_elicitation_sep1330_enums` asks for a form with five "
        "choices: `untitledSingle`, `titledSingle`, `legacyEnum`, `untitledMulti` and "
        "`titledMulti`, each written in its own way.",
        revisions=ONLY_2025_11_25,
        suites=ACTIVE,
        script=_call("test_elicitation_sep1330_enums"),
        needs=Needs(capabilities=("tools",), tools=("test_elicitation_sep1330_enums",)),
        checks=tuple(
            ServerCheck(
                id=f"elicitation-sep1330-{what}",
                name=f"ElicitationSEP1330{name}",
                description=f"the field {field} is written with {how}",
                judge=_judge(field, problems),
                references=sep(1330),
            )
            for what, (field, name, problems, how) in _CHOICES.items()
        ),
    ),
)
