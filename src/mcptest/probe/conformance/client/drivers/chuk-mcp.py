"""A conformance client: chuk-mcp.

Install: pip install "chuk-mcp[full]"
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from chuk_mcp import StdioServerParameters, stdio_client
from chuk_mcp.protocol.messages import send_initialize
from chuk_mcp.protocol.messages.prompts import send_prompts_get
from chuk_mcp.protocol.messages.resources import send_resources_read
from chuk_mcp.protocol.messages.tools import send_tools_call, send_tools_list
from chuk_mcp.transports.http import StreamableHTTPParameters, http_client

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def connect():
    if COMMAND:
        return stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
    return http_client(StreamableHTTPParameters(url=sys.argv[-1]))


async def attempt(request):
    """Whatever becomes of it, the next one is made."""
    try:
        await request
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def list_every_tool(streams):
    page = await send_tools_list(*streams)
    tools = list(page.tools)
    while page.nextCursor is not None:
        page = await send_tools_list(*streams, cursor=page.nextCursor)
        tools += page.tools
    return tools


async def main():
    async with connect() as streams:
        await send_initialize(*streams)
        schemas = {tool.name: tool.inputSchema for tool in await list_every_tool(streams)}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            limit = {"timeout": call["timeoutMs"] / 1000} if "timeoutMs" in call else {}
            await attempt(send_tools_call(*streams, call["name"], arguments, **limit))
        for read in CONTEXT.get("resourceReads", []):
            await attempt(send_resources_read(*streams, read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(send_prompts_get(*streams, get["name"], get["arguments"]))


asyncio.run(main())
