"""A server that gives one answer, which its command line holds, to every request.

`"mirror"` answers with the arguments that it was sent.
"""

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


def mirrored(params: dict) -> dict:
    """The arguments, in the order in which they came."""
    told = {"type": "text", "text": json.dumps(params.get("arguments"))}
    return {"result": {"content": [told], "messages": [{"role": "user", "content": told}]}}


given = json.loads(sys.argv[1])
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        what = mirrored(request.get("params", {})) if given == "mirror" else given
        answer = {"jsonrpc": "2.0", "id": request["id"], **answer_to(request["method"], what)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
