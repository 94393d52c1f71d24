"""What a server of the stateless era checks of a request: `_meta`, and headers that repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcptest.peer.demo.http_stateless import decode_header
from mcptest.peer.demo.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Refusal,
)
from mcptest.peer.scripted.script import META_PREFIX, Call, Obj, Stage

VERSION = META_PREFIX + "protocolVersion"
CAPABILITIES = META_PREFIX + "clientCapabilities"
SERVER_INFO = META_PREFIX + "serverInfo"
SUBSCRIPTION = META_PREFIX + "subscriptionId"
CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def wire_versions(stage: Stage) -> list[str]:
    """What the server speaks, the newest first."""
    return [revision.wire_version for revision in reversed(stage.offered)]


def meta_problem(call: Call, stage: Stage) -> Refusal | None:
    """What is wrong with the `_meta` of a request, as the error that it is answered with."""
    spoken = stage.revision.wire_version
    asked = call.params.get("protocolVersion") if call.method == "initialize" else None
    version = call.meta.get(VERSION, asked)
    if isinstance(version, str) and version != spoken:
        data = {"supported": wire_versions(stage), "requested": version[:200]}
        return Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(call.meta.get(VERSION), str):
        return Refusal(INVALID_PARAMS, f'Invalid params: _meta needs "{VERSION}"')
    if not isinstance(call.meta.get(CAPABILITIES), dict):
        return Refusal(INVALID_PARAMS, f'Invalid params: _meta needs "{CAPABILITIES}"')
    return None


def header_problem(call: Call, tools: Iterable[Obj]) -> Refusal | None:
    """The first header that does not say what the body says. None on stdio, which has none."""
    if call.visit is None or (call.method == "initialize" and VERSION not in call.meta):
        return None
    for name, expected in expected_headers(call, tools):
        problem = _compared(name, call.visit.headers, expected)
        if problem:
            return Refusal(HEADER_MISMATCH, f"Header mismatch: {name} {problem}")
    return None


def expected_headers(call: Call, tools: Iterable[Obj]) -> Iterator[tuple[str, Any]]:
    """Each header that a request must have, with the value in the body that it repeats."""
    version = call.meta.get(VERSION)
    if isinstance(version, str):
        yield "MCP-Protocol-Version", version
    yield "Mcp-Method", call.method
    named_by = _NAMED_BY.get(call.method)
    if named_by is not None and isinstance(call.params.get(named_by), str):
        yield "Mcp-Name", call.params[named_by]
    arguments = call.params.get("arguments", {})
    if call.method == "tools/call" and isinstance(arguments, dict):
        for tool in tools:
            if tool.get("name") == call.params.get("name"):
                yield from _designated(tool, arguments)


def _designated(tool: Obj, arguments: Obj) -> Iterator[tuple[str, Any]]:
    """The parameters that a tool wants to see in headers."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, property_schema in (properties or {}).items():
        header = property_schema.get("x-mcp-header") if isinstance(property_schema, dict) else None
        if isinstance(header, str):
            yield f"Mcp-Param-{header}", arguments.get(name)


def _compared(name: str, headers: Mapping[str, str], expected: Any) -> str:
    given = headers.get(name.lower())
    if expected is None:
        return "" if given is None else "has no value in the body"
    if given is None:
        return "is missing"
    try:
        decoded = decode_header(name, given)
    except Refusal as refusal:
        return refusal.message
    return "" if says(decoded, expected) else "differs from the body"


def says(text: str, expected: Any) -> bool:
    """Whether a header's text stands for this value of the body."""
    if isinstance(expected, bool):
        return text == ("true" if expected else "false")
    if isinstance(expected, int | float):
        try:
            return len(text) < 400 and float(text) == float(expected)
        except (ValueError, OverflowError):
            return False
    return isinstance(expected, str) and text == expected
