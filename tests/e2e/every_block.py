"""A server for every block of a suite: the last word of what it is asked for says how it answers.

`full` has something for each expectation, `empty` has nothing, `refused` is a JSON-RPC error,
`failed` says isError, `writes` changes a file of the fixture, `tells` sends a notification first.
"""

import json
import sys
from pathlib import Path

FIXTURE = Path(sys.argv[1])
FULL = {"net_delta": 1, "items": ["x", "y"], "word": "hello"}
CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging")
INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {name: {} for name in CAPABILITIES},
    "serverInfo": {"name": "every-block", "version": "1"},
}


def send(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def manner_of(params: dict) -> str:
    asked = params.get("argument", params)
    subject = asked.get("name") or asked.get("uri") or asked.get("cursor") or "full"
    return subject.rpartition("/")[2]


def result_of(method: str, manner: str) -> dict:
    text = "" if manner == "empty" else json.dumps(FULL)
    if method == "tools/call":
        content = {"content": [{"type": "text", "text": text}]}
        return {**content, **({"structuredContent": FULL} if text else {})}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "resources/read":
        return {"contents": [{"uri": "x://y", "text": text}]}
    if method == "completion/complete":
        values = FULL["items"] if text else []
        return {"completion": {"values": values}, "net_delta": 1, "word": "hello"}
    if method.endswith("/list"):
        listed = "resourceTemplates" if "templates" in method else method.partition("/")[0]
        items = [{"name": name, "uri": f"x://{name}"} for name in FULL["items"]] if text else []
        return {listed: items, "net_delta": 1, "word": "hello"}
    return {}


def answer_to(method: str, params: dict) -> dict:
    if method == "initialize":
        return {"result": INFO}
    manner = manner_of(params)
    if method == "server/discover" or manner == "refused":
        return {"error": {"code": -32601, "message": "no"}}
    if manner == "writes":
        with (FIXTURE / "written.txt").open("a") as file:
            file.write("more\n")
    if manner == "tells":
        send({"method": "notifications/message", "params": {"level": "error", "data": "told"}})
    if manner == "tells" and "progressToken" in params.get("_meta", {}):
        token = params["_meta"]["progressToken"]
        send(
            {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
        )
    result = result_of(method, manner)
    return {"result": {**result, "isError": True} if manner == "failed" else result}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = answer_to(request["method"], request.get("params") or {})
        send({"id": request["id"], **answer})
