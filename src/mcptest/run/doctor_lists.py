"""What may be made of what a server lists: tools that may be called, and their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcptest.explore.plausible import plausible_arguments
from mcptest.schema.json_schema import CompiledSchema, SchemaError


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
