"""A conformance client: mcp-use for Python.

Install: pip install mcp-use
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from mcp_use import MCPClient

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def server():
    if COMMAND:
        return {"command": COMMAND[0], "args": COMMAND[1:]}
    return {"url": sys.argv[-1]}


async def attempt(request, seconds=None):
    """Whatever becomes of it, the next one is made."""
    try:
        await asyncio.wait_for(request, seconds)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def main():
    client = MCPClient({"mcpServers": {"scripted": server()}})
    session = await client.create_session("scripted")
    schemas = {tool.name: tool.inputSchema for tool in await session.list_tools()}
    for call in CONTEXT.get("toolCalls", []):
        if call["name"] not in schemas:
            continue
        arguments = dict(call["arguments"])
        for argument, tool in call.get("schemaArguments", {}).items():
            arguments[argument] = schemas[tool]
        seconds = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
        await attempt(session.call_tool(call["name"], arguments), seconds)
    for read in CONTEXT.get("resourceReads", []):
        await attempt(session.read_resource(read["uri"]))
    for get in CONTEXT.get("promptGets", []):
        await attempt(session.get_prompt(get["name"], get["arguments"]))
    await client.close_all_sessions()


asyncio.run(main())
