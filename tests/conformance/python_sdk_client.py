"""A client of the official Python SDK for every scenario that is not about authorization."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp import types as t
from mcp.shared.exceptions import MCPError

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
VERSION = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
ASKED = {
    *("elicitation-sep1034-client-defaults", "sep-2322-client-request-state"),
    *("client-capabilities", "client-capabilities-undeclared"),
}


async def elicit(context: Any, params: Any) -> t.ElicitResult:
    schema = getattr(params, "requested_schema", None)
    plain = schema if isinstance(schema, dict) else schema.model_dump() if schema else {}
    properties = plain.get("properties", {})
    content = {key: about["default"] for key, about in properties.items() if "default" in about}
    return t.ElicitResult(action="accept", content=content or {"confirmed": True})


async def sample(context: Any, params: Any) -> t.CreateMessageResult:
    text = t.TextContent(type="text", text="yes")
    return t.CreateMessageResult(role="assistant", content=text, model="test")


async def roots(context: Any) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[])


def target() -> Any:
    command = os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND")
    if command is None:
        return sys.argv[-1]
    program, *words = json.loads(command)
    return StdioServerParameters(command=program, args=words)


async def list_all(client: Client) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found


async def use_everything(client: Client, names: list[str]) -> None:
    for name in names:
        await client.call_tool(name, {})
    for one in (await client.list_resources()).resources:
        await client.read_resource(str(one.uri))
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def call_all(client: Client, names: list[str]) -> None:
    for call in CONTEXT["toolCalls"]:
        if call["name"] in names:
            limit = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            with contextlib.suppress(MCPError):
                await client.call_tool(call["name"], call["arguments"], read_timeout_seconds=limit)


async def main() -> None:
    mode = "legacy" if VERSION < "2026" else "auto" if SCENARIO == "request-metadata" else VERSION
    mode = "auto" if "BOTH_ERAS" in os.environ else mode
    options: dict[str, Any] = {}
    if SCENARIO in ASKED:
        options = {"elicitation_callback": elicit}
    if SCENARIO.startswith("client-capabilities"):
        options |= {"sampling_callback": sample, "list_roots_callback": roots}
    async with Client(target(), mode=mode, **options) as client:
        tools = await list_all(client)
        names = [tool.name for tool in tools]
        if SCENARIO == "tools_call":
            await client.call_tool("add_numbers", {"a": 5, "b": 3})
        elif SCENARIO == "http-standard-headers":
            await use_everything(client, names)
        elif SCENARIO == "http-invalid-tool-headers":
            for tool in tools:
                required = tool.input_schema.get("required", [])
                await client.call_tool(tool.name, dict.fromkeys(required, "x"))
        elif SCENARIO == "json-schema-2020-12-preservation":
            schemas = {tool.name: tool.input_schema for tool in tools}
            echoed = {"schema": schemas["json_schema_2020_12_tool"]}
            await client.call_tool("json_schema_echo", echoed)
        elif "toolCalls" in CONTEXT:
            await call_all(client, names)
        elif SCENARIO not in {"initialize", "json-schema-ref-no-deref", "request-metadata"}:
            for name in names:
                await client.call_tool(name, {})


anyio.run(main)
