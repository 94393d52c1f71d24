"""TOOL: what a server lists as tools, and that results keep what the list promised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.message import ABSENT, Kind, json_type
from mcptest.model.revision import Revision, Window
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import Step
from mcptest.schema.json_schema import CompiledSchema, SchemaError, SchemaLimitError

_SINCE_NOVEMBER_2025 = Window(since=Revision.V2025_11_25)
_CACHED_SCHEMAS = 2_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _tools(step: Step) -> Iterator[tuple[int, dict[str, Any]]]:
    listed = step.result.get("tools") if isinstance(step.result, dict) else None
    for place, tool in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(tool, dict):
            yield place, tool


class _SchemaCache:
    """Lists repeat themselves; a schema is compiled once."""

    def __init__(self) -> None:
        self._known: dict[bytes, CompiledSchema | SchemaError] = {}

    def compiled(self, schema: Any) -> CompiledSchema | SchemaError:
        key = msgspec.json.encode(schema)
        found = self._known.get(key)
        if found is None:
            try:
                found = CompiledSchema(schema)
            except SchemaError as error:
                found = error
            if len(self._known) >= _CACHED_SCHEMAS:
                self._known.clear()
            self._known[key] = found
        return found


@session_rule(
    "TOOL-001",
    "structuredContent matches the tool's outputSchema",
    category="tools",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/tools#output-schema",
    window=Window(since=Revision.V2025_06_18),
    listens=(Kind.RESULT,),
    methods=("tools/list", "tools/call"),
    sender="server",
)
def structured_content_matches(check: Check) -> Watching:
    """A tool that lists an `outputSchema` returns `structuredContent` that fits it.

    Programs read the structured part without looking at it first, as the schema promises they
    can. Results with `isError: true`, and those that ask for input or stand for a task, are not
    held to it. References to other documents are never followed. A schema that is not valid is
    reported by TOOL-002.
    """
    cache = _SchemaCache()
    promised: dict[str, CompiledSchema | SchemaError] = {}
    while step := (yield):
        if step.method == "tools/list":
            for _, tool in _tools(step):
                _remember(tool, promised, cache)
            continue
        name = step.request.params.get("name") if step.request is not None else None
        compiled = promised.get(name) if isinstance(name, str) else None
        result = step.result
        if compiled is None or not isinstance(result, dict) or _is_exempt(result):
            continue
        if isinstance(compiled, SchemaLimitError):
            check.unchecked(f"the outputSchema of {name!r} can't be checked: {compiled}")
            continue
        if isinstance(compiled, SchemaError):
            check.inconclusive(f"the outputSchema of {name!r} can't be used: {compiled}")
            continue
        check.saw(step)
        if "structuredContent" not in result:
            check.violated(
                step,
                f"the result of {name!r} has no structuredContent",
                expected="structuredContent, as outputSchema promises",
                pointer="/result",
            )
            continue
        try:
            misfit = compiled.misfit(result["structuredContent"])
        except SchemaLimitError as error:
            check.unchecked(f"the structuredContent of {name!r} can't be checked: {error}")
            continue
        if misfit is not None:
            check.violated(
                step,
                f"the structuredContent of {name!r} does not fit its outputSchema",
                expected="a value that fits the outputSchema",
                actual=misfit.reason,
                pointer=f"/result/structuredContent{misfit.pointer}",
            )


def _remember(
    tool: dict[str, Any],
    promised: dict[str, CompiledSchema | SchemaError],
    cache: _SchemaCache,
) -> None:
    name, schema = tool.get("name"), tool.get("outputSchema", ABSENT)
    if not isinstance(name, str):
        return
    if schema is ABSENT or schema is None:
        promised.pop(name, None)
    elif len(promised) < DEFAULT_LIMITS.items:
        promised[name] = cache.compiled(schema)


def _is_exempt(result: dict[str, Any]) -> bool:
    return (
        result.get("isError") is True
        or result.get("resultType", "complete") != "complete"
        or ("task" in result and "content" not in result)
    )


@session_rule(
    "TOOL-002",
    "the schemas of tools are valid",
    category="tools",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/tools#tool",
    window=_SINCE_NOVEMBER_2025,
    listens=(Kind.RESULT,),
    methods=("tools/list",),
    sender="server",
)
def tool_schemas_are_valid(check: Check) -> Watching:
    """`inputSchema` and `outputSchema` are valid JSON Schema: 2020-12 unless `$schema` says else.

    A client that can't use the schema can't offer the tool. References must stay within the
    schema: nothing is fetched, so one that leads out is a fault here. Types that don't exist,
    patterns that don't compile and unknown dialects are found.
    """
    cache = _SchemaCache()
    while step := (yield):
        for place, tool in _tools(step):
            for member in ("inputSchema", "outputSchema"):
                schema = tool.get(member, ABSENT)
                if schema is ABSENT:
                    continue
                compiled = cache.compiled(schema)
                if isinstance(compiled, SchemaLimitError):
                    check.unchecked(
                        f"the {member} of {tool.get('name')!r} can't be checked: {compiled}"
                    )
                    continue
                check.saw(step)
                if isinstance(compiled, SchemaError):
                    check.violated(
                        step,
                        f"the {member} of {tool.get('name')!r} is not a valid schema",
                        expected="a valid JSON Schema",
                        actual=str(compiled),
                        pointer=f"/result/tools/{place}/{member}",
                    )


@session_rule(
    "TOOL-003",
    "a tool has a name and an object as inputSchema",
    category="tools",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="server/tools#tool",
    listens=(Kind.RESULT,),
    methods=("tools/list",),
    sender="server",
)
def tools_have_name_and_schema(check: Check) -> Watching:
    """Each entry of `tools/list` has a string `name` and an `inputSchema` of type object.

    A tool without arguments has `{"type": "object"}`. Model APIs refuse a whole request for one
    tool without it.
    """
    while step := (yield):
        listed = step.result.get("tools", ABSENT) if isinstance(step.result, dict) else ABSENT
        if not isinstance(listed, list):
            check.violated(step, f"tools is {json_type(listed)}", expected="an array")
            continue
        for place, tool in enumerate(listed):
            check.saw(step)
            fault = _tool_fault(tool)
            if fault:
                check.violated(step, fault, pointer=f"/result/tools/{place}")


def _tool_fault(tool: Any) -> str:
    if not isinstance(tool, dict):
        return f"a tool is {json_type(tool)}, not an object"
    name = tool.get("name", ABSENT)
    if not isinstance(name, str):
        return f"the name of a tool is {json_type(name)}"
    schema = tool.get("inputSchema", ABSENT)
    if not isinstance(schema, dict):
        return f"the inputSchema of {name!r} is {json_type(schema)}, not an object"
    if schema.get("type") != "object":
        return f'the inputSchema of {name!r} does not have "type": "object"'
    return ""


@session_rule(
    "TOOL-004",
    "tool names are short and plain",
    category="tools",
    severity=Severity.SHOULD,
    side=Side.SERVER,
    spec="server/tools#tool-names",
    window=_SINCE_NOVEMBER_2025,
    listens=(Kind.RESULT,),
    methods=("tools/list",),
    sender="server",
)
def tool_names_are_plain(check: Check) -> Watching:
    """A tool's name has 1 to 128 characters out of A-Z, a-z, 0-9, `_`, `-` and `.`.

    Model APIs allow little more, and clients build longer names from it.
    """
    while step := (yield):
        for place, tool in _tools(step):
            name = tool.get("name")
            if not isinstance(name, str):
                continue
            check.saw(step)
            if not _NAME.fullmatch(name):
                check.violated(
                    step,
                    f"the tool name {name!r}",
                    expected="1 to 128 of A-Z a-z 0-9 _ - .",
                    pointer=f"/result/tools/{place}/name",
                )


_WALKS_KEPT = 64


def _remember_walk(walks: dict[str, dict[str, Any]], cursor: Any, walk: dict[str, Any]) -> None:
    """Where a walk goes on; of very many at a time the oldest are forgotten."""
    if isinstance(cursor, str):
        walks[cursor] = walk
        if len(walks) > _WALKS_KEPT:
            del walks[next(iter(walks))]


@session_rule(
    "TOOL-005",
    "tool names are unique within the server",
    category="tools",
    severity=Severity.SHOULD,
    side=Side.SERVER,
    spec="server/tools#tool-names",
    window=_SINCE_NOVEMBER_2025,
    listens=(Kind.RESULT,),
    methods=("tools/list",),
    sender="server",
)
def tool_names_are_unique(check: Check) -> Watching:
    """On one walk through `tools/list` no name comes twice, on whichever page.

    A tool is called by its name alone, so the second one can't be reached.
    """
    walks: dict[str, dict[str, Any]] = {}
    while step := (yield):
        cursor = step.request.params.get("cursor") if step.request is not None else None
        # A page may be asked for again, and two walks at a time: each goes on from its cursor.
        walk = walks.pop(cursor, {}) if isinstance(cursor, str) else {}
        here: set[str] = set()
        for place, tool in _tools(step):
            name = tool.get("name")
            if not isinstance(name, str):
                continue
            check.saw(step)
            if name in here or walk.setdefault(name, cursor) != cursor:
                check.violated(
                    step,
                    f"the tool {name!r} is listed twice",
                    expected="each name once",
                    pointer=f"/result/tools/{place}/name",
                )
            here.add(name)
        _remember_walk(walks, cursor, walk)
        if isinstance(step.result, dict):
            _remember_walk(walks, step.result.get("nextCursor"), walk)
