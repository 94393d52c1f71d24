"""A server of mixed health: `python -I -S moody_server.py COUNTER [TOOL…]`.

`steady` works, `moody` works in every other process (COUNTER is the file that counts them), `dies`
exits, `silent` never answers, `wrong` breaks the protocol. What it says is hostile.
"""

from __future__ import annotations

import json
import os
import sys

HOSTILE = '</script><b>&amp; ]]> "\x1b[2J\u202e ::error::x\n::set-output name=x::y ](http://x) |`#'
TEXT = {"type": "string", "description": f"a text {HOSTILE}"}
TOOLS = ("steady", "moody", "dies", "silent", "wrong")


def mood() -> bool:
    """Whether this process is one of the good ones."""
    with open(sys.argv[1], "a+") as counter:  # noqa: PTH123 - nothing is imported here
        counter.write(".")
        counter.flush()
        return counter.tell() % 2 == 1


def answer(method: str, params: dict) -> object:
    if method == "initialize":
        info = {"name": f"moody {HOSTILE}", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [described(name) for name in sys.argv[2:] or TOOLS]}
    if method == "tools/call":
        return called(str(params.get("name")))
    return {} if method == "ping" else None


def described(name: str) -> dict:
    schema = {"type": "object", "properties": {"text": TEXT}}
    hints = {"readOnlyHint": True}
    return {"name": name, "description": HOSTILE, "inputSchema": schema, "annotations": hints}


def called(name: str) -> object:
    if name == "dies":
        sys.stderr.write(f"dying {HOSTILE}\n")
        sys.stderr.flush()
        os._exit(9)
    if name == "wrong":
        return {"content": HOSTILE}
    said = HOSTILE if name == "steady" or mood() else "in a bad mood"
    return {"content": [{"type": "text", "text": said}]}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request.get("method", ""), request.get("params") or {}
        if "id" not in request or (method == "tools/call" and params.get("name") == "silent"):
            continue
        result = answer(method, params)
        error = {"code": -32601, "message": f"no such method {HOSTILE}"}
        outcome = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


main()
