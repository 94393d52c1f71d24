"""A conformance client: Strands Agents for Python.

Install: pip install strands-agents
Run:     mcptest conformance client --command "python client.py"
"""

import json
import os
import sys
from datetime import timedelta

from mcp import StdioServerParameters, stdio_client
from strands.tools.mcp import MCPClient

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def connect():
    if COMMAND:
        parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
        return MCPClient(lambda: stdio_client(parameters))
    return MCPClient(url=sys.argv[-1])


def attempt(request, *arguments, **options):
    """Whatever becomes of it, the next one is made."""
    try:
        request(*arguments, **options)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


def list_every_tool(client):
    page = client.list_tools_sync()
    tools = list(page)
    while page.pagination_token is not None:
        page = client.list_tools_sync(page.pagination_token)
        tools += page
    return tools


with connect() as client:
    schemas = {
        tool.tool_name: tool.mcp_tool.model_dump(by_alias=True)["inputSchema"]
        for tool in list_every_tool(client)
    }
    for number, call in enumerate(CONTEXT.get("toolCalls", [])):
        if call["name"] not in schemas:
            continue
        arguments = dict(call["arguments"])
        for argument, tool in call.get("schemaArguments", {}).items():
            arguments[argument] = schemas[tool]
        limit = timedelta(milliseconds=call["timeoutMs"]) if "timeoutMs" in call else None
        attempt(client.call_tool_sync, f"call-{number}", call["name"], arguments, limit)
    for read in CONTEXT.get("resourceReads", []):
        attempt(client.read_resource_sync, read["uri"])
    for get in CONTEXT.get("promptGets", []):
        attempt(client.get_prompt_sync, get["name"], get["arguments"])
