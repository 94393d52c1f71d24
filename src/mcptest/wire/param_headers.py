"""Arguments that travel as headers: a tool's `x-mcp-header` annotations, found and checked.

An annotation counts only on a property that is reached from the root through `properties` alone,
so that its value can be found in any arguments without evaluating the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcptest.model.message import json_type
from mcptest.model.show import show

ANNOTATION: Final = "x-mcp-header"
PARAM_PREFIX: Final = "Mcp-Param-"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_MIRRORED_TYPES = frozenset({"string", "integer", "boolean"})
# Keywords whose value is one schema, a list of schemas, or a table of schemas.
_ONE = (
    *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLE = ("$defs", "definitions", "dependentSchemas", "patternProperties")


class Annotation(NamedTuple):
    """One `x-mcp-header`; `path` is None where no chain of `properties` leads to it."""

    path: tuple[str, ...] | None
    header: Any
    type: Any


def header_annotations(input_schema: Any) -> list[Annotation]:
    """Every annotation in a schema, the misplaced ones too."""
    return [
        Annotation(path, schema[ANNOTATION], schema.get("type"))
        for path, schema in _schemas(input_schema)
        if ANNOTATION in schema
    ]


def annotation_problems(input_schema: Any) -> tuple[str, ...]:
    """Why a client has to drop the tool with this schema; empty when it is fine."""
    problems: list[str] = []
    seen: set[str] = set()
    for path, header, kind in header_annotations(input_schema):
        where = show("/".join(path), 80) if path else "a place that properties do not lead to"
        if not path:
            problems.append(f"{ANNOTATION} at {where}")
        if not isinstance(header, str):
            problems.append(f"{ANNOTATION} of {where} is {json_type(header)}, not a string")
            continue
        if not _TOKEN.fullmatch(header):
            problems.append(f"{ANNOTATION} of {where} is no header name: {show(header, 40)!r}")
        if header.lower() in seen:
            problems.append(f"{ANNOTATION} {show(header, 40)!r} is used twice")
        seen.add(header.lower())
        if not isinstance(kind, str) or kind not in _MIRRORED_TYPES:
            problems.append(
                f"{ANNOTATION} of {where} is on a type other than string, integer, boolean"
            )
    return tuple(problems)


def param_headers(input_schema: Any, arguments: Any) -> dict[str, str]:
    """The headers that repeat arguments, values not yet encoded. Null and absent have none."""
    headers: dict[str, str] = {}
    for path, header, _ in header_annotations(input_schema):
        if path and isinstance(header, str) and _TOKEN.fullmatch(header):
            text = _as_text(_value_at(arguments, path))
            if text is not None:
                headers[PARAM_PREFIX + header] = text
    return headers


def _schemas(root: Any) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every subschema with its path; a stack instead of recursion, for schemas of any depth."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for keyword, value in schema.items():
            if keyword in _ONE:
                waiting.append((None, value))
            elif keyword in _LIST and isinstance(value, list):
                waiting.extend((None, each) for each in value)
            elif keyword in _TABLE and isinstance(value, dict):
                waiting.extend((None, each) for each in value.values())
            elif keyword == "properties" and isinstance(value, dict):
                for name, each in value.items():
                    waiting.append((None if path is None else (*path, name), each))


def _value_at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None
