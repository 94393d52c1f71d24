"""A conformance client: the official Python SDK, 2.x.

Install: pip install "mcp>=2,<3"
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters, types

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))
SERVER = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]) if COMMAND else sys.argv[-1]


async def elicit(context, params):
    """Accept, with the defaults of the form."""
    schema = getattr(params, "requested_schema", None) or {}
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


async def list_every_tool(client):
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


async def main():
    callbacks = {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": list_roots,
    }
    async with Client(SERVER, **callbacks) as client:
        schemas = {tool.name: tool.input_schema for tool in await list_every_tool(client)}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            limit = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(client.call_tool(call["name"], arguments, read_timeout_seconds=limit))
        for read in CONTEXT.get("resourceReads", []):
            await attempt(client.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(client.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
