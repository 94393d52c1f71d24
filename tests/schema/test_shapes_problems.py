"""What is said about a message of the wrong shape, and that hostile ones cost little."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcptest.core.message import Kind
from mcptest.core.revision import Revision, Window
from mcptest.schema import message_shapes
from mcptest.schema.message_shapes import (
    MOST_PROBLEMS,
    Obj,
    Plain,
    ShapeField,
    ShapeProblem,
    fit_of,
    read_tables,
    shape_problems,
)

A, B, C, D, E, DRAFT = Revision


def problems_of(*said: Any) -> list[ShapeProblem]:
    return shape_problems(*said) or []


def of_result(method: str, result: Any, revision: Revision = D) -> list[tuple[str, str, str]]:
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    found = problems_of(message, Kind.RESULT, "server", revision, method)
    return [(one.pointer, one.expected, one.actual) for one in found]


def pointers(method: str, result: Any, revision: Revision = D) -> list[str]:
    return [pointer for pointer, _, _ in of_result(method, result, revision)]


def of_params(
    method: str, params: Any, revision: Revision = D, sender: str = "client"
) -> list[tuple[str, str, str]]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    found = problems_of(message, Kind.REQUEST, sender, revision)
    return [(one.pointer, one.expected, one.actual) for one in found]


# -- what is said --------------------------------------------------------------------------


def test_a_missing_member_is_named_where_it_should_be() -> None:
    assert of_result("tools/list", {"tools": [{"name": "a"}]}) == [
        ("/result/tools/0/inputSchema", "an object", "absent")
    ]


def test_a_wrong_type_is_told_with_the_value() -> None:
    assert of_params("tools/call", {"name": 5, "arguments": []}) == [
        ("/params/name", "a string", "number 5"),
        ("/params/arguments", "an object", "array"),
    ]


def test_null_is_not_the_same_as_leaving_out() -> None:
    assert of_result("tools/list", {"tools": [], "nextCursor": None}) == [
        ("/result/nextCursor", "a string", "null")
    ]


def test_keys_with_slashes_and_tildes_are_escaped_in_pointers() -> None:
    params = {"name": "p", "arguments": {"a/b~c": 1}}
    assert of_params("prompts/get", params) == [
        ("/params/arguments/a~1b~0c", "a string", "number 1")
    ]


def test_words_and_bounds_are_spelled_out() -> None:
    block = {"type": "text", "text": "t", "annotations": {"priority": 2, "audience": ["me"]}}
    assert of_result("tools/call", {"content": [block]}) == [
        ("/result/content/0/annotations/audience/0", '"user" or "assistant"', "string 'me'"),
        ("/result/content/0/annotations/priority", "a number from 0 to 1", "number 2"),
    ]


def test_an_unknown_tag_names_those_of_the_revision() -> None:
    [(pointer, expected, actual)] = of_result("tools/call", {"content": [{"type": "audio"}]}, A)
    assert (pointer, actual) == ("/result/content/0/type", "string 'audio'")
    assert expected == '"text", "image" or "resource"'


def test_of_two_alternatives_the_one_that_was_meant_is_explained() -> None:
    assert of_result("resources/read", {"contents": [{"uri": "a:b", "blob": 5}]}) == [
        ("/result/contents/0/blob", "a string", "number 5")
    ]


def test_text_of_the_peer_is_cut_and_made_safe() -> None:
    [(_, _, actual)] = of_params("resources/read", {"uri": 10**400})
    assert actual == "number of 1329 bits"
    [(_, _, actual)] = of_params("logging/setLevel", {"level": "\x1b[31m" + "x" * 10_000})
    assert len(actual) < 100
    assert "\x1b" not in actual


def test_the_example_of_the_documentation_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "compliance" / "message-shapes.md"
    [example] = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(example, {})


# -- revisions -----------------------------------------------------------------------------


def test_a_member_means_nothing_before_its_revision() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": 5, "annotations": 5}
    listed = {"tools": [tool]}
    assert pointers("tools/list", listed, A) == []
    assert pointers("tools/list", listed, B) == ["/result/tools/0/annotations"]
    assert set(pointers("tools/list", listed, C)) == {
        "/result/tools/0/annotations",
        "/result/tools/0/outputSchema",
    }


def test_a_member_of_one_revision_is_free_again_afterwards() -> None:
    params = {"name": "t", "task": 5}
    assert of_params("tools/call", params, C) == []
    assert of_params("tools/call", params, D) == [("/params/task", "an object", "number 5")]
    assert "/params/task" not in [pointer for pointer, _, _ in of_params("tools/call", params, E)]


def test_structured_content_was_an_object_and_became_anything() -> None:
    result = {"content": [], "structuredContent": [1], "resultType": "complete"}
    assert pointers("tools/call", result, B) == []
    assert pointers("tools/call", result, C) == ["/result/structuredContent"]
    assert pointers("tools/call", result, D) == ["/result/structuredContent"]
    assert pointers("tools/call", result, E) == []


def test_a_cancellation_may_leave_out_the_id_in_one_revision_only() -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
    for revision in (A, B, C, E):
        [problem] = problems_of(message, Kind.NOTIFICATION, "client", revision)
        assert problem.pointer == "/params/requestId"
        assert (problem.expected, problem.actual) == ("a string or an integer", "absent")
    assert problems_of(message, Kind.NOTIFICATION, "client", D) == []


def test_the_draft_has_the_shapes_of_the_newest_revision() -> None:
    result = {"tools": []}
    assert of_result("tools/list", result, DRAFT) == of_result("tools/list", result, E) != []


def test_completions_are_bounded_by_shape_only_in_the_newest() -> None:
    result = {"resultType": "complete", "completion": {"values": ["v"] * 101}}
    assert pointers("completion/complete", result, D) == []
    assert of_result("completion/complete", result, E) == [
        ("/result/completion/values", "at most 100 items", "number 101")
    ]


# -- what a message is ---------------------------------------------------------------------


def test_the_result_type_decides_what_a_result_is() -> None:
    assert pointers("tools/call", {"resultType": "complete"}, E) == ["/result/content"]
    asked = {"resultType": "input_required", "inputRequests": {"q": {"method": "tools/list"}}}
    [(pointer, expected, _)] = of_result("tools/call", asked, E)
    assert pointer == "/result/inputRequests/q/method"
    assert "roots/list" in expected
    assert pointers("tools/call", {"resultType": "task", "taskId": 1}, E) == []
    assert set(pointers("tools/call", {"resultType": 5}, E)) == {
        "/result/resultType",
        "/result/content",
    }


def test_a_task_may_stand_for_a_result() -> None:
    assert pointers("tools/call", {"task": {}}, C) == ["/result/content"]
    missing = pointers("tools/call", {"task": {}}, D)
    assert "/result/task/taskId" in missing
    assert "/result/content" not in missing


def test_an_error_is_judged_by_its_code() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "m", "data": {}}}
    found = [one.pointer for one in problems_of(message, Kind.ERROR, "server", E)]
    assert found == ["/error/data/supported", "/error/data/requested"]
    assert problems_of(message, Kind.ERROR, "server", D) == []


@pytest.mark.parametrize(
    ("kind", "sender", "method"),
    [
        (Kind.REQUEST, "server", "tools/call"),
        (Kind.REQUEST, "client", "no/such/method"),
        (Kind.NOTIFICATION, "server", "notifications/initialized"),
        (Kind.RESULT, "client", "tools/call"),
        (Kind.INVALID, "client", "tools/call"),
        (Kind.BATCH, "client", "tools/call"),
    ],
)
def test_what_the_sender_does_not_have_has_no_shape(kind: Kind, sender: str, method: str) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": 5, "result": 5}
    assert problems_of(message, kind, sender, D, method) == []


# -- hostile messages ----------------------------------------------------------------------


@pytest.mark.parametrize("payload", [None, True, 5, 1.5, "x", [], [[]], {"a": {}}])
@pytest.mark.parametrize("revision", Revision, ids=str)
def test_any_payload_gets_an_answer(payload: Any, revision: Revision) -> None:
    for kind in Kind:
        for sender in ("client", "server"):
            for method in (payload, "initialize", "tools/call", "notifications/progress"):
                message = {"method": method, "params": payload, "result": payload, "error": payload}
                asked = method if isinstance(method, str) else None
                assert isinstance(problems_of(message, kind, sender, revision, asked), list)
                assert isinstance(problems_of(payload, kind, sender, revision, asked), list)


def test_what_is_found_is_bounded() -> None:
    wrong = {"tools": [{}] * 100_000}
    assert len(of_result("tools/list", wrong)) <= MOST_PROBLEMS
    wide = {"name": "p", "arguments": {str(number): 1 for number in range(100_000)}}
    assert len(of_params("prompts/get", wide)) <= MOST_PROBLEMS


def test_depth_costs_nothing_where_any_value_is_allowed() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert of_params("tools/call", {"name": "t", "arguments": deep}) == []
    assert of_params("tools/call", {"name": "t", "arguments": [deep]}) == [
        ("/params/arguments", "an object", "array")
    ]
    while deep:  # taken apart from the outside, or freeing it recurses
        deep = deep.pop("a")


# -- the table -----------------------------------------------------------------------------


def test_the_table_is_the_yaml_that_it_looks_like() -> None:
    path = Path(message_shapes.__file__).with_name("messages.yml")
    whole = msgspec.yaml.decode(path.read_bytes())
    assert read_tables(path.read_text()) == as_texts(whole)


def as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): as_texts(one) for key, one in value.items()}
    return "" if value is None else str(value)


# -- the vocabulary ------------------------------------------------------------------------


def test_a_table_with_a_member_twice_in_one_revision_is_refused() -> None:
    again = ShapeField("a", Plain.STRING, required=False, window=Window(since=C))
    shape = Obj("Thing", (ShapeField("a", Plain.STRING), again))
    assert fit_of(shape, A)({"a": "x"}) is None
    with pytest.raises(ValueError, match="Thing has a member twice in 2025-06-18"):
        fit_of(shape, C)
