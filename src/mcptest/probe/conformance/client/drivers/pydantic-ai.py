"""A conformance client: Pydantic AI.

Install: pip install "pydantic-ai-slim[mcp]"
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))

SERVER = StdioTransport(COMMAND[0], COMMAND[1:]) if COMMAND else sys.argv[-1]


async def attempt(request, seconds=None):
    """Whatever becomes of it, the next one is made."""
    try:
        await asyncio.wait_for(request, seconds)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def schema_of(tool):
    return tool.model_dump(by_alias=True)["inputSchema"]


async def main():
    async with MCPToolset(SERVER) as toolset:
        schemas = {tool.name: schema_of(tool) for tool in await toolset.list_tools()}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            seconds = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(toolset.direct_call_tool(call["name"], arguments), seconds)
        for read in CONTEXT.get("resourceReads", []):
            await attempt(toolset.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(toolset.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
