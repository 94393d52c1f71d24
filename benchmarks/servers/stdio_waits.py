"""A server whose tool waits for 100 ms, like one that asks the network; calls run side by side.

Standard library only; `python -I -S stdio_waits.py`.
"""

from __future__ import annotations

import json
import sys
import threading
import time

INFO = {"name": "stdio-waits", "version": "1"}
LOCK = threading.Lock()


def say(identifier: object, **outcome: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": identifier, **outcome})
    with LOCK:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def call(identifier: object, params: dict) -> None:
    time.sleep(0.1)
    text = params.get("arguments", {}).get("text", "")
    say(identifier, result={"content": [{"type": "text", "text": text}]})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        identifier, method = message.get("id"), message.get("method")
        if identifier is None:
            continue
        params = message.get("params", {})
        if method == "initialize":
            version = params.get("protocolVersion")
            greeting = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": INFO,
            }
            say(identifier, result=greeting)
        elif method == "tools/call":
            threading.Thread(target=call, args=(identifier, params)).start()
        else:
            say(identifier, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
