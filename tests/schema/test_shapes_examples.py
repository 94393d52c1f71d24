"""All official examples of 2026-07-28 have the shape that we say they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcptest.core.message import Kind
from mcptest.core.revision import Revision
from mcptest.schema.message_shapes import (
    AnyShape,
    ArrayOf,
    ByMember,
    MapOf,
    Obj,
    OneOrMany,
    Shape,
    Tagged,
    fit_of,
    message_table,
    shape_problems,
)
from tests.support.official_schema import FOLDER, RESULT_NAMES

NEWEST = Revision.V2026_07_28
TABLE = message_table()
EXAMPLES = sorted((FOLDER / NEWEST.value).glob("*/*.json"))
METHODS = {name: method for method, name in RESULT_NAMES.items()}
ASKED = {"CreateMessageRequest", "ElicitRequest", "ListRootsRequest"}
ANSWERED = {"CreateMessageResult", "ElicitResult", "ListRootsResult"}
WRONG_THEMSELVES = {
    "ReadResourceResultResponse-read-resource-result-response": [
        "/result/ttlMs",
        "/result/cacheScope",
    ]
}
"""Examples that pass the official schema only because any result passes as InputRequiredResult."""
NAMED_OTHERWISE: dict[str, Shape] = {
    "InputRequests": MapOf(TABLE.type("InputRequest")),
    "InputResponses": MapOf(TABLE.type("InputResponse")),
    "UntitledSingleSelectEnumSchema": TABLE.type("PrimitiveSchemaDefinition"),
    "UntitledMultiSelectEnumSchema": TABLE.type("PrimitiveSchemaDefinition"),
    "TitledMultiSelectEnumSchema": TABLE.type("PrimitiveSchemaDefinition"),
}
pytestmark = pytest.mark.skipif(
    not EXAMPLES, reason="the official examples are not beside the repository"
)


def inner_shapes(shape: Shape) -> list[Shape]:
    if isinstance(shape, Obj):
        return [field.shape for field in shape.fields if NEWEST in field.window]
    if isinstance(shape, ArrayOf | OneOrMany):
        return [shape.item]
    if isinstance(shape, MapOf):
        return [shape.value]
    if isinstance(shape, AnyShape):
        return [case.shape for case in shape.alternatives]
    if isinstance(shape, ByMember):
        return [*(case.shape for case in shape.cases), shape.otherwise]
    if isinstance(shape, Tagged):
        return [case.shape for case in shape.cases]
    return []


def named_shapes() -> dict[str, Shape]:
    """Every object with a name that is part of some message."""
    found: dict[str, Shape] = {}
    rest: list[Shape] = [shape for row in TABLE.requests for shape in (row.message, row.answer)]
    rest += [row.message for row in TABLE.notifications]
    while rest:
        shape = rest.pop()
        if isinstance(shape, Obj) and shape.name:
            found[shape.name] = shape
        rest.extend(inner_shapes(shape))
    return found


def problems_of(name: str, value: Any) -> list[Any]:
    """What is wrong with an example of the definition."""
    if name in ASKED:
        return fit_of(TABLE.type("InputRequest"), NEWEST)(value) or []
    if name.endswith("Notification"):
        return shape_problems(value, Kind.NOTIFICATION, "server", NEWEST) or []
    if name.endswith("Request"):
        return shape_problems(value, Kind.REQUEST, "client", NEWEST) or []
    if name.endswith("Error"):
        message = value if "error" in value else {"error": value}
        return shape_problems(message, Kind.ERROR, "server", NEWEST) or []
    result = METHODS.get(name.removesuffix("Response"))
    if result is not None and name not in ANSWERED:
        message = value if name.endswith("Response") else {"result": value}
        return shape_problems(message, Kind.RESULT, "server", NEWEST, result) or []
    shape = NAMED_OTHERWISE.get(name) or named_shapes()[name]
    return fit_of(shape, NEWEST)(value) or []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_official_example_has_the_right_shape(path: Path) -> None:
    found = problems_of(path.parent.name, json.loads(path.read_text()))
    known = WRONG_THEMSELVES.get(f"{path.parent.name}-{path.stem}", [])
    assert [one.pointer for one in found] == known


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_official_example_is_really_looked_at(path: Path) -> None:
    """Nothing would be wrong with what nobody looks at."""
    value = json.loads(path.read_text())
    assert problems_of(path.parent.name, wrong_throughout(value))


def wrong_throughout(value: dict[str, Any]) -> dict[str, Any]:
    """Every member but those that tell what it is becomes a value that no shape allows."""
    kept = {"method", "type", "jsonrpc", "id", "resultType", "code"}
    nonsense: list[Any] = [[[]]]
    if "error" in value:
        return {**value, "error": wrong_throughout(value["error"])}
    changed = {name: member if name in kept else nonsense for name, member in value.items()}
    return changed if nonsense in changed.values() else {**changed, "params": nonsense}


def test_there_are_as_many_examples_as_were_counted() -> None:
    assert len(EXAMPLES) == 129
