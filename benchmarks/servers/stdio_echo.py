"""The fastest MCP server that plain Python gives on stdio: the yardstick for clients.

Standard library only. It answers `initialize`, `server/discover`, `tools/list`, `ping` and
`tools/call` of a tool `echo`, both eras, and reads and writes whole blocks of lines. Start it with
`python -I -S stdio_echo.py`.
"""

from __future__ import annotations

import json
import os

TOOL = {
    "name": "echo",
    "description": "Says the same again.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}
INFO = {"name": "stdio-echo", "version": "1"}
CAPABILITIES = {"tools": {}}
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def main() -> None:
    rest = b""
    while chunk := os.read(0, 1 << 16):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        out = b"".join([answer(line) for line in lines if line])
        while out:
            out = out[os.write(1, out) :]


def answer(line: bytes) -> bytes:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        return b""
    method, params = message["method"], message.get("params", {})
    stateless = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", ())
    if method == "tools/call":
        text = json.dumps(params.get("arguments", {}).get("text", ""))
        complete = '"resultType":"complete",' if stateless else ""
        return (
            f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"result":{{{complete}"content":'
            f'[{{"type":"text","text":{text}}}]}}}}\n'
        ).encode()
    body = {"jsonrpc": "2.0", "id": message["id"]} | other(method, params, stateless)
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def other(method: str, params: dict, stateless: bool) -> dict:
    if method == "initialize":
        version = params.get("protocolVersion", "2025-11-25")
        greeting = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
        return {"result": greeting}
    if method == "server/discover":
        found = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
        return {"result": found | {"serverInfo": INFO} | CACHE}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]} | (CACHE if stateless else {})}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"no such method: {method}"}}


if __name__ == "__main__":
    main()
