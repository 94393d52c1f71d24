"""The least server that a Python SDK makes: a tool, a resource, a prompt, and nothing of its own.

Whatever rule it breaks, its SDK breaks. Run it with `sdk1`, `sdk2` or `fastmcp`, then `stdio`, or
`http PORT` or `sse PORT`, by the interpreter whose SDK is to be measured.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def made(family: str, port: int) -> Any:
    if family == "sdk1":
        from mcp.server.fastmcp import FastMCP as Server
    elif family == "sdk2":
        from mcp.server.mcpserver import MCPServer as Server
    else:
        from fastmcp import FastMCP as Server
    if family == "sdk1":
        return Server("minimal", port=port)
    return Server("minimal")


def main(family: str, transport: str, port: int) -> None:
    os.environ["FASTMCP_PORT"] = str(port)
    server = made(family, port)

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.resource("memo://hello")
    def hello() -> str:
        """A greeting."""
        return "hello"

    @server.prompt()
    def greet(name: str) -> str:
        """Ask for a greeting."""
        return f"Say hello to {name}."

    named = {"http": "streamable-http"}.get(transport, transport)
    if transport == "stdio" or family == "sdk1":
        server.run(transport=named)
    else:
        server.run(transport=named, host="127.0.0.1", port=port)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
