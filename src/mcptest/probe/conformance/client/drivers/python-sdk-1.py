"""A conformance client: the official Python SDK, 1.8 to 1.x.

Install: pip install "mcp>=1.8,<2"
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import inspect
import json
import os
import sys
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


async def elicit(context, params):
    """Accept, with the defaults of the form."""
    schema = getattr(params, "requestedSchema", None) or {}
    fields = schema.get("properties", {}).items()
    content = {name: field.get("default", True) for name, field in fields}
    return types.ElicitResult(action="accept", content=content)


async def sample(context, params):
    text = types.TextContent(type="text", text="an answer of a model")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def list_roots(context):
    return types.ListRootsResult(roots=[])


async def attempt(request):
    """Whatever becomes of it, the next one is made."""
    try:
        await request
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def list_every_tool(session):
    page = await session.list_tools()
    tools = list(page.tools)
    while page.nextCursor is not None:
        page = await session.list_tools(page.nextCursor)
        tools += page.tools
    return tools


def connect():
    if COMMAND:
        return stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
    return streamablehttp_client(sys.argv[-1])


async def main():
    callbacks = {"sampling_callback": sample, "list_roots_callback": list_roots}
    if "elicitation_callback" in inspect.signature(ClientSession).parameters:  # since 1.10
        callbacks["elicitation_callback"] = elicit
    async with connect() as streams, ClientSession(*streams[:2], **callbacks) as session:
        await session.initialize()
        schemas = {tool.name: tool.inputSchema for tool in await list_every_tool(session)}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            limit = timedelta(milliseconds=call["timeoutMs"]) if "timeoutMs" in call else None
            await attempt(session.call_tool(call["name"], arguments, limit))
        for read in CONTEXT.get("resourceReads", []):
            await attempt(session.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(session.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
