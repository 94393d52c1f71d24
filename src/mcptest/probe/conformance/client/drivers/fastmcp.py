"""A conformance client: FastMCP, 2.x to 4.x.

Install: pip install fastmcp
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))
SERVER = StdioTransport(COMMAND[0], COMMAND[1:]) if COMMAND else sys.argv[-1]


async def elicit(message, response_type, params, context):
    """Accept, with the defaults of the form."""
    plain = params.model_dump(by_alias=True)
    fields = (plain.get("requestedSchema") or {}).get("properties", {}).items()
    content = {name: field.get("default", True) for name, field in fields}
    return ElicitResult(action="accept", content=content)


async def sample(messages, params, context):
    return "an answer of a model"


async def attempt(request):
    """Whatever becomes of it, the next one is made."""
    try:
        await request
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def schema_of(tool):
    return tool.model_dump(by_alias=True)["inputSchema"]


async def main():
    handlers = {"elicitation_handler": elicit, "sampling_handler": sample, "roots": []}
    async with Client(SERVER, **handlers) as client:
        schemas = {tool.name: schema_of(tool) for tool in await client.list_tools()}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            limit = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(client.call_tool(call["name"], arguments, timeout=limit))
        for read in CONTEXT.get("resourceReads", []):
            await attempt(client.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(client.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
