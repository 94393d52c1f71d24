"""Schemas as the authors of tools write them: by hand, by pydantic, by zod, by reflection.

The same thousand on every machine. Each is made of members that such tools have.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Part = dict[str, Any]
Make = Callable[[random.Random], Part]


def text(**more: Any) -> Part:
    return {"type": "string", **more}


SIMPLE: dict[str, Make] = {
    "path": lambda chance: text(description="Where to look"),
    "query": lambda chance: text(minLength=1, maxLength=chance.choice((50, 400))),
    "url": lambda chance: text(format="uri"),
    "email": lambda chance: text(format="email"),
    "since": lambda chance: text(format=chance.choice(("date", "date-time"))),
    "id": lambda chance: text(format="uuid"),
    "host": lambda chance: text(format=chance.choice(("ipv4", "ipv6", "hostname"))),
    "repo": lambda chance: text(pattern="^[a-z0-9_.-]+/[a-z0-9_.-]+$"),
    "sha": lambda chance: text(pattern="^[0-9a-f]{7,40}$"),
    "version": lambda chance: text(pattern=r"^\d+\.\d+(\.\d+)?$"),
    "currency": lambda chance: text(pattern="^[A-Z]{3}$", minLength=3, maxLength=3),
    "limit": lambda chance: {"type": "integer", "minimum": 1, "maximum": chance.choice((10, 1000))},
    "offset": lambda chance: {"type": "integer", "minimum": 0},
    "ratio": lambda chance: {"type": "number", "minimum": 0, "maximum": 1},
    "temperature": lambda chance: {"type": "number", "exclusiveMinimum": 0, "maximum": 2},
    "price": lambda chance: {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 999},
    "step": lambda chance: {"type": "integer", "multipleOf": chance.choice((5, 8)), "minimum": 0},
    "recursive": lambda chance: {"type": "boolean", "default": False},
    "order": lambda chance: {"type": "string", "enum": ["asc", "desc"]},
    "level": lambda chance: {"enum": ["low", "high", 3, None]},
    "kind": lambda chance: {"const": "fixed"},
    "maybe": lambda chance: {"type": ["string", "null"]},
    "note": lambda chance: {"anyOf": [text(), {"type": "null"}], "default": None},
    "anything": lambda chance: {},
}


def _array(chance: random.Random, depth: int) -> Part:
    made: Part = {"type": "array", "items": part(chance, depth + 1)}
    if chance.random() < 0.4:
        made["minItems"] = chance.randint(0, 3)
    if chance.random() < 0.4:
        made["maxItems"] = made.get("minItems", 0) + chance.randint(0, 4)
    return made


def _distinct(chance: random.Random, depth: int) -> Part:
    return {"type": "array", "items": text(), "uniqueItems": True, "minItems": chance.randint(0, 2)}


def _pair(chance: random.Random, depth: int) -> Part:
    first = [part(chance, depth + 1), {"type": "integer"}]
    return {"type": "array", "prefixItems": first, "items": False, "minItems": 2}


def _containing(chance: random.Random, depth: int) -> Part:
    return {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 10}}


def _labels(chance: random.Random, depth: int) -> Part:
    return {"type": "object", "additionalProperties": part(chance, depth + 1)}


def _headers(chance: random.Random, depth: int) -> Part:
    return {
        "type": "object",
        "patternProperties": {"^x-[a-z]+$": text()},
        "additionalProperties": False,
        "minProperties": chance.randint(0, 2),
    }


def _named(chance: random.Random, depth: int) -> Part:
    return {"type": "object", "propertyNames": {"pattern": "^[a-z_]{2,8}$"}, "minProperties": 1}


def _union(chance: random.Random, depth: int) -> Part:
    return {"anyOf": [part(chance, depth + 1), {"type": "integer"}, {"type": "null"}]}


def _tagged(chance: random.Random, depth: int) -> Part:
    options = []
    for tag in ("file", "text", "none")[: chance.randint(2, 3)]:
        members = {"type": {"const": tag}, "value": part(chance, depth + 1)}
        options.append({"type": "object", "properties": members, "required": ["type", "value"]})
    return {"oneOf": options}


def _dependent(chance: random.Random, depth: int) -> Part:
    return {
        "type": "object",
        "properties": {"card": text(), "address": text(), "name": text()},
        "dependentRequired": {"card": ["address"], "address": ["name"]},
    }


def _conditional(chance: random.Random, depth: int) -> Part:
    return {
        "type": "object",
        "properties": {"mode": {"enum": ["on", "off"]}, "level": {"type": "integer"}},
        "required": ["mode"],
        "if": {"properties": {"mode": {"const": "on"}}},
        "then": {"required": ["level"]},
        "else": {"properties": {"level": False}},
    }


def _both(chance: random.Random, depth: int) -> Part:
    return {"allOf": [record(chance, depth + 1), {"properties": {"extra": text()}}]}


def _not(chance: random.Random, depth: int) -> Part:
    return {"type": "string", "not": {"enum": ["", "root"]}}


COMPLEX = (
    _array,
    _distinct,
    _pair,
    _containing,
    _labels,
    _headers,
    _named,
    _union,
    _tagged,
    _dependent,
    _conditional,
    _both,
    _not,
)


def part(chance: random.Random, depth: int) -> Part:
    if depth > 2 or chance.random() < 0.6:
        return chance.choice(list(SIMPLE.values()))(chance)
    if chance.random() < 0.3:
        return record(chance, depth + 1)
    return chance.choice(COMPLEX)(chance, depth)


def record(chance: random.Random, depth: int) -> Part:
    names = chance.sample(list(SIMPLE), chance.randint(0 if depth else 2, 5))
    members = {
        name: SIMPLE[name](chance) if chance.random() < 0.5 else part(chance, depth)
        for name in names
    }
    made: Part = {"type": "object", "properties": members}
    required = [name for name in names if chance.random() < 0.5]
    if required or chance.random() < 0.5:
        made["required"] = required
    if chance.random() < 0.5:
        made["additionalProperties"] = False
    return made


def _with_definitions(chance: random.Random, made: Part) -> Part:
    """As pydantic writes models inside of models; some of them hold themselves."""
    node = record(chance, 1)
    node["properties"] = {**node["properties"], "next": {"$ref": "#/$defs/Node"}}
    node["properties"]["children"] = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    members = {**made["properties"], "node": {"$ref": "#/$defs/Node", "description": "the root"}}
    return {**made, "properties": members, "$defs": {"Node": node}}


def tool_schema(number: int) -> Part:
    """The inputSchema of one tool."""
    chance = random.Random(number)
    made = record(chance, 0)
    if number % 4 == 0:
        made = _with_definitions(chance, made)
    if number % 10 == 0:
        made["$schema"] = "http://json-schema.org/draft-07/schema#"
        made = _in_draft_seven(made)
    return made


def _in_draft_seven(value: Any) -> Any:
    names = {
        "prefixItems": "items",
        "items": "additionalItems",
        "dependentRequired": "dependencies",
    }
    if isinstance(value, list):
        return [_in_draft_seven(one) for one in value]
    if not isinstance(value, dict):
        return value
    tuple_form = "prefixItems" in value
    return {
        (names[key] if key in names and (key != "items" or tuple_form) else key): _in_draft_seven(
            one
        )
        for key, one in value.items()
    }
