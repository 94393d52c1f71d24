"""A server written with the `mcp` package whose tool asks for input by hand, over stdio."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("python-sdk-input", version="1.0.0")
QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Who are you?",
        requested_schema={"type": "object", "properties": {"name": {"type": "string"}}},
    )
)


@server.tool(name="ask")
def ask() -> InputRequiredResult:
    """Ask for a name, whatever the client can do."""
    return InputRequiredResult(input_requests={"who": QUESTION}, request_state="asked once")


if __name__ == "__main__":
    server.run()
