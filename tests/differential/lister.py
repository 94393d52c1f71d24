"""A server that lists the tools of a file: `python lister.py TOOLS.json`."""

import json
import sys
from pathlib import Path

TOOLS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def answer_to(request: dict) -> dict:
    if request["method"] == "initialize":
        return {
            "result": {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lister", "version": "1"},
            }
        }
    if request["method"] == "tools/list":
        return {"result": {"tools": TOOLS}}
    if request["method"] == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "as asked"}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], **answer_to(request)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
