"""A server whose tools have the names in a JSON file: `python -I -S named.py FILE [internal]`.

Each says that it only reads and answers at once; with `internal`, an empty text is an internal
error, so that there is something to save.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NAMES = json.loads(Path(sys.argv[1]).read_bytes())
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": name, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}} for name in NAMES
]
INTERNAL = {"code": -32603, "message": "Internal error"}


def answer(method: str, params: dict) -> dict:
    if method == "server/discover":
        return {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        found: dict = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        return {"result": found | {"serverInfo": {"name": "named", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        arguments = params.get("arguments")
        if "internal" in sys.argv and isinstance(arguments, dict) and arguments.get("text") == "":
            return {"error": INTERNAL}
        return {"result": {"content": [{"type": "text", "text": params["name"]}]}}
    return {"result": {}}


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]} | answer(
        message["method"], message.get("params") or {}
    )
    data = json.dumps(reply).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
