"""A conformance client: the OpenAI Agents SDK.

Install: pip install openai-agents
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def connect():
    if COMMAND:
        return MCPServerStdio(params={"command": COMMAND[0], "args": COMMAND[1:]})
    return MCPServerStreamableHttp(params={"url": sys.argv[-1]})


async def attempt(request, seconds=None):
    """Whatever becomes of it, the next one is made."""
    try:
        await asyncio.wait_for(request, seconds)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def schema_of(tool):
    return tool.model_dump(by_alias=True)["inputSchema"]


async def main():
    async with connect() as server:
        schemas = {tool.name: schema_of(tool) for tool in await server.list_tools()}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            seconds = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(server.call_tool(call["name"], arguments), seconds)
        for read in CONTEXT.get("resourceReads", []):
            await attempt(server.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(server.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
