"""A server written with the `mcp` package from PyPI: a few tools, a resource, a prompt.

Run it with `stdio`, or with `streamable-http PORT`.
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("python-sdk", version="1.0.0", instructions="Adds and greets.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(reason: str) -> str:
    """Fail with the reason that was given."""
    raise ValueError(reason)


@server.resource("memo://hello")
def hello() -> str:
    """A greeting."""
    return "hello"


@server.resource("memo://{name}")
def memo(name: str) -> str:
    """A memo by its name."""
    return f"this is {name}"


@server.prompt()
def greet(name: str) -> str:
    """Ask for a greeting."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if sys.argv[1:2] == ["streamable-http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
