"""Templates: what is replaced, what is not, and what can be captured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcptest.suite.model import (
    Block,
    ClientCapabilities,
    CompletionArgument,
    CompletionBlock,
    CompletionReference,
    Expect,
    ListRequest,
    LoggingBlock,
    LoggingExpect,
    NotificationExpect,
    NotificationsBlock,
    PromptRequest,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    ServerSpec,
    SetupStep,
    ToolBlock,
    TrajectoryBlock,
)
from mcptest.suite.templates import (
    CaptureError,
    capture,
    captured_text,
    fill,
    fill_block,
    fill_declared,
    fill_json,
    fill_server,
    variables_of,
)

KNOWN = {"fixture": "/f", "id": "7"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{fixture}}/a", "/f/a"),
        ("{{id}}{{id}}", "77"),
        ("{{unknown}}", "{{unknown}}"),
        ("{{ id }}", "{{ id }}"),
        ("{{id", "{{id"),
        ("{id}", "{id}"),
        ("{{{id}}}", "{7}"),
        ("nothing", "nothing"),
    ],
)
def test_known_names_are_replaced(text: str, filled: str) -> None:
    assert fill(text, KNOWN) == filled


def test_what_was_captured_is_data_and_not_a_template() -> None:
    assert fill("{{a}} {{b}}", {"a": "{{b}}", "b": "x"}) == "{{b}} x"


def test_the_fixture_wins_over_a_capture_of_that_name() -> None:
    assert fill("{{fixture}}", variables_of("/f", {"fixture": "x"})) == "/f"
    assert fill("{{fixture}}", variables_of(None, {"fixture": "x"})) == "x"
    assert variables_of("", {}) == {}


def test_arguments_are_filled_at_any_depth_but_not_in_their_keys() -> None:
    args = {"{{id}}": ["{{id}}", {"a": "{{fixture}}"}], "n": 1, "z": None, "b": True}

    assert fill_json(args, KNOWN) == {
        "{{id}}": ["7", {"a": "/f"}], "n": 1, "z": None, "b": True,
    }  # fmt: skip


def test_members_of_arguments_are_sorted_by_name_at_any_depth() -> None:
    args = {"z": 1, "a": [{"d": 1, "c": {"2": 0, "10": 0}}], "B": 1}
    filled = fill_json(args, {})
    assert json.dumps(filled) == '{"B": 1, "a": [{"c": {"10": 0, "2": 0}, "d": 1}], "z": 1}'


def test_a_value_is_inserted_as_text_even_when_it_is_all_there_is() -> None:
    assert fill_json({"n": "{{id}}"}, KNOWN) == {"n": "7"}


def test_a_setup_step_keeps_what_it_captures_as_written() -> None:
    step = SetupStep("t", {"a": "{{id}}"}, {"x": "$.{{id}}"})

    assert fill_declared(step, KNOWN) == SetupStep("t", {"a": "7"}, {"x": "$.{{id}}"})


def test_the_paths_of_expectations_are_filled_and_nothing_else_of_them() -> None:
    expect = Expect(
        contains=("{{id}}",),
        file_contains={"{{fixture}}/a": "{{id}}"},
        file_not_contains={"{{fixture}}/b": "{{id}}"},
        file_not_exists=("{{fixture}}/c",),
        file_unchanged=("{{fixture}}/d",),
    )

    assert fill_declared(expect, KNOWN) == Expect(
        contains=("{{id}}",),
        file_contains={"/f/a": "{{id}}"},
        file_not_contains={"/f/b": "{{id}}"},
        file_not_exists=("/f/c",),
        file_unchanged=("/f/d",),
    )


def _blocks(x: str) -> list[Block]:
    expect = Expect(file_unchanged=(x,))
    return [
        ToolBlock("t", {"a": x}, expect=expect),
        SamplingBlock("t", {"a": x}, expect=expect),
        LoggingBlock("debug", "t", {"a": x}, LoggingExpect()),
        NotificationsBlock("t", {"a": x}, NotificationExpect()),
        ResourcesBlock(ListRequest(x), ListRequest(x), x, x, x, expect=expect),
        PromptsBlock(ListRequest(x), PromptRequest(x, {"a": x}), expect),
        CompletionBlock(CompletionReference("ref/prompt", x), CompletionArgument(x, x), expect),
        TrajectoryBlock((), audit_log=x),
    ]


@pytest.mark.parametrize(
    ("block", "filled"), list(zip(_blocks("{{id}}"), _blocks("7"), strict=True))
)
def test_every_block_is_filled_wherever_a_template_may_stand(block: Block, filled: Block) -> None:
    assert fill_block(block, KNOWN) == filled


def test_a_server_is_filled_where_it_is_started_and_not_where_it_is_reached() -> None:
    server = ServerSpec(
        command="{{id}}",
        args=("{{id}}",),
        env={"A": "{{id}}"},
        cwd="{{id}}",
        url="{{id}}",
        client_capabilities=ClientCapabilities(roots=("{{id}}",)),
    )

    assert fill_server(server, KNOWN) == ServerSpec(
        command="{{id}}",
        args=("7",),
        env={"A": "7"},
        cwd="7",
        url="{{id}}",
        client_capabilities=ClientCapabilities(roots=("7",)),
    )


@pytest.mark.parametrize("path", ["", "$", "$."])
def test_the_whole_answer_can_be_captured_json_or_not(path: str) -> None:
    assert captured_text("not json", path) == "not json"


@pytest.mark.parametrize(
    ("answer", "path", "text"),
    [
        ('{"a":"x"}', "$.a", "x"),
        ('{"a":"x"}', "a", "x"),
        ('{"a":{"b":[1,2]}}', "$.a.b[1]", "2"),
        ('{"n":12345678901}', "$.n", "12345678901"),
        ('{"n":3.0}', "$.n", "3"),
        ('{"n":1e-9}', "$.n", "1e-09"),
        ('{"n":1e21}', "$.n", "1e+21"),
        ('{"n":1.5}', "$.n", "1.5"),
        ('{"n":true}', "$.n", "true"),
        ('{"n":null}', "$.n", "null"),
        ('{"n":{"b":1,"a":["<x>"]}}', "$.n", '{"a":["<x>"],"b":1}'),
    ],
)
def test_a_captured_value_becomes_text(answer: str, path: str, text: str) -> None:
    assert captured_text(answer, path) == text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("hello", 'capture "v" from "$.a" failed: the response is not JSON: '),
        ("{}", 'capture "v" from "$.a" failed: field "a" not found'),
        ("[1]", 'capture "v" from "$.a" failed: '),
    ],
)
def test_a_capture_that_finds_nothing_says_why(answer: str, reason: str) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(SetupStep("t", capture={"v": "$.a"}), answer)

    assert str(caught.value).startswith(reason)


def test_a_step_captures_all_that_it_names() -> None:
    step = SetupStep("t", capture={"a": "$.a", "all": "$"})
    found: Any = capture(step, '{"a":1}')

    assert found == {"a": "1", "all": '{"a":1}'}
