"""What a server lists, and which of its tools may be called.

A tool is callable only if it says that it only reads, or if the user or the official suite's
names say so. Nothing else is ever called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mcptest.explore.plausible import plausible_arguments
from mcptest.model.capture import AnyRecord, Frame
from mcptest.model.message import Kind, id_key
from mcptest.peer.pagination import LIST_MEMBERS, Listed, distinct, list_items
from mcptest.peer.tool_safety import may_call
from mcptest.rules.corpus.placeholders import WELL_KNOWN
from mcptest.run.compliance.asked import Asked
from mcptest.run.compliance.order import Order
from mcptest.schema.json_schema import CompiledSchema, SchemaError
from mcptest.suite.check_forms import Check
from mcptest.wire.envelope import decode


class Lists(msgspec.Struct):
    """Everything that the server listed, as it came, objects only."""

    tools: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    page_cursor: str | None = None
    """What leads to the second page of tools."""
    page_of_tool: dict[str, str] = {}
    """The cursor of its page, for tools that are not on the first."""


def list_through(ask: Callable[[Check], Asked], method: str, seconds: float) -> Listed:
    """What all pages of a list name, asked in a conversation."""
    return list_items(
        method,
        LIST_MEMBERS[method],
        lambda params: ask(Check(method=method, params=params)),
        lambda asked: asked.exchange.result,
        seconds=seconds,
    )


def lists_on(records: Sequence[AnyRecord]) -> Lists:
    """What the answers to list requests hold."""
    found = Lists()
    members = {
        "tools/list": found.tools,
        "prompts/list": found.prompts,
        "resources/list": found.resources,
        "resources/templates/list": found.templates,
    }
    for method, params, result in _answered(records):
        items = result.get(LIST_MEMBERS[method])
        members[method].extend(one for one in listed(items) if isinstance(one, dict))
        if method == "tools/list":
            _note_page(found, params.get("cursor"), result)
    for items in members.values():
        items[:] = distinct(items)  # pages may be asked for again
    return found


def _note_page(found: Lists, cursor: Any, result: Mapping[str, Any]) -> None:
    following = result.get("nextCursor")
    if isinstance(cursor, str):
        names = (one.get("name") for one in listed(result.get("tools")) if isinstance(one, dict))
        found.page_of_tool.update((str(name), cursor) for name in names)
    elif isinstance(following, str):
        found.page_cursor = following


def listed(items: Any) -> list[Any]:
    return items if isinstance(items, list) else []


def _answered(
    records: Sequence[AnyRecord],
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Method, params and result of every list request that was answered with an object."""
    asked: dict[Any, tuple[str, Mapping[str, Any]]] = {}
    for record in records:
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "client" and message.method in LIST_MEMBERS:
            asked[id_key(message.id)] = (message.method, message.params)
        elif record.sender == "server" and message.kind is Kind.RESULT:
            request = asked.pop(id_key(message.id), None)
            if request is not None and isinstance(message.result, dict):
                yield (*request, message.result)


def unanswered_calls(records: Sequence[AnyRecord]) -> set[str]:
    """The tools that were called and gave no answer."""
    called: dict[Any, str] = {}
    for record in records:
        if not isinstance(record, Frame):
            continue
        message = decode(record.raw)
        if record.sender == "client" and message.method == "tools/call":
            called[id_key(message.id)] = str(message.params.get("name"))
        elif record.sender == "server" and message.kind in (Kind.RESULT, Kind.ERROR):
            called.pop(id_key(message.id), None)
    return set(called.values())


def without_tools(lists: Lists, names: Collection[str]) -> Lists:
    tools = [one for one in lists.tools if str(one.get("name")) not in names]
    return msgspec.structs.replace(lists, tools=tools)


# -- tools -------------------------------------------------------------------------------------


class UsableTool(msgspec.Struct, frozen=True):
    """A tool that may be called, with arguments that its schema accepts."""

    name: str
    tool: dict[str, Any]
    schema: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def required(self) -> list[str]:
        required = self.schema.get("required")
        return [one for one in listed(required) if isinstance(one, str)]

    @property
    def task_support(self) -> str:
        execution = self.tool.get("execution")
        support = execution.get("taskSupport") if isinstance(execution, dict) else None
        return support if isinstance(support, str) else "forbidden"


def fixtures_of(order: Order, lists: Lists) -> dict[str, str]:
    """Fixture to what is one: as the user says, or by the names of the official suite."""
    listed = {str(one.get("name")) for many in (lists.tools, lists.prompts) for one in many} | {
        str(one.get("uri")) for one in lists.resources
    }
    found = {
        fixture: next(name for name in names if name in listed)
        for fixture, names in WELL_KNOWN.items()
        if any(name in listed for name in names)
    }
    return {**found, **order.fixtures}


def callable_tools(
    order: Order, lists: Lists, fixtures: Mapping[str, str]
) -> tuple[UsableTool, ...]:
    """Those that may be called for any purpose; fixtures come last, they are made for one."""
    allowed = {*order.allow_tools, *order.fixtures.values()}
    special = {*fixtures.values()} - {*order.allow_tools}
    found = [one for tool in lists.tools if (one := usable_tool(tool, allowed)) is not None]
    return tuple(sorted(found, key=lambda one: one.name in special))


def usable_tool(tool: dict[str, Any], allowed: set[str]) -> UsableTool | None:
    name, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        return None
    if not may_call(tool, allowed):
        return None
    arguments = plausible_arguments(schema)
    return UsableTool(name, tool, schema, arguments) if fits(schema, arguments) else None


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    try:
        return CompiledSchema(schema).fits(value)
    except SchemaError:
        return False  # whether the schema is at fault is for the rules to say
