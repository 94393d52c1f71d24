"""A server whose tools notice whether they are called at once: `python -I -S readers_server.py`.

`pair` answers when a second call of it has come. `shy` and `plain` answer with what they saw:
`crowded` when another request came within a moment, else `alone`. `moody` says `bad` to the first
call with a key, and `good` to the others. All but `plain` claim to read only. `teach` has
structured content, for which a client looks up the tools.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections import deque

MOMENT = 0.2
READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    {"name": "teach", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    {"name": "pair", "inputSchema": {"type": "object"}, **READS},
    {"name": "shy", "inputSchema": {"type": "object"}, **READS},
    {"name": "moody", "inputSchema": {"type": "object"}, **READS},
    {"name": "plain", "inputSchema": {"type": "object"}},
]


class Input:
    """Requests that have come, and whether there is another one."""

    def __init__(self) -> None:
        self._waiting: deque[dict] = deque()
        self._rest = b""

    def next(self) -> dict:
        while not self._waiting:
            self._read()
        return self._waiting.popleft()

    def another_comes(self) -> bool:
        if not self._waiting and select.select([0], [], [], MOMENT)[0]:
            self._read()
        return bool(self._waiting)

    def _read(self) -> None:
        data = os.read(0, 65536)
        if not data:
            sys.exit()
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._waiting.extend(message for line in lines if "id" in (message := json.loads(line)))


def say(message: dict, result: dict) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], **result}).encode() + b"\n")


def text(words: str, **more: object) -> dict:
    return {"result": {"content": [{"type": "text", "text": words}], **more}}


def main() -> None:
    requests, unpaired, met = Input(), deque[dict](), set[str]()
    while True:
        message = requests.next()
        method, params = message["method"], message.get("params", {})
        if method == "initialize":
            info = {"name": "readers", "version": "1"}
            version = params["protocolVersion"]
            about = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            say(message, {"result": about})
        elif method == "tools/list":
            say(message, {"result": {"tools": TOOLS}})
        elif method != "tools/call":
            say(message, {"error": {"code": -32601, "message": "Method not found"}})
        elif params["name"] == "teach":
            say(message, text("{}", structuredContent={}))
        elif params["name"] == "pair":
            unpaired.append(message)
            if len(unpaired) == 2:
                say(unpaired.popleft(), text("paired"))
                say(unpaired.popleft(), text("paired"))
        elif params["name"] == "moody":
            key = params["arguments"]["key"]
            say(message, text("good" if key in met else "bad"))
            met.add(key)
        else:
            say(message, text("crowded" if requests.another_comes() else "alone"))


if __name__ == "__main__":
    main()
