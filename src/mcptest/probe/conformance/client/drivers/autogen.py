"""A conformance client: AutoGen.

Install: pip install "autogen-ext[mcp]" "mcp<2"
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from autogen_ext.models.replay import ReplayChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))
CALLS = CONTEXT.get("toolCalls", [])
# One limit for the whole session: the shortest that a call of the scenario asks for.
LIMITS = [call["timeoutMs"] / 1000 for call in CALLS if "timeoutMs" in call]


def server():
    if COMMAND:
        limit = {"read_timeout_seconds": min(LIMITS)} if LIMITS else {}
        return StdioServerParams(command=COMMAND[0], args=COMMAND[1:], **limit)
    limit = {"sse_read_timeout": min(LIMITS)} if LIMITS else {}
    return StreamableHttpServerParams(url=sys.argv[-1], **limit)


async def attempt(request):
    """Whatever becomes of it, the next one is made."""
    try:
        await request
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def main():
    model = ReplayChatCompletionClient(["an answer of a model"])
    async with McpWorkbench(server(), model_client=model) as workbench:
        schemas = {tool["name"]: tool["parameters"] for tool in await workbench.list_tools()}
        for call in CALLS:
            if call["name"] not in schemas:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = schemas[tool]
            await attempt(workbench.call_tool(call["name"], arguments))
        for read in CONTEXT.get("resourceReads", []):
            await attempt(workbench.read_resource(read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(workbench.get_prompt(get["name"], get["arguments"]))


asyncio.run(main())
