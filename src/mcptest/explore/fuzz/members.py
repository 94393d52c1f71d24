"""What a tool's schema says of the members of its arguments, as far as it can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mcptest.explore.choices import Plainest
from mcptest.explore.from_schema import fitting_value
from mcptest.explore.schema_merge import Contradiction, Effort, Settler, TooLarge, types_of
from mcptest.model.message import ABSENT, json_type
from mcptest.schema.json_schema import CompiledSchema, SchemaError, SchemaLimitError

_DEEPEST: Final = 8
_MOST_MEMBERS: Final = 200
KINDS: Final = ("string", "integer", "number", "boolean", "array", "object")


class Member(msgspec.Struct, frozen=True):
    """One property."""

    name: str
    kinds: tuple[str, ...]
    """The types that its schema speaks of; text when it speaks of none."""
    plain: Mapping[str, Any]
    """Its schema with references and alternatives settled the plainest way."""
    required: bool = False


class Form(msgspec.Struct, frozen=True):
    """The arguments of a tool."""

    schema: Any
    compiled: CompiledSchema | None
    """None: it can't be used, and nothing can be said of any input."""
    base: Mapping[str, Any] | None
    """The plainest valid input; None when none was found."""
    members: tuple[Member, ...] = ()
    unusable: str = ""
    """Why nothing can be said of any input."""
    unchecked: bool = False
    """Whether that is because it costs too much to say it."""

    def misfit(self, arguments: Any) -> str | None:
        """Why the schema does not accept it; None when it does. Raises SchemaLimitError when it
        costs too much to say."""
        if self.compiled is None:
            return None
        found = self.compiled.misfit({} if arguments is ABSENT else arguments)
        if found is None:
            return None
        return f"{found.reason} at {found.pointer}" if found.pointer else found.reason


def form_of(tool: Mapping[str, Any]) -> Form:
    schema = tool.get("inputSchema")
    try:
        compiled = CompiledSchema(schema)
    except SchemaLimitError as error:
        return Form(schema, None, None, unusable=str(error), unchecked=True)
    except SchemaError as error:
        return Form(schema, None, None, tuple(_members(schema)), str(error))
    value = fitting_value(schema)
    base = value if isinstance(value, dict) else None
    return Form(schema, compiled, base, tuple(_members(schema)))


def _members(schema: Any) -> Iterator[Member]:
    effort = Effort()
    root = _settled(schema, schema, effort)
    properties, required = root.get("properties"), root.get("required")
    names = list(properties) if isinstance(properties, Mapping) else []
    listed = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
    for name in [*names, *(one for one in listed if one not in names)][:_MOST_MEMBERS]:
        part = properties.get(name, {}) if isinstance(properties, Mapping) else {}
        kinds = tuple(dict.fromkeys(_kinds(part, schema, effort, 0))) or ("string",)
        yield Member(name, kinds, _settled(part, schema, effort), name in listed)


def _settled(part: Any, root: Any, effort: Effort) -> Mapping[str, Any]:
    try:
        return Settler(root, Plainest(), effort).settle(part, 0)
    except (Contradiction, RecursionError, TooLarge):
        return {}


def _kinds(part: Any, root: Any, effort: Effort, depth: int) -> Iterator[str]:
    """The types that a schema speaks of, over all its alternatives."""
    if not isinstance(part, Mapping) or depth > _DEEPEST:
        return
    named = types_of(part.get("type"))
    yield from (one for one in named if one in KINDS)
    for value in (*_list(part, "enum"), *([part["const"]] if "const" in part else ())):
        kind = json_type(value)
        if kind in KINDS:
            yield kind
    for keyword in ("anyOf", "oneOf"):
        for option in _list(part, keyword):
            yield from _kinds(option, root, effort, depth + 1)
    if not named and not _list(part, "anyOf") and not _list(part, "oneOf"):
        plain = _settled(part, root, effort)
        if plain is not part:
            yield from (one for one in types_of(plain.get("type")) if one in KINDS)


def _list(part: Mapping[str, Any], keyword: str) -> list[Any]:
    found = part.get(keyword)
    return found if isinstance(found, list) else []
