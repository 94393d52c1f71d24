"""What a server lists, and what may be made of it: pages, and tools that may be called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcptest.explore.plausible import plausible_arguments
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
_PAGES = 20
_ITEMS = 5_000


def walk_pages(ask: Callable[[Check], Asked], method: str, member: str) -> list[Any]:
    """The items of all pages of a list, as far as its pages end."""
    items: list[Any] = []
    cursor: Any = None
    for _ in range(_PAGES):
        params = None if cursor is None else {"cursor": cursor}
        result = ask(Check(method=method, params=params)).exchange.result
        page = result.get(member) if isinstance(result, dict) else None
        items.extend(page if isinstance(page, list) else ())
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if not isinstance(cursor, str) or len(items) > _ITEMS:
            break
    return items[:_ITEMS]


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
