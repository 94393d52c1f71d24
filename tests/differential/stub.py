"""A server that gives one answer, which its command line holds, to every request."""

import json
import sys

INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
    "serverInfo": {"name": "stub", "version": "1"},
}


def answer_to(method: str, given: dict) -> dict:
    if method == "initialize":
        return {"result": INFO}
    if method == "server/discover":
        return {"error": {"code": -32601, "message": "Method not found"}}
    return given


given = json.loads(sys.argv[1])
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], **answer_to(request["method"], given)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
