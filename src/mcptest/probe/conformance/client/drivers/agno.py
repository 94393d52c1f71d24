"""A conformance client: Agno.

Install: pip install agno openai mcp fastmcp
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def connect():
    if COMMAND:
        parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
        return MCPTools(server_params=parameters, transport="stdio")
    return MCPTools(url=sys.argv[-1], transport="streamable-http")


async def attempt(request, seconds=None):
    """Whatever becomes of it, the next one is made."""
    try:
        await asyncio.wait_for(request, seconds)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def main():
    async with connect() as toolkit:
        functions = toolkit.functions
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in functions:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = functions[tool].parameters
            seconds = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(functions[call["name"]].entrypoint(**arguments), seconds)


asyncio.run(main())
