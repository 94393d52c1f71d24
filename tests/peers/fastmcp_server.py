"""A server written with the `fastmcp` package from PyPI: a few tools, a resource, a prompt.

Run it with `stdio`, or with `http PORT` or `sse PORT`.
"""

from __future__ import annotations

import sys
from typing import Any

from fastmcp import FastMCP

server: Any = FastMCP("fastmcp-peer", version="1.0.0", instructions="Adds and greets.")


@server.tool(annotations={"readOnlyHint": True})
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
    if sys.argv[1:2] in (["http"], ["sse"]):
        server.run(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
    else:
        server.run(show_banner=False)
