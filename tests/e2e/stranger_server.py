"""A small server on stdio, as strangers write them: sound, but for one peculiarity.

`dual-era` speaks 2026-07-28 and 2025-11-25, and takes its connection for one of the older era from
the first request on that does not say its version. `dual-era-at-first` does so only until the first
request that is no discovery, and goes by notifications too. `dual-era-by-line` does so as well from
the first line on that it can't read. `dual-era-unbegun` speaks 2025-06-18 in
its older half, which waits for no `initialize`. `dual-era-untyped` leaves out the `resultType` of
every result. `dual-era-flaky FILE` serves a request
of a version that it does not have, once. `backend-away` has tools, prompts and resources that all
fail in the same words, `lists-away` lists that do. `flaky FILE` answers the first invalid cursor of
all its processes wrongly, and `flaky-session FILE` writes one line that is no message, once.
`reads-anything` has a resource, and says of every other URI in the same words that it knows nothing
of it, in a result; `reads-files` serves what a file URI names instead. `notes-calls FILE` notes in
the file that a tool was called, and `contradicts FILE` too, whose tools say both that they only
read and that they destroy. `gives-up` ends by itself a moment after its start, as one does that
finds no backend, and until then answers only what takes none. `answers-notifications` says of one
that it does not know that there is no such method. `slow-from-then-on FILE` takes seconds to start
but for the first time, as all do on a machine that grows busy, and `hangs-on-version` says nothing
any more once it was offered a version that does not exist. `refuses-ping` speaks
2024-11-05, and knows no ping. `logs-what-it-can-not-read` sends a log message about a line that is
no JSON, as the Python SDK 1.x does, and declares no logging.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

WAY = sys.argv[1]
FILE = sys.argv[2] if len(sys.argv) > 2 else ""
NEW = "2026-07-28"
OLD = {"refuses-ping": "2024-11-05", "dual-era-unbegun": "2025-06-18"}.get(WAY, "2025-11-25")
PREFIX = "io.modelcontextprotocol/"
INFO = {"name": "stranger", "version": "1"}
TEXT = {"type": "string"}
READS = {"readOnlyHint": True, **({"destructiveHint": True} if WAY == "contradicts" else {})}
TOOLS = [
    {
        "name": "greet",
        "description": "Greet someone.",
        "inputSchema": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
        "annotations": READS,
    },
    {
        "name": "look",
        "description": "Look.",
        "inputSchema": {"type": "object"},
        "annotations": READS,
    },
]
PROMPT = {"name": "ask", "arguments": [{"name": "topic", "required": True}]}
RESOURCE = {"uri": "memo:///one", "name": "one"}
CACHED = {"ttlMs": 0, "cacheScope": "private"}
OFFERED: dict[str, Any] = {"tools": {}}
if WAY in {"backend-away", "lists-away"}:
    OFFERED |= {"prompts": {}, "resources": {}}
if WAY.startswith("reads-"):
    OFFERED |= {"resources": {}}


class Refused(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def is_first_time() -> bool:
    try:
        os.close(os.open(FILE, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Session:
    """One connection: which era it is of, once that is known."""

    def __init__(self) -> None:
        self.is_old = not WAY.startswith(("dual-era", "reads-"))
        self.has_begun = False
        self.is_settled = False

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = params.get("_meta", {})
        if method == "initialize" or PREFIX + "protocolVersion" not in meta:
            self.is_old = self.is_old or not self.is_settled
        elif WAY == "dual-era-at-first" and method != "server/discover":
            self.is_settled = True
        return self.old(method, params) if self.is_old else self.new(method, params, meta)

    def old(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            if WAY == "hangs-on-version" and params["protocolVersion"] < "2024":
                threading.Event().wait()
            self.has_begun = True
            return {"protocolVersion": OLD, "capabilities": OFFERED, "serverInfo": INFO}
        if method == "ping" and WAY != "refuses-ping":
            return {}
        is_ready = self.has_begun or WAY == "dual-era-unbegun"
        if method in {"server/discover", "ping"} or not is_ready:
            raise Refused(-32601, "Method not found")
        return served(method, params)

    def new(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        if PREFIX + "protocolVersion" not in meta:
            raise Refused(-32602, "protocolVersion is missing")
        served_once = WAY == "dual-era-flaky" and meta[PREFIX + "protocolVersion"] != NEW
        if meta[PREFIX + "protocolVersion"] != NEW and not (served_once and is_first_time()):
            wanted = {"supported": [NEW], "requested": meta[PREFIX + "protocolVersion"]}
            raise Refused(-32022, "Unsupported protocol version", wanted)
        if PREFIX + "clientCapabilities" not in meta:
            raise Refused(-32602, "clientCapabilities is missing")
        if method == "server/discover":
            result = {"supportedVersions": [NEW], "capabilities": OFFERED, "serverInfo": INFO}
        elif method in {"ping", "initialize"}:
            raise Refused(-32601, "Method not found")
        else:
            result = served(method, params)
        result |= {"_meta": {PREFIX + "serverInfo": INFO}}
        result |= {} if WAY == "dual-era-untyped" else {"resultType": "complete"}
        return result | CACHED if method.endswith(("list", "discover", "read")) else result


def served(method: str, params: dict[str, Any]) -> dict[str, Any]:
    lists = {"tools/list": TOOLS, "prompts/list": [PROMPT], "resources/list": [RESOURCE]}
    kind = method.partition("/")[0]
    if WAY == "lists-away" and method.endswith("/list"):
        raise Refused(-32603, "backend unreachable")
    if method in lists and kind in OFFERED:
        if "cursor" in params and not (WAY == "flaky" and is_first_time()):
            raise Refused(-32602, "Invalid cursor")
        return {kind: lists[method]}
    if method == "tools/call":
        return called(str(params.get("name")), params.get("arguments", {}))
    if method == "resources/templates/list" and WAY == "backend-away":
        return {"resourceTemplates": []}
    if method in {"prompts/get", "resources/read"} and WAY == "backend-away":
        raise Refused(-32000, "backend unreachable")
    if method == "resources/templates/list" and WAY.startswith("reads-"):
        return {"resourceTemplates": []}
    if method == "resources/read" and WAY.startswith("reads-"):
        return read(str(params.get("uri")))
    raise Refused(-32601, "Method not found")


def read(uri: str) -> dict[str, Any]:
    text = "a memo" if uri == RESOURCE["uri"] else f"nothing is known of {uri}"
    if WAY == "reads-files" and uri.startswith("file:"):
        text = "the content of that file"
    return {"contents": [{"uri": uri, "text": text}]}


def called(name: str, arguments: Any) -> dict[str, Any]:
    if WAY in {"contradicts", "notes-calls"} and name in {"greet", "look"}:
        is_first_time()
    if WAY == "backend-away":
        text = "backend unreachable"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    if name not in {"greet", "look"}:
        raise Refused(-32602, f"Unknown tool: {name}")
    if name == "greet" and not isinstance(arguments.get("name"), str):
        return {"content": [{"type": "text", "text": "name: a text is needed"}], "isError": True}
    if WAY == "flaky-session" and is_first_time():
        print("greeting, for once", flush=True)
    return {"content": [{"type": "text", "text": "hello"}]}


def complain_of(line: str, session: Session) -> None:
    session.is_old = session.is_old or WAY == "dual-era-by-line"
    if WAY == "logs-what-it-can-not-read":
        log = {"level": "error", "data": "Internal Server Error"}
        say({"method": "notifications/message", "params": log})
    elif line.strip():
        say({"error": {"code": -32700, "message": "Parse error"}})


def main() -> None:
    session = Session()
    if WAY == "slow-from-then-on" and not is_first_time():
        time.sleep(4)
    if WAY == "gives-up":
        giving_up = threading.Timer(0.5, os._exit, (1,))
        giving_up.daemon = True
        giving_up.start()
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            complain_of(line, session)
            continue
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            known = {"id": message["id"]} if isinstance(message, dict) and "id" in message else {}
            say({**known, "error": {"code": -32600, "message": "Invalid Request"}})
        elif WAY == "gives-up" and message["method"] not in {"initialize", "ping"}:
            continue
        elif "id" in message:
            try:
                result = session.answer(message["method"], message.get("params") or {})
                say({"id": message["id"], "result": result})
            except Refused as refused:
                say({"id": message["id"], "error": refused.error})
        elif WAY == "answers-notifications" and "mcptest" in message["method"]:
            say({"id": None, "error": {"code": -32601, "message": "Method not found"}})
        elif WAY == "dual-era-at-first" and not session.is_settled:
            session.is_old = True


if __name__ == "__main__":
    main()
