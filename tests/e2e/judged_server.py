"""A small server of 2025-06-18 that can be told to misbehave in one way. Run it as a script."""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

TOOL = {"name": "destroy", "inputSchema": {"type": "object"}}
READS = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def say(message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def fail(identifier: Any, code: int, why: str = "no") -> None:
    say({"id": identifier, "error": {"code": code, "message": why}})


def hang_until_stdin_is_closed() -> None:
    closed = select.poll()
    closed.register(0, 0)  # not for what there is to read
    closed.poll()


def listed(way: str, identifier: Any, params: dict[str, Any]) -> None:
    if "cursor" not in params:
        if way == "dies-on-list":
            os._exit(7)
        say({"id": identifier, "result": {"tools": [TOOL, READS]}})
    elif way == "dies-on-cursor":
        sys.stderr.write("a cursor! token=very-secret-value\n")
        sys.stderr.flush()
        os._exit(9)
    elif way == "hangs-on-cursor":
        hang_until_stdin_is_closed()
    else:
        fail(identifier, -32602)


def called(way: str, identifier: Any, params: dict[str, Any], log: str) -> None:
    with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to import
        file.write(f"{params.get('name')}\n")
    if params.get("name") == "look" and way == "hangs-on-call":
        return
    if params.get("name") == "look":
        say({"id": identifier, "result": {"content": [{"type": "text", "text": "nothing"}]}})
    else:
        fail(identifier, -32602, "unknown tool")


def is_again(log: str) -> bool:
    try:
        os.close(os.open(log, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


def answer(way: str, message: dict[str, Any], log: str) -> None:
    identifier, method = message["id"], message["method"]
    params = message.get("params") or {}
    if method == "initialize":
        if way == "begins-once" and is_again(log):
            return
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "judged", "version": "1"},
        }
        say({"id": identifier, "result": result})
    elif way == "says-nothing":
        return
    elif method == "ping":
        say({"id": identifier, "result": {}})
    elif method == "tools/list":
        listed(way, identifier, params)
    elif method == "tools/call":
        called(way, identifier, params, log)
    elif way != "ignores-unknown":
        fail(identifier, -32601)


def with_coerced_id(way: str, message: Any) -> Any:
    """As a server reads ids that keeps all of them as whole numbers."""
    identifier = message.get("id") if isinstance(message, dict) else None
    if way == "ids-to-numbers" and isinstance(identifier, str) and identifier.isdigit():
        return {**message, "id": int(identifier)}
    return message


def main(way: str, log: str) -> None:
    if way == "banner":
        print("Welcome!", flush=True)
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            if way == "dies-on-garbage":
                sys.exit(3)
            fail(None, -32700)
            continue
        if not isinstance(message, dict) or "method" not in message:
            fail(message.get("id") if isinstance(message, dict) else None, -32600)
        elif "id" in message:
            answer(way, with_coerced_id(way, message), log)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
