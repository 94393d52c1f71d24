"""A server that does next to nothing, for what a tester itself costs: two tools, no resources.

It says what the rules want to hear, and no more: standard library, one line in, one line out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

NUMBER = {"type": "number"}
TOOLS = [
    {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": NUMBER, "b": NUMBER},
            "required": ["a", "b"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "echo",
        "description": "Says what it is told.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        "annotations": {"readOnlyHint": True},
    },
]
CAPABILITIES = {"tools": {}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Refused(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "ping":
        return {}
    if method == "tools/call":
        if params.get("name") not in ("add", "echo"):
            raise Refused(-32602)
        return DONE
    if method == "tools/list":
        if "cursor" in params:
            raise Refused(-32602)
        return {"tools": TOOLS}
    if method == "initialize":
        info = {"name": "trivial", "version": "1"}
        wanted = params.get("protocolVersion")
        return {"protocolVersion": wanted, "capabilities": CAPABILITIES, "serverInfo": info}
    raise Refused(-32601)


def refusal(identifier: Any, code: int) -> dict[str, Any]:
    error = {"jsonrpc": "2.0", "error": {"code": code, "message": "refused"}}
    return {**error, "id": identifier} if type(identifier) in (int, str) else error


def not_finite(name: str) -> float:
    raise ValueError(name)


def answer_to(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line.decode(), parse_constant=not_finite)
    except (ValueError, RecursionError):
        return refusal(None, -32700)
    if not isinstance(message, dict):
        return refusal(None, -32600)
    identifier, method = message.get("id"), message.get("method")
    params = message.get("params", {})
    asks = "method" in message and "result" not in message and "error" not in message
    sound = message.get("jsonrpc") == "2.0" and isinstance(method, str) and asks
    if not sound:
        return refusal(identifier, -32600)
    if "id" not in message:
        return None
    if type(identifier) not in (int, str):
        return refusal(None, -32600)
    if not isinstance(params, dict):
        return refusal(identifier, -32600)
    try:
        return {"jsonrpc": "2.0", "id": identifier, "result": result_of(method, params)}
    except Refused as refused:
        return refusal(identifier, refused.code)


def main() -> None:
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    for line in sys.stdin.buffer:
        answer = answer_to(line)
        if answer is not None:
            write(json.dumps(answer).encode() + b"\n")
            flush()


if __name__ == "__main__":
    main()
