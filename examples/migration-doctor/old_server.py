"""A small server of 2025-06-18, as many are in use: it keeps a session and calls its client back.

It needs nothing but Python. `mcptest doctor` tells what has to change before it speaks 2026-07-28.
"""

from __future__ import annotations

import json
import sys
from typing import Any

NOTES = {"note://shopping": "milk, bread", "note://ideas": "a doctor for servers"}
CAPABILITIES = {"logging": {}, "resources": {"subscribe": True, "listChanged": True}, "tools": {}}
TOOLS = [
    {
        "name": "count_notes",
        "description": "How many notes there are.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "clear_notes",
        "description": "Throw all notes away.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"destructiveHint": True},
    },
]


class Refused(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), flush=True)


def call_tool(name: str) -> dict[str, Any]:
    if name == "count_notes":
        # In the old days a server could ask its client in the middle of a call.
        send({"id": "roots-1", "method": "roots/list"})
        return {"content": [{"type": "text", "text": str(len(NOTES))}]}
    if name == "clear_notes":
        NOTES.clear()
        return {"content": [{"type": "text", "text": "all gone"}]}
    raise Refused(-32602, f"Unknown tool: {name}")


def read(uri: str) -> dict[str, Any]:
    if uri not in NOTES:
        raise Refused(-32002, "Resource not found")
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": NOTES[uri]}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "old-notes", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call_tool(str(params.get("name")))
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": uri.partition("//")[2]} for uri in NOTES]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        return read(str(params.get("uri")))
    if method in {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}:
        return {}
    raise Refused(-32601, "Method not found")


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message or "id" not in message:
            continue  # a notification, or the answer to a question of ours
        try:
            result = answer(message["method"], message.get("params") or {})
            send({"id": message["id"], "result": result})
        except Refused as refused:
            error = {"code": refused.code, "message": str(refused)}
            send({"id": message["id"], "error": error})


if __name__ == "__main__":
    main()
