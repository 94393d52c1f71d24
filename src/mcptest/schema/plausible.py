"""Inputs for an audit: plausible ones that are valid by the schema of the tool itself. Pure."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from mcptest.core.limits import cancellation
from mcptest.core.message import ABSENT
from mcptest.core.safe_text import show
from mcptest.schema.combinations import EFFORT, Effort
from mcptest.schema.cost import listed, mapping_of
from mcptest.schema.generator import fitting_value
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.wire.json_text import spelled

_PLACE = re.compile(r"path|file|dir|folder|root", re.IGNORECASE)
_FOLDER = re.compile(r"dir|folder|root|tree|list|search|find|glob", re.IGNORECASE)
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_OPERATORS = "+#./;?&"
_LONGEST_VALUE = 200
NO_STRUCTURED_CONTENT = "it declares an outputSchema but returns no structuredContent"
_INTERNALS = re.compile(
    r"internal error|traceback \(most recent|stack trace|panic:|nullpointerexception"
    r"|segmentation fault",
    re.IGNORECASE,
)


class PlausibleInput(msgspec.Struct, frozen=True):
    """The arguments of a call; `doubt` says why they may be none that the tool takes."""

    arguments: Mapping[str, Any]
    doubt: str = ""
    unchecked: str = ""
    """Why nobody can say what the schema accepts, though it may be valid."""


def unchecked_schemas(tools: Iterable[Any]) -> Iterator[str]:
    """The tools for which no input can be made because their schemas can't be checked, and why."""
    for tool in tools:
        if isinstance(tool, dict) and tool.get("inputSchema") is not None:
            try:
                CompiledSchema(tool["inputSchema"])
            except SchemaLimitError as error:
                name = show(str(tool.get("name")), 80)
                yield f"{name}: its inputSchema can't be checked: {error}"
            except SchemaError:
                pass  # no input can be made, for another reason


class FixturePaths(msgspec.Struct, frozen=True):
    """What a fixture holds that a path may lead to."""

    folder: str
    file: str = ""


def input_for(tool: Mapping[str, Any], ground: FixturePaths | None = None) -> PlausibleInput:
    """The plainest input that the tool's own schema accepts; {} where it has none."""
    schema = tool.get("inputSchema")
    if schema is None:
        return PlausibleInput({}, "it has no inputSchema")
    try:
        compiled = CompiledSchema(schema)
    except SchemaLimitError as error:
        return PlausibleInput({}, unchecked=f"its inputSchema can't be checked: {error}")
    except SchemaError as error:
        return PlausibleInput({}, f"its inputSchema is not usable: {error}")
    value = fitting_value(schema)
    if not isinstance(value, dict):
        reason = (
            "no input found that its inputSchema accepts" if value is ABSENT else "not an object"
        )
        return PlausibleInput({}, reason)
    if ground is not None:
        placed = _on_ground(value, schema, str(tool.get("name")), ground)
        value = placed if compiled.fits(placed) else value
    return PlausibleInput(value)


def _on_ground(
    value: Mapping[str, Any], schema: Mapping[str, Any], tool: str, ground: FixturePaths
) -> dict[str, Any]:
    """Where a member is a place and nothing is said of it but its name: a place of the fixture."""
    known = mapping_of(schema, "properties")
    made = dict(value)
    for name, given in value.items():
        if not _PLACE.search(name):
            continue
        plain = ground.folder if _FOLDER.search(f"{tool} {name}") else ground.file or ground.folder
        part = known.get(name)
        items = part.get("items") if isinstance(part, dict) else None
        if given == name:
            made[name] = plain
        elif given == [] and isinstance(items, dict) and items.get("type") == "string":
            made[name] = [plain]
    return made


def prompt_arguments(prompt: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the arguments that a prompt requires."""
    return tuple(
        one["name"]
        for one in listed(prompt, "arguments")
        if isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and one.get("required") is True
    )


def template_variables(template: str) -> tuple[str, ...]:
    """The names that a URI template asks for, in their order."""
    names: dict[str, None] = {}
    for expression in _EXPRESSION.findall(template):
        names.update(dict.fromkeys(filter(None, _names_in(expression))))
    return tuple(names)


def _names_in(expression: str) -> list[str]:
    parts = expression.lstrip(_OPERATORS).split(",")
    return [part.partition(":")[0].removesuffix("*").strip() for part in parts]


def expanded(template: str, values: Mapping[str, str]) -> str:
    """The template with plain values in their places. Enough of RFC 6570 for one value each."""

    def fill(match: re.Match[str]) -> str:
        body = match.group(1)
        operator = body[0] if body[:1] and body[0] in _OPERATORS else ""
        names = _names_in(body)
        keep = "/:?#[]@!$&'()*+,;=" if operator in ("+", "#") else ""
        parts = [quote(values.get(name, name)[:_LONGEST_VALUE], safe=keep) for name in names]
        if operator in ("?", "&", ";"):
            parts = [f"{name}={part}" for name, part in zip(names, parts, strict=True)]
        first = {"": "", "+": "", "&": "&", "?": "?"}.get(operator, operator)
        between = {"?": "&", "&": "&", "": ",", "+": ",", "#": ","}.get(operator, operator)
        return first + between.join(parts)

    return _EXPRESSION.sub(fill, template)


def looks_internal(text: str) -> bool:
    """Whether a failure that a tool reports shows the insides of the server."""
    return _INTERNALS.search(text) is not None


def structured_misfit(tool: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """How a result breaks the tool's own output schema; empty when it does not."""
    schema = tool.get("outputSchema")
    if schema is None or result.get("isError") is True:
        return ""
    try:
        compiled = CompiledSchema(schema)
        if "structuredContent" not in result:
            return NO_STRUCTURED_CONTENT
        misfit = compiled.misfit(result["structuredContent"])
    except SchemaLimitError as error:
        return f"its structuredContent can't be checked against its outputSchema: {error}"
    except SchemaError as error:
        return f"its outputSchema is not usable: {error}"
    if misfit is None:
        return ""
    return f"its structuredContent does not match its outputSchema: {misfit}"


# -- the plainest input, for commands that call many tools ---------------------------------------

_FREE: Final = 500
_TOGETHER: Final = 20 * EFFORT
_MOST_KNOWN: Final = 2_000


class PlausibleArguments:
    """Values for what a schema requires; none when nothing that fits was found.

    They are remembered, since a command needs those of one tool several times. Schemas that take
    more than a few steps share what is spent on all: hundreds of them would add up to minutes.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, Any]] = {}
        self._left = _TOGETHER

    def __call__(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        key = hashlib.sha256(spelled(schema)).digest()
        if key not in self._known:
            made = self._made(schema)
            if cancellation.is_over():  # it was given up for want of time
                return made
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = made
        return copy.deepcopy(self._known[key])

    def _made(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        effort = Effort(min(EFFORT, _FREE + max(0, self._left)))
        value = fitting_value(schema, effort=effort)
        self._left -= max(0, effort.spent - _FREE)
        return value if isinstance(value, dict) else {}


plausible_arguments: Final = PlausibleArguments()
