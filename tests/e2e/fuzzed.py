"""A server whose tools break on certain inputs only: `python -I -S fuzzed.py [TOOL…]`."""

from __future__ import annotations

import json
import os
import sys
import time

TEXT = {"type": "string"}
TOOLS: dict = {
    "sound": {"text": TEXT},
    "dies": {"text": TEXT, "limit": {"type": "integer"}},
    "internal": {"text": TEXT},
    "hangs": {"text": TEXT},
    "leaks": {"text": TEXT},
    "reads": {"path": TEXT},
    "writes": {"text": TEXT},
}


class Internal(Exception):  # noqa: N818 - it is an answer
    pass


def call(name: str, arguments: object) -> dict:
    given = arguments if isinstance(arguments, dict) else {}
    text = given.get("text")
    if name == "dies" and given.get("limit") == -1:
        sys.stderr.write("negative limit\n")
        sys.stderr.flush()
        os._exit(9)
    if name == "internal" and text == "":
        raise Internal
    if name == "hangs" and text == "":
        time.sleep(3600)
    if name == "leaks" and isinstance(text, str) and len(text) > 5_000:
        return said('Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f', True)
    if name == "reads" and str(given.get("path")).endswith("etc/passwd"):
        return said("root:x:0:0:root:/root:/bin/sh")
    return said(json.dumps(arguments))


def said(text: str, error: bool = False) -> dict:
    return {"content": [{"type": "text", "text": text}], "isError": error}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "fuzzed", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [described(name) for name in sys.argv[1:] or TOOLS]}
    return call(params["name"], params.get("arguments")) if method == "tools/call" else {}


def described(name: str) -> dict:
    members = TOOLS[name]
    schema = {"type": "object", "properties": members, "required": list(members)[:1]}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": name != "writes"}}


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply: dict = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "server/discover":
            reply["error"] = {"code": -32601, "message": "Method not found"}
        else:
            try:
                reply["result"] = answer(message["method"], message.get("params") or {})
            except Internal:
                reply["error"] = {"code": -32603, "message": "Internal error"}
        data = json.dumps(reply).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
