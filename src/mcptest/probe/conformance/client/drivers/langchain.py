"""A conformance client: LangChain (langchain-mcp-adapters).

Install: pip install langchain-mcp-adapters
Run:     mcptest conformance client --command "python client.py"
"""

import asyncio
import json
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def server():
    if COMMAND:
        return {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    return {"transport": "http", "url": sys.argv[-1]}


async def attempt(request, seconds=None):
    """Whatever becomes of it, the next one is made."""
    try:
        await asyncio.wait_for(request, seconds)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


async def main():
    client = MultiServerMCPClient({"scripted": server()})
    async with client.session("scripted") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        for call in CONTEXT.get("toolCalls", []):
            if call["name"] not in tools:
                continue
            arguments = dict(call["arguments"])
            for argument, tool in call.get("schemaArguments", {}).items():
                arguments[argument] = tools[tool].args_schema
            seconds = call["timeoutMs"] / 1000 if "timeoutMs" in call else None
            await attempt(tools[call["name"]].ainvoke(arguments), seconds)
        for read in CONTEXT.get("resourceReads", []):
            await attempt(load_mcp_resources(session, uris=read["uri"]))
        for get in CONTEXT.get("promptGets", []):
            await attempt(load_mcp_prompt(session, get["name"], arguments=get["arguments"]))


asyncio.run(main())
