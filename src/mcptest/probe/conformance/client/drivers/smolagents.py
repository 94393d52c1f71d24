"""A conformance client: smolagents (with mcpadapt).

Install: pip install "smolagents[mcp]" "mcp[ws]<2"
Run:     mcptest conformance client --command "python client.py"
"""

import json
import os
import sys

from mcp import StdioServerParameters
from smolagents import MCPClient
from smolagents.models import get_tool_json_schema

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMMAND = json.loads(os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND", "[]"))


def server():
    if COMMAND:
        return StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    return {"url": sys.argv[-1], "transport": "streamable-http"}


CALLS = CONTEXT.get("toolCalls", [])
# One limit for the whole session: the shortest that a call of the scenario asks for.
LIMITS = [call["timeoutMs"] / 1000 for call in CALLS if "timeoutMs" in call]
SETTINGS = {"client_session_timeout_seconds": min(LIMITS)} if LIMITS else {}

with MCPClient(server(), structured_output=True, adapter_kwargs=SETTINGS) as found:
    tools = {tool.name: tool for tool in found}
    for call in CALLS:
        if call["name"] not in tools:
            continue
        arguments = dict(call["arguments"])
        for argument, tool in call.get("schemaArguments", {}).items():
            # As a model gets it: `inputs` holds references that can't be written as JSON.
            arguments[argument] = get_tool_json_schema(tools[tool])["function"]["parameters"]
        try:
            tools[call["name"]].forward(**arguments)
        except Exception as error:  # whatever becomes of it, the next one is made
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
