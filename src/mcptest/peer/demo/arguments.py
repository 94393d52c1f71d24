"""A validator for the few JSON Schema keywords that the demo's own schemas use."""

from __future__ import annotations

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.protocol import Obj


NOT_BLANK = r"\S"
"""The one pattern that is known: without `re` the demo starts faster."""


def problem_with(value: Any, schema: Obj, where: str) -> str | None:
    """The first thing that is wrong with `value`, in words, or None."""
    expected = schema.get("type")
    if expected is not None and not _is_a(value, expected):
        article = "an" if expected[0] in "aio" else "a"
        return f"{where} must be {article} {expected}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(schema['enum'])}"
    if isinstance(value, str):
        if schema.get("pattern") == NOT_BLANK and value and not value.strip():
            return f"{where} must hold more than blanks"
        return _problem_with_length(len(value), schema, where, "characters", "Length")
    if isinstance(value, list):
        return _problem_with_items(value, schema, where)
    if isinstance(value, dict):
        return _problem_with_members(value, schema, where)
    return _problem_with_range(value, schema, where)


def _is_a(value: Any, expected: str) -> bool:
    if expected == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return type(value) is _TYPES[expected]


_TYPES: dict[str, type] = {"string": str, "object": dict, "array": list, "boolean": bool}


def _problem_with_range(value: Any, schema: Obj, where: str) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"{where} must be at least {schema['minimum']}"
    if "maximum" in schema and not value <= schema["maximum"]:
        return f"{where} must be at most {schema['maximum']}"
    return None


def _problem_with_length(
    length: int, schema: Obj, where: str, things: str, keyword: str
) -> str | None:
    if length < schema.get(f"min{keyword}", 0):
        return f"{where} must have at least {schema[f'min{keyword}']} {things}"
    if length > schema.get(f"max{keyword}", length):
        return f"{where} must have at most {schema[f'max{keyword}']} {things}"
    return None


def _problem_with_items(value: list[Any], schema: Obj, where: str) -> str | None:
    problem = _problem_with_length(len(value), schema, where, "items", "Items")
    if problem is None and "items" in schema:
        for place, item in enumerate(value):
            problem = problem_with(item, schema["items"], f"{where}[{place}]")
            if problem is not None:
                break
    return problem


def _problem_with_members(value: Obj, schema: Obj, where: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where}.{name} is required"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        rule = properties.get(name, others)
        if rule is False:
            return f"{where} has an unknown member: {name[:80]!r}"
        problem = None if rule is True else problem_with(member, rule, f"{where}.{name}")
        if problem is not None:
            return problem
    return None
