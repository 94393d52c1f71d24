"""The JSON Schema for editors says yes exactly where the loader does."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcptest.suite import model as d
from mcptest.suite.editor_schema import ALL, suite_json_schema
from mcptest.suite.fields import (
    Choice,
    Declaration,
    Duration,
    Expectations,
    Field,
    Flag,
    JsonSchema,
    JsonTable,
    LaneBlock,
    ListOf,
    MatcherField,
    ObjectOf,
    Reserved,
    Texts,
    TextTable,
    Whole,
)
from mcptest.suite.load import Given
from mcptest.suite.reading import render
from tests.support.suites import load_text

SCHEMA = suite_json_schema()
VALID = jsonschema_rs.Draft202012Validator(SCHEMA).is_valid
PROVIDED = Given(fixture=True, server=True)

TEXTS = st.sampled_from(["a", "b c", "text", 7, True])
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "target": st.sampled_from(["text", "is_error", "$.a"]),
    "spec_version": st.sampled_from(["auto", "2025-06-18", "draft"]),
    "server": st.sampled_from([{"command": "s"}, {"url": "http://h/mcp"}, {}, None]),
    "elicitation": st.sampled_from([{}, {"a": 1}, {"action": "cancel"}, None]),
    "schema": st.sampled_from([True, {"type": "string"}]),
}
MATCHERS = st.sampled_from(
    [{"exact": 1}, {"contains": "x"}, {"regex": "a+"}, {"exists": True}, {"min_length": 1}]
)
JUNK: list[Any] = [
    None, "", "x", 0, 5, -1, 1.5, 2.0, True, False, [], {}, [None], [""], ["x"], [{}], {"a": None},
    {"a": "x"}, [[]],
]  # fmt: skip
BLOCK_NAMES = frozenset(d.BLOCKS) | {"trace", "audit_log"}


def values(field: Field) -> st.SearchStrategy[Any]:
    kind = field.kind
    if field.name in BY_NAME:
        return BY_NAME[field.name]
    if isinstance(kind, ObjectOf):
        whole = objects(kind.declaration)
        return st.one_of(whole, st.just("ping")) if kind.short_for else whole
    if isinstance(kind, LaneBlock):
        whole = objects(kind.declaration)
        listed = kind.declaration.by_name.get(kind.list_of)
        return whole if listed is None else st.one_of(whole, values(listed))
    if isinstance(kind, ListOf):
        return st.lists(objects(kind.declaration), min_size=1, max_size=2)
    if isinstance(kind, Expectations):
        return st.one_of(
            objects(kind.declaration), st.lists(objects(kind.row), min_size=1, max_size=2)
        )
    simple: dict[type, st.SearchStrategy[Any]] = {
        Flag: st.booleans(),
        Whole: st.integers(0, 3),
        Duration: st.sampled_from(["1s", "1m30s", 2, 0.5]),
        Texts: st.lists(TEXTS, max_size=2),
        TextTable: st.dictionaries(st.sampled_from("ab"), TEXTS, max_size=2),
        JsonTable: st.dictionaries(st.sampled_from("ab"), st.sampled_from(JUNK), max_size=2),
        JsonSchema: st.just({"type": "string"}),
        MatcherField: MATCHERS,
        Reserved: st.none(),
    }
    if isinstance(kind, Choice):
        return st.sampled_from(kind.values)
    return simple.get(type(kind), TEXTS)


@st.composite
def objects(draw: st.DrawFn, declaration: Declaration) -> dict[str, Any]:
    optional = [f for f in declaration.fields if not f.required and f.name not in BLOCK_NAMES]
    reserved = [f for f in optional if isinstance(f.kind, Reserved)]
    usual = [f for f in optional if f not in reserved]
    chosen = [f for f in declaration.fields if f.required]
    if usual:
        chosen += draw(st.lists(st.sampled_from(usual), max_size=3, unique_by=lambda f: f.name))
    if declaration in {d.SINGLE, d.TEST}:
        chosen += [declaration.by_name[name] for name in draw(st.sampled_from(_block_choices()))]
    return {field.name: draw(values(field)) for field in chosen}


def _block_choices() -> list[tuple[str, ...]]:
    sound = [(name,) for name in d.BLOCKS if name != "trajectory"]
    odd = [("trajectory",), (), ("assert", "assert_prompts"), ("assert", "trace")]
    return [*sound * 2, ("trajectory", "trace"), ("trajectory", "audit_log"), *odd]


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(node, dict | list):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found += places(value, (*path, key))
    return found


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document = draw(st.one_of(objects(d.SINGLE), objects(d.SUITE)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        document = copy.deepcopy(document)
        spots = places(document)
        if spots:
            *way, last = draw(st.sampled_from(spots))
            parent: Any = document
            for key in way:
                parent = parent[key]
            if draw(st.booleans()) and isinstance(parent, dict):
                parent[f"{last}x"] = parent.pop(last)
            else:
                parent[last] = draw(st.sampled_from(JUNK))
    return document


# What the loader knows and a schema can't say.
BEYOND_A_SCHEMA = (
    "which is more than",
    "contradicts",
    "min_progress works only",
    "unknown target",
    "unknown spec version",
    "is not a JSON Schema",
    "the action of elicitation",
    "the content of elicitation",
    "a command and a url",
    "needs a url",
    "needs a server with a command",
    "json_path:",
    "capture ",
    "can't be named",
    "is not a valid variable name",
    "unknown compliance spec_version",
    "check has ",
    "has no effect for ",
    "omit: ",
    "can't use a probe",
    "no server to judge",
)


@given(documents())
def test_the_schema_and_the_loader_agree(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False)
    _, source = load_text(text.encode(), "suite.yaml", PROVIDED)
    problems = [p for p in source.problems if p.severity == "error"]
    assume(not any(words in p.message for p in problems for words in BEYOND_A_SCHEMA))

    said = "\n".join(map(render, problems))
    assert VALID(document) == (not problems), f"{text}\n{said}"


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


def test_every_field_is_described() -> None:
    for definition in SCHEMA["$defs"].values():
        assert definition["description"]
        assert all(field["description"] for field in definition["properties"].values())


def test_every_object_is_declared_once_and_shown() -> None:
    names = [declaration.name for declaration in ALL]

    assert len(set(names)) == len(names)
    assert {name.replace(" ", "-") for name in names} == set(SCHEMA["$defs"])


@pytest.mark.parametrize(
    ("length", "valid"),
    [
        ("30s", True), ("1m30s", True), ("500ms", True), ("1.5h", True), (".5s", True), (3, True),
        (0.25, True), ("3", True), ("3 s", False), ("s", False), ("-3s", False), (0, False),
        (-1, False), ("3s4", False), (True, False), ([], False),
    ],
)  # fmt: skip
def test_they_agree_on_lengths_of_time(length: Any, valid: bool) -> None:
    document = {
        "server": {"command": "s"},
        "timeout": length,
        "assert": {"tool": "t", "expect": {"not_error": True}},
    }
    _, source = load_text(json.dumps(document).encode(), "suite.yaml")

    assert VALID(document) is valid
    assert (not source.problems) is valid


SUBSCRIBED = {"subscribe": "x://y", "read": "x://y"}
CALLED = {"tool": "t", "expect": {"not_error": True}}


@pytest.mark.parametrize(
    ("document", "accepted"),
    [
        ({"x-common": {"any": [1]}, "assert": CALLED}, True),
        ({"x-common": 1, "tests": [{"name": "t", "assert": CALLED}]}, True),
        ({"x_common": 1, "assert": CALLED}, False),
        ({"tests": [{"name": "t", "x-mine": 1, "assert": CALLED}]}, False),
        ({"assert": {**CALLED, "x-mine": 1}}, False),
        ({"assert_resources": {**SUBSCRIBED, "expect_notification": True, "expect": {}}}, True),
        ({"assert_resources": {**SUBSCRIBED, "expect_notification": True}}, True),
        ({"assert_resources": {**SUBSCRIBED, "expect_notification": False, "expect": {}}}, False),
        ({"assert_resources": {**SUBSCRIBED, "expect": {}}}, False),
        (
            {
                "assert_resources": {
                    **SUBSCRIBED,
                    "expect_notification": True,
                    "expect": {"contains": []},
                }
            },
            False,
        ),
    ],
)
def test_they_agree_on_keys_of_others_and_on_what_asks_for_enough(
    document: dict[str, Any], accepted: bool
) -> None:
    _, source = load_text(json.dumps(document).encode(), "suite.yaml", PROVIDED)
    assert (not source.errors) is accepted
    assert VALID(document) is accepted
