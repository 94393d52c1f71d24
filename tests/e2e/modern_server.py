"""A small server of 2026-07-28 on stdio that does everything right but for one thing.

The first argument names what it does wrong; `nothing` is a server that is ready. The second is a
file in which the names of the tools that were called are kept.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

WRONG = sys.argv[1] if len(sys.argv) > 1 else "nothing"
CALLED = Path(sys.argv[2]) if len(sys.argv) > 2 else None
PREFIX = "io.modelcontextprotocol/"
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}, "logging": {}}
if WRONG == "tasks":
    CAPABILITIES["tasks"] = {}
STARTED = time.monotonic_ns()


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Refused(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


def tools() -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {}}
    read = {"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    write = {"name": "wipe", "inputSchema": schema}
    if WRONG == "stable-lists":
        write["name"] = f"wipe-{STARTED}"
    return [read, write]


def check_meta(method: str, params: dict[str, Any]) -> None:
    meta = params.get("_meta", {})
    needed = [PREFIX + "protocolVersion", PREFIX + "clientCapabilities"]
    if WRONG != "request-meta" and any(name not in meta for name in needed):
        raise Refused(-32602, "_meta is not complete")
    version = meta.get(PREFIX + "protocolVersion", "2026-07-28")
    if version != "2026-07-28":
        data = {"supported": ["2026-07-28"], "requested": version}
        raise Refused(-32022, "unsupported version", None if WRONG == "version-error" else data)


def call(name: str) -> dict[str, Any]:
    if CALLED is not None:
        with CALLED.open("a") as file:
            file.write(name + "\n")
    if WRONG == "server-requests":
        send({"id": "s1", "method": "sampling/createMessage", "params": {}})
    if WRONG == "log-messages":
        log = {"level": "info", "data": "secret-of-the-environment was used"}
        send({"method": "notifications/message", "params": log})
    return {"content": [{"type": "text", "text": name}]}


def answer(identifier: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == WRONG:
        return {}
    if method == "server/discover":
        versions = ["2025-11-25"] if WRONG == "discover" else ["2026-07-28"]
        return {"supportedVersions": versions, "capabilities": CAPABILITIES, **hints(method)}
    if method in LISTS:
        items = tools() if method == "tools/list" else []
        return {LISTS[method]: items, **hints(method)}
    if method == "tools/call":
        return call(str(params.get("name")))
    if method == "resources/read":
        if WRONG == "empty-contents":
            return {"contents": [], **hints(method)}
        codes = {"missing-resource": -32002, "odd-code": -32603}
        raise Refused(codes.get(WRONG, -32602), "no such resource")
    if method == "subscriptions/listen" and WRONG != "subscriptions":
        meta = {PREFIX + "subscriptionId": identifier}
        body = {"_meta": meta, "notifications": params["notifications"]}
        send({"method": "notifications/subscriptions/acknowledged", "params": body})
        return None
    raise Refused(-32050 if WRONG == "error-codes" else -32601, "unknown method")


def hints(method: str) -> dict[str, Any]:
    if WRONG == "cache-hints" and method == "resources/list":
        return {"ttlMs": -1, "cacheScope": "everyone"}
    return {"ttlMs": 0, "cacheScope": "private"}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if not isinstance(message, dict) or "id" not in message:
            continue
        if WRONG == "dies" and message["method"] == "tools/list":
            sys.exit("it was all too much")
        params = message.get("params", {})
        try:
            check_meta(message["method"], params)
            result = answer(message["id"], message["method"], params)
        except Refused as refused:
            send({"id": message["id"], "error": refused.error})
            continue
        if result is not None:
            typed = {} if WRONG == "result-type" else {"resultType": "complete"}
            send({"id": message["id"], "result": {**typed, **result}})
    if WRONG == "exit-on-eof":
        time.sleep(600)


main()
