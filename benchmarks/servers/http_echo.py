"""A bare streamable-HTTP MCP server for benchmarks: both eras, one tool `echo`, nothing else.

As little work per request as Python allows, so that a benchmark measures the client. Standard
library only. Prints its URL on the first line of stdout.

    python benchmarks/servers/http_echo.py [--sse] [--port N]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import uuid
from typing import Any

STATELESS = "2026-07-28"
INFO = {"name": "http-echo", "version": "1"}
TOOL = {
    "name": "echo",
    "description": "Returns its text.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def call_tool(params: dict[str, Any], modern: bool) -> dict[str, Any]:
    text = params.get("arguments", {}).get("text", "")
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    return {"resultType": "complete", **result} if modern else result


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if method == "tools/call":
        return call_tool(params, modern)
    if method == "tools/list":
        return {"tools": [TOOL], **(HINTS if modern else {})}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-11-25")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}
    if method == "server/discover" and modern:
        meta = {"io.modelcontextprotocol/serverInfo": INFO}
        can = {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
        return {**can, **HINTS, "_meta": meta}
    if method == "ping":
        return {}
    return None


class Echo(asyncio.Protocol):
    sse = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        while self.buffer:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buffer[:end].lower()
            place = head.find(b"\r\ncontent-length:")
            size = int(head[place + 17 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self.buffer) < end + 4 + size:
                return
            body = self.buffer[end + 4 : end + 4 + size]
            self.buffer = self.buffer[end + 4 + size :]
            self.serve(head, body)

    def serve(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"post"):
            status = b"200 OK" if head.startswith(b"delete") else b"405 Method Not Allowed"
            self.transport.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
            return
        message = json.loads(body)
        if "id" not in message:
            self.transport.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        method = message["method"]
        result = answer(method, message.get("params") or {})
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "Method not found"}
            status = b"404 Not Found" if b"\r\nmcp-method:" in head else b"200 OK"
        else:
            reply["result"] = result
            status = b"200 OK"
        extra = b""
        if method == "initialize":
            extra = b"Mcp-Session-Id: " + uuid.uuid4().hex.encode() + b"\r\n"
        self.transport.write(self.render(status, extra, json.dumps(reply).encode()))

    def render(self, status: bytes, extra: bytes, body: bytes) -> bytes:
        if self.sse and status.startswith(b"200"):
            event = b"event: message\ndata: " + body + b"\n\n"
            return (
                b"HTTP/1.1 %b\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                b"X-Accel-Buffering: no\r\n%bTransfer-Encoding: chunked\r\n\r\n"
                b"%x\r\n%b\r\n0\r\n\r\n" % (status, extra, len(event), event)
            )
        return (
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
            % (status, extra, len(body), body)
        )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sse", action="store_true", help="answer requests as event streams")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    Echo.sse = arguments.sse
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", arguments.port)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
