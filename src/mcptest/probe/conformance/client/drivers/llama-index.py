"""A conformance client: LlamaIndex (llama-index-tools-mcp).

Install: pip install llama-index-tools-mcp
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from llama_index.tools.mcp import BasicMCPClient

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def connect():
    if COMMAND:
        return BasicMCPClient(COMMAND[0], args=COMMAND[1:])
    return BasicMCPClient(sys.argv[-1])


async def attempt(request):
    """Whatever becomes of it, the next one is made."""
    try:
        await request
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def schema_of(tool):
    return tool.model_dump(by_alias=True)["inputSchema"]


async def main():
    client = connect()
    schemas = {tool.name: schema_of(tool) for tool in (await client.list_tools()).tools}
    for call in CONTEXT.get("toolCalls", []):
        if call["name"] not in schemas:
            continue
        arguments = dict(call["arguments"])
        for argument, tool in call.get("schemaArguments", {}).items():
            arguments[argument] = schemas[tool]
        # A call opens a session of its own, which the client's timeout covers: no "timeoutMs" here.
        await attempt(client.call_tool(call["name"], arguments))
    for read in CONTEXT.get("resourceReads", []):
        await attempt(client.read_resource(read["uri"]))
    for get in CONTEXT.get("promptGets", []):
        await attempt(client.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
