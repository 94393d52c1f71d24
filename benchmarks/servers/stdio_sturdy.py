"""An echo over stdio that no input breaks: the yardstick for fuzzers. `python -I -S` starts it.

Whatever the arguments are, they come back as text. Both eras, standard library only.
"""

from __future__ import annotations

import json
import os

TOOL = {
    "name": "echo",
    "description": "Says the same again.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["text"],
    },
    "annotations": {"readOnlyHint": True},
}
INFO = {"name": "stdio-sturdy", "version": "1"}
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
    body = {"jsonrpc": "2.0", "id": message["id"]} | said(
        message["method"], message.get("params") or {}
    )
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def said(method: str, params: dict) -> dict:
    if method == "tools/call":
        text = json.dumps(params.get("arguments"))
        return {"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-11-25")
        greeting = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
        return {"result": greeting}
    if method == "server/discover":
        found = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
        return {"result": found | {"serverInfo": INFO} | CACHE}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]} | CACHE}
    return {"result": {}}


if __name__ == "__main__":
    main()
