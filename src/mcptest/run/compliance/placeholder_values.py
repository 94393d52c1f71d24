"""The values of the placeholders in checks: what we choose, and what the server's lists give."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcptest import __version__
from mcptest.model.revision import Revision
from mcptest.run.compliance.listing import (
    Lists,
    UsableTool,
    callable_tools,
    fits,
    fixtures_of,
    listed,
    usable_tool,
)
from mcptest.run.compliance.order import Order
from mcptest.wire.param_headers import PARAM_PREFIX, annotation_problems, header_annotations

NO_REVISION = "1999-01-01"
_PROGRESS_TOOL = "test_tool_with_progress"


def chosen_values(revision: Revision, alive_method: str, lists: Lists) -> dict[str, Any]:
    """What we choose ourselves: always there."""
    tool = _unlike("mcptest_no_such_tool", (str(one.get("name")) for one in lists.tools))
    coded = base64.b64encode(tool.encode()).decode("ascii")
    return {
        "revision": revision.wire_version,
        "unsupported_version": NO_REVISION,
        "client_info": {"name": "mcptest", "version": __version__},
        "client_capabilities": {},
        "alive_method": alive_method,
        "unknown_tool": tool,
        "unknown_uri": _unlike(
            "mcptest:///no-such-resource", (str(one.get("uri")) for one in lists.resources)
        ),
        "unknown_prompt": _unlike(
            "mcptest_no_such_prompt", (str(one.get("name")) for one in lists.prompts)
        ),
        "unknown_task": "mcptest-no-such-task",
        "unknown_session": "mcptest-no-such-session",
        "invalid_cursor": "mcptest-no-such-cursor",
        "invalid_token": "mcptest-no-such-token",
        "foreign_origin": "https://mcptest.invalid",
        "encoded_unknown_tool": f"=?base64?{coded}?=",
    }


def _unlike(name: str, taken: Iterator[str]) -> str:
    names = set(taken)
    while name in names:
        name += "x"
    return name


def learned_values(
    order: Order, lists: Lists, working: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """What the server's lists give; a name that is missing here has no value.

    `working` names tools that were called and gave a result.
    """
    fixtures = fixtures_of(order, lists)
    tools = callable_tools(order, lists, fixtures)
    known: dict[str, Any] = {**dict(_of_tools(tools, working)), **_of_prompts(lists.prompts)}
    uris = [one["uri"] for one in lists.resources if isinstance(one.get("uri"), str)]
    failing = fixtures.get("failing_resource")
    readable = [uri for uri in uris if uri != failing]
    if readable:
        known["first_resource"] = readable[0]
    if lists.page_cursor is not None:
        known["page_cursor"] = lists.page_cursor
    if any(one.get("name") == _PROGRESS_TOOL for one in lists.tools):
        known["progress_tool"] = _PROGRESS_TOOL
    return {**known, **fixtures, **_of_header_tool(lists, fixtures, tools)}


def _of_tools(tools: Sequence[UsableTool], working: frozenset[str]) -> Iterator[tuple[str, Any]]:
    usable = [one for one in tools if one.task_support != "required"]
    usable.sort(key=lambda one: one.name not in working)
    plain = [one for one in usable if one.task_support == "forbidden"]
    for safe in [*plain, *usable][:1]:
        yield "safe_tool", safe.name
        yield "safe_arguments", safe.arguments
    for one in plain[:1]:
        yield "tool_without_tasks", one.name
    for one in [one for one in plain if one.name in working][:1]:
        yield "working_tool", one.name
        yield "working_arguments", one.arguments
    for one in [one for one in plain if not one.required][:1]:
        yield "tool_without_arguments", one.name
    yield from _of_tool_with_required_argument([one for one in usable if one.required])
    structured = [one for one in usable if isinstance(one.tool.get("outputSchema"), dict)]
    for one in [one for one in structured if one.name in working][:1]:
        yield "structured_tool", one.name
        yield "structured_arguments", one.arguments
    for one in [one for one in tools if one.task_support == "optional"][:1]:
        yield "task_tool", one.name
    for one in [one for one in tools if one.task_support == "required"][:1]:
        yield "task_only_tool", one.name


def _of_tool_with_required_argument(tools: Sequence[UsableTool]) -> Iterator[tuple[str, Any]]:
    """The two placeholders are used together: one tool for both, where there is one."""
    wrong = [(one, value) for one in tools if (value := _wrongly_typed(one)) is not None]
    for one in [*(tool for tool, _ in wrong), *tools][:1]:
        yield "tool_with_required_argument", one.name
        yield "right_arguments", one.arguments
    for _, value in wrong[:1]:
        yield "wrongly_typed_arguments", value


_WRONG: Sequence[Any] = ({"mcptest": "wrong"}, ["mcptest"], 7, "mcptest", True)


def _wrongly_typed(tool: UsableTool) -> dict[str, Any] | None:
    """The arguments with every required one of a type that the schema excludes."""
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict):
        return None
    arguments = dict(tool.arguments)
    for name in tool.required:
        schema = properties.get(name)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if not isinstance(kind, str):
            return None
        value = next((one for one in _WRONG if not fits({"type": kind}, one)), None)
        if value is None:
            return None
        arguments[name] = value
    return arguments if not fits(tool.schema, arguments) else None


def _of_header_tool(
    lists: Lists, fixtures: Mapping[str, str], tools: Sequence[UsableTool]
) -> dict[str, Any]:
    """A tool with an argument that travels as a header too."""
    wanted = fixtures.get("header_tool", "")
    named = [one for tool in lists.tools if (one := usable_tool(tool, {wanted})) is not None]
    for one in [*(one for one in named if one.name == wanted), *tools]:
        if wanted not in ("", one.name) or annotation_problems(one.schema):
            continue
        found = [each for each in header_annotations(one.schema) if each.path is not None]
        top = [each for each in found if len(each.path or ()) == 1]
        mirrored = [each for each in top if (each.path or ("",))[0] in one.arguments]
        if not mirrored:
            continue
        # An integer first: how its text is compared is a rule of its own.
        chosen = min(mirrored, key=lambda each: each.type != "integer")
        arguments = dict(one.arguments)
        name = (chosen.path or ("",))[0]
        if chosen.type == "integer" and fits(one.schema, {**arguments, name: 42}):
            arguments[name] = 42
        headed = {(each.path or ("",))[0] for each in top}
        return {
            "header_tool": one.name,
            "header_arguments": arguments,
            "header_arguments_without_value": {
                key: value for key, value in arguments.items() if key not in headed
            },
            "header_name": PARAM_PREFIX + chosen.header,
        }
    return {}


# -- prompts -------------------------------------------------------------------------------------


def _of_prompts(prompts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for prompt in prompts:
        name = prompt.get("name")
        if not isinstance(name, str):
            continue
        arguments = [
            one
            for one in listed(prompt.get("arguments"))
            if isinstance(one, dict) and isinstance(one.get("name"), str)
        ]
        required = [one["name"] for one in arguments if one.get("required") is True]
        if "first_prompt" not in known:
            known["first_prompt"] = name
            known["first_prompt_arguments"] = {one: one for one in required}
        if required and "prompt_with_required_argument" not in known:
            known["prompt_with_required_argument"] = name
            known["right_prompt_arguments"] = {one: one for one in required}
            known["wrongly_typed_prompt_arguments"] = {one: {"mcptest": 1} for one in required}
        if arguments and "completion_ref" not in known:
            known["completion_ref"] = {"type": "ref/prompt", "name": name}
            known["completion_argument"] = {"name": arguments[0]["name"], "value": ""}
    return known
