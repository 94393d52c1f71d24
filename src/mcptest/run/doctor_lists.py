"""What a server lists, and what may be made of it: pages, and tools that may be called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcptest.explore.plausible import plausible_arguments
from mcptest.peer.pagination import Listed, list_items
from mcptest.run.compliance.conversation import Asked
from mcptest.schema.json_schema import CompiledSchema, SchemaError
from mcptest.suite.check_forms import Check

LISTS: Mapping[str, tuple[str, str]] = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}
"""Method to the capability that it needs, and the member that holds the items."""


def list_through(ask: Callable[[Check], Asked], method: str, member: str, seconds: float) -> Listed:
    """What all pages of a list name, asked in a conversation."""
    return list_items(
        method,
        member,
        lambda params: ask(Check(method=method, params=params)),
        lambda asked: asked.exchange.result,
        seconds=seconds,
    )


def is_read_only(tool: Mapping[str, Any]) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True


def arguments_for(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    return plausible_arguments(schema) if isinstance(schema, dict) else {}


def fits(tool: Mapping[str, Any]) -> bool:
    """Whether our guess is an input that the tool's own schema accepts."""
    schema = tool.get("inputSchema")
    try:
        return isinstance(schema, dict) and CompiledSchema(schema).fits(arguments_for(tool))
    except SchemaError:
        return False  # whether the schema is at fault is for the items to say


def prompt_arguments(prompt: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Name of each declared argument, and whether it is required."""
    declared = prompt.get("arguments")
    for one in declared if isinstance(declared, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"], one.get("required") is True
