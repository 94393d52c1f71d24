"""A server whose tool answers when a file says so: `python patient_server.py FIFO`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_OFFER = {"name": "wait", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "patient", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [_OFFER]}
    if method == "tools/call":
        if params["arguments"].get("patiently"):
            Path(sys.argv[1]).read_text()
        return {"content": [{"type": "text", "text": "done"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if result is None:
            reply = {**reply, "error": {"code": -32601, "message": "no such method"}}
            del reply["result"]
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
