"""What is learned from a server's lists, and which of its tools may be called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcptest.core.capture import AnyRecord, Frame, Trouble
from mcptest.core.revision import Revision
from mcptest.probe.compliance.learning import (
    Lists,
    callable_tools,
    chosen_values,
    fixtures_of,
    learned_values,
    lists_on,
    unanswered_calls,
)
from mcptest.probe.compliance.site import Order
from mcptest.rules.corpus.probes import placeholders
from mcptest.transport.target import DEMO

ORDER = Order(target=DEMO)
READS = {"annotations": {"readOnlyHint": True}}


def tool(name: str, /, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def needing(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def values(tools: list[Any], order: Order = ORDER, **more: Any) -> dict[str, Any]:
    working = more.pop("working", frozenset(str(one.get("name")) for one in tools))
    return learned_values(order, Lists(tools=tuple(tools), **more), working)


def frames(*exchanges: tuple[str, Any, Any]) -> list[AnyRecord]:
    found: list[AnyRecord] = []
    for number, (method, params, result) in enumerate(exchanges):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        answer = {"jsonrpc": "2.0", "id": number, "result": result}
        found.append(Frame(sender="client", raw=json.dumps(request).encode()))
        found.append(Frame(sender="server", raw=json.dumps(answer).encode()))
    return found


# -- lists ---------------------------------------------------------------------------------------


def test_the_pages_of_a_list_are_put_together_and_lead_to_their_tools() -> None:
    lists = lists_on(
        frames(
            ("tools/list", {}, {"tools": [tool("a")], "nextCursor": "two"}),
            ("tools/list", {"cursor": "two"}, {"tools": [tool("b"), 7]}),
            ("prompts/list", {}, {"prompts": [{"name": "p"}]}),
        )
    )
    assert [one["name"] for one in lists.tools] == ["a", "b"]
    assert lists.page_cursor == "two"
    assert lists.page_of_tool == {"b": "two"}
    assert lists.prompts == ({"name": "p"},)


@pytest.mark.parametrize("result", [[], 7, None, {"tools": 7}, {"tools": {"a": 1}}, {}])
def test_a_list_that_is_none_gives_nothing(result: Any) -> None:
    assert lists_on(frames(("tools/list", {}, result))).tools == ()


# -- which tools may be called -------------------------------------------------------------------


def names(tools: list[Any], order: Order = ORDER) -> list[str]:
    lists = Lists(tools=tuple(tools))
    return [one.name for one in callable_tools(order, lists, fixtures_of(order, lists))]


def test_a_tool_that_gave_no_answer_is_known_with_what_came_of_its_stream() -> None:
    def call(number: int, name: str) -> Frame:
        params = {"name": name, "arguments": {}}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return Frame(sender="client", raw=json.dumps(request).encode(), stream=number)

    gone = Trouble(error="connection-lost", detail="the server closed the connection", stream=2)
    answer = Frame(sender="server", raw=b'{"jsonrpc":"2.0","id":1,"result":{}}', stream=1)
    noise = Frame(sender="server", raw=b'{"jsonrpc":"2.0","id":4,"result":', stream=4)
    records = [call(1, "answers"), call(2, "ends"), call(3, "silent"), call(4, "babbles")]
    found = unanswered_calls([*records, answer, gone, noise])
    assert found.pop("babbles").startswith("the response is not a valid message: ")
    assert found == {"ends": gone.detail, "silent": ""}


def test_a_tool_that_does_not_say_that_it_only_reads_is_not_called() -> None:
    tools = [
        tool("writes"),
        tool("claims", annotations={"readOnlyHint": "true"}),
        tool("no", annotations={"readOnlyHint": False}),
        tool("reads", **READS),
    ]
    assert names(tools) == ["reads"]


def test_a_tool_may_be_called_when_the_user_names_it() -> None:
    tools = [tool("a"), tool("b"), tool("c")]
    order = Order(target=DEMO, allow_tools=("a",), fixtures={"slow_tool": "b"})
    assert names(tools, order) == ["a", "b"]


def test_a_fixture_of_the_official_suite_is_used_for_its_purpose_alone() -> None:
    known = values([tool("test_error_handling")])
    assert known["erroring_tool"] == "test_error_handling"
    assert "safe_tool" not in known


def test_what_the_user_calls_a_fixture_wins() -> None:
    order = Order(target=DEMO, fixtures={"erroring_tool": "mine"})
    assert values([tool("test_error_handling")], order)["erroring_tool"] == "mine"


# -- values --------------------------------------------------------------------------------------


def test_a_name_that_nobody_gave_out_differs_from_all_that_are_listed() -> None:
    lists = Lists(tools=(tool("mcptest_no_such_tool"), tool("mcptest_no_such_toolx")))
    chosen = chosen_values(Revision.V2026_07_28, "server/discover", lists)
    assert chosen["unknown_tool"] == "mcptest_no_such_toolxx"


def test_everything_that_always_has_a_value_has_one() -> None:
    chosen = chosen_values(Revision.V2025_06_18, "ping", Lists())
    assert {name for name, one in placeholders().items() if not one.unlocked_by} == chosen.keys()


def test_arguments_of_a_wrong_type_are_refused_by_the_schema() -> None:
    schema = needing(city={"type": "string"}, days={"type": "integer"})
    known = values([tool("weather", inputSchema=schema, **READS)])
    assert known["tool_with_required_argument"] == "weather"
    wrong = known["wrongly_typed_arguments"]
    assert not isinstance(wrong["city"], str)
    assert not isinstance(wrong["days"], int)


def test_a_type_that_is_not_said_has_no_wrong_value() -> None:
    known = values([tool("any", inputSchema=needing(thing={}), **READS)])
    assert known["tool_with_required_argument"] == "any"
    assert "wrongly_typed_arguments" not in known


def test_only_a_tool_that_worked_shows_what_structured_content_is_like() -> None:
    structured = tool("a", outputSchema={"type": "object"}, **READS)
    assert values([structured])["structured_tool"] == "a"
    assert "structured_tool" not in values([structured], working=frozenset())


def test_a_tool_that_worked_is_preferred() -> None:
    tools = [tool("a", **READS), tool("b", **READS)]
    assert values(tools, working=frozenset({"b"}))["safe_tool"] == "b"


def test_a_tool_that_must_be_a_task_is_no_safe_tool() -> None:
    tools = [
        tool("only", execution={"taskSupport": "required"}, **READS),
        tool("maybe", execution={"taskSupport": "optional"}, **READS),
        tool("never", **READS),
    ]
    known = values(tools)
    assert known["safe_tool"] == known["tool_without_tasks"] == "never"
    assert (known["task_only_tool"], known["task_tool"]) == ("only", "maybe")


def test_an_argument_that_travels_as_a_header_is_found() -> None:
    schema = needing(
        city={"type": "string", "x-mcp-header": "City"},
        number={"type": "integer", "x-mcp-header": "Number"},
        more={"type": "string"},
    )
    known = values([tool("a", inputSchema=schema, **READS)])
    assert known["header_tool"] == "a"
    assert known["header_name"] == "Mcp-Param-Number"
    assert known["header_arguments"]["number"] == 42
    assert known["header_arguments_without_value"] == {"more": "more"}


def test_prompts_give_names_and_arguments() -> None:
    prompts = [
        {"name": "plain"},
        {"name": 7},
        {"name": "asks", "arguments": [{"name": "who", "required": True}, {"name": "how"}]},
    ]
    known = values([], prompts=prompts)
    assert (known["first_prompt"], known["first_prompt_arguments"]) == ("plain", {})
    assert known["prompt_with_required_argument"] == "asks"
    assert known["wrongly_typed_prompt_arguments"] == {"who": {"mcptest": 1}}
    assert known["completion_ref"] == {"type": "ref/prompt", "name": "asks"}
    assert known["completion_argument"] == {"name": "who", "value": ""}


def test_a_resource_that_can_t_be_read_is_not_the_first() -> None:
    order = Order(target=DEMO, fixtures={"failing_resource": "test://bad"})
    known = values([], order, resources=[{"uri": "test://bad"}, {"uri": "test://good"}])
    assert known["first_resource"] == "test://good"
    assert known["failing_resource"] == "test://bad"


@pytest.mark.parametrize("odd", [{}, {"name": 7}, {"name": "a"}, {"name": "a", "inputSchema": 7}])
def test_a_tool_that_is_none_is_left_out(odd: dict[str, Any]) -> None:
    assert "safe_tool" not in values([{**odd, **READS}])
