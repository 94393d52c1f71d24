"""A client of the official Python SDK, in the manner of the conformance suite.

It takes the server's URL as its last argument, or on stdio the server's command from the
environment, and calls the tool of the scenario `tools_call`.
"""

from __future__ import annotations

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main() -> None:
    command = os.environ.get("MCP_CONFORMANCE_SERVER_COMMAND")
    if command is not None:
        program, *words = json.loads(command)
        target = StdioServerParameters(command=program, args=words)
    else:
        target = sys.argv[-1]
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    mode = "legacy" if version < "2026" else version
    async with Client(target, mode=mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["add_numbers"]
        result = await client.call_tool("add_numbers", {"a": 1, "b": 2})
        assert not result.is_error


anyio.run(main)
