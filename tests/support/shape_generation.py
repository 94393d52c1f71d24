"""Messages for the tests of shapes: made from our table, and then broken in one place or two."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from mcptest.core.message import Kind
from mcptest.core.revision import Revision
from mcptest.schema.message_shapes import (
    AnyShape,
    ArrayOf,
    Between,
    ByMember,
    MapOf,
    Obj,
    OneOrMany,
    Plain,
    Shape,
    Tagged,
    Words,
)

TAGS = (
    *("text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result"),
    *("complete", "input_required", "task", "form", "url", "object", "string", "number", "array"),
    *("boolean", "integer", "ref/prompt", "ref/resource", "roots/list", "elicitation/create"),
    *("user", "assistant", "info", "public", "accept", "none"),
)
JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 1.0, 0.5, 2.5, -0.5, 1e300, 10**30, "", "x", "é", "1"),
    *([], {}, [None], ["a"], [1], [[]], [{}], {"a": 1}, {"a": None}, {"a": 0.5}, {"a": {}}),
    *({"type": "text", "text": "t"}, {"type": "object"}, {"name": "n", "version": "1"}),
    *({"uri": "u", "text": "t"}, {"uri": "u", "blob": "QQ=="}, {"task": {"taskId": "t"}}),
    *({"enum": [1], "type": "string"}, {"type": "string", "oneOf": [{"const": "a"}]}),
    *({"type": "array", "items": {"anyOf": []}}, ["a"] * 101),
)


PAYLOADS = {"params", "result", "error"}


def junk(chance: random.Random) -> Any:
    return chance.choice(TAGS) if chance.random() < 0.2 else copy.deepcopy(chance.choice(JUNK))


def sample(shape: Shape, revision: Revision, chance: random.Random, full: bool = False) -> Any:
    """A value that fits the shape in the revision; `full` leaves nothing out."""
    if isinstance(shape, Plain):
        return _plain(shape, chance)
    if isinstance(shape, Words):
        return chance.choice(shape.words)
    if isinstance(shape, Between):
        most = shape.least + 9 if shape.most is None else shape.most
        whole = chance.randint(int(shape.least), int(most))
        return whole if shape.integer or chance.random() < 0.5 else chance.uniform(0, 1)
    if isinstance(shape, ArrayOf):
        size = 1 if full else chance.randint(0, 2)
        return [sample(shape.item, revision, chance, full) for _ in range(size)]
    if isinstance(shape, MapOf):
        keys = ["k"] if full else _keys(chance)
        return {key: sample(shape.value, revision, chance, full) for key in keys}
    if isinstance(shape, OneOrMany):
        many = chance.random() < 0.5
        return sample(ArrayOf(shape.item) if many else shape.item, revision, chance, full)
    if isinstance(shape, AnyShape):
        return sample(chance.choice(shape.alternatives).shape, revision, chance, full)
    if isinstance(shape, Tagged):
        return _tagged(shape, revision, chance, full)
    if isinstance(shape, ByMember):
        known = [case.shape for case in shape.cases if revision in case.window]
        return sample(chance.choice([*known, shape.otherwise]), revision, chance, full)
    return _object(shape, revision, chance, full)


def _plain(shape: Plain, chance: random.Random) -> Any:
    choices: dict[Plain, tuple[Any, ...]] = {
        Plain.STRING: ("", "a", "text/plain", "2025-11-25"),
        Plain.INTEGER: (0, 3, -2, 4.0, 10**20),
        Plain.NUMBER: (0, 0.5, -1.5, 1e10),
        Plain.BOOLEAN: (True, False),
        Plain.OBJECT: ({}, {"a": 1}, {"b": {"c": ["d"]}}),
        Plain.TOKEN: ("t", 1, 2.0, ""),
        Plain.INTEGER_OR_NULL: (None, 60000),
        Plain.PRIMITIVE: ("a", 1, True, 2.5),
        Plain.ANY: (None, 1, "a", [], {}, {"a": [None]}),
    }
    return copy.deepcopy(chance.choice(choices[shape]))


def _keys(chance: random.Random) -> list[str]:
    return chance.sample(["a", "b/c", "~d", "", "name"], chance.randint(0, 2))


def _tagged(shape: Tagged, revision: Revision, chance: random.Random, full: bool) -> Any:
    known = [case for case in shape.cases if revision in case.window]
    case = chance.choice(known)
    value = sample(case.shape, revision, chance, full)
    if shape.untagged is None or chance.random() < 0.8 or case.shape is not shape.untagged:
        value[shape.member] = case.sign
    return value


def _object(shape: Obj, revision: Revision, chance: random.Random, full: bool) -> dict[str, Any]:
    value: dict[str, Any] = {}
    known = {field.name for field in shape.fields if revision in field.window}
    for field in shape.fields:
        if revision not in field.window:
            if field.name not in known and chance.random() < 0.05:
                value[field.name] = junk(chance)  # means nothing here, so anything goes
        elif field.required or full or chance.random() < 0.4:
            value[field.name] = sample(field.shape, revision, chance, full)
    if chance.random() < 0.1:
        value["extraMember"] = junk(chance)
    return value


# -- breaking ------------------------------------------------------------------------------


def broken(message: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The message with something changed below its envelope; it may still be fine."""
    changed = copy.deepcopy(message)
    payload = next((name for name in ("params", "result", "error") if name in changed), None)
    if payload is None or chance.random() < 0.03:
        changed[payload or "params"] = junk(chance)
        if payload and payload == "params" and chance.random() < 0.5:
            del changed["params"]
        return changed
    for _ in range(chance.choice((1, 1, 1, 2))):
        _change_one(_places(changed[payload]), chance)
    return changed


def each_member_changed(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same message again and again, with one member left out or of another type."""
    if "params" in message:
        yield {name: member for name, member in message.items() if name != "params"}
    for where in _places([message[name] for name in message.keys() & PAYLOADS])[1:]:
        for key in list(where) if isinstance(where, dict) else range(len(where)):
            kept = where[key]
            for other in ([[]], 0.5, "?"):
                where[key] = other
                yield message
            if isinstance(where, dict):
                del where[key]
                yield message
            where[key] = kept


def _places(value: Any) -> list[Any]:
    """Every array and object in it that has a value to change."""
    found, rest = [], [value]
    while rest:
        here = rest.pop()
        if isinstance(here, dict | list) and here:
            found.append(here)
            rest.extend(here.values() if isinstance(here, dict) else here)
    return found


def _change_one(places: list[Any], chance: random.Random) -> None:
    if not places:
        return
    where = chance.choice(places)
    key = chance.choice(list(where) if isinstance(where, dict) else range(len(where)))
    way = chance.random()
    if way < 0.25:
        del where[key]
    elif way < 0.35 and isinstance(where, dict):
        where[chance.choice(("extra", "task", "text", "blob", "enum", "mode"))] = junk(chance)
    else:
        where[key] = junk(chance)


def enveloped(kind: Kind, method: str, content: dict[str, Any]) -> dict[str, Any]:
    """What is in a message, made a whole message with an envelope that is right."""
    head: dict[str, Any] = {"jsonrpc": "2.0"}
    if kind in (Kind.REQUEST, Kind.NOTIFICATION):
        head["method"] = method
    if kind is not Kind.NOTIFICATION:
        head["id"] = 1
    return {**head, **content}
