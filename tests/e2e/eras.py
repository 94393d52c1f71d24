"""A small server that is of one era, or of both, and may start late. Standard library only.

Run as `eras.py KIND [--http PORT-FILE] [--after FILE] [--lock FILE]`. With `--after` it does not
read its input, or does not answer `server/discover` over HTTP, before another process or request
was answered `initialize`, which is told by FILE. It stands for a slow start that ends at the worst
moment. With `--lock` a process that is started while another one runs ends at once.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

PREFIX = "io.modelcontextprotocol/"
NEW, OLD = "2026-07-28", "2025-11-25"
INFO = {"name": "eras", "version": "1"}
TOOL = {
    "name": "look",
    "description": "Look at what there is.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}
CAPABILITIES: dict[str, Any] = {"tools": {}}
KINDS = ("modern", "legacy", "dual", "older", "unsupported", "ignores", "exits", "nothing-shared")


class Server:
    """One connection: the first message decides its era, as the SDKs have it."""

    def __init__(self, kind: str, answered: Path | None) -> None:
        self.kind = kind
        self.answered = answered
        self.legacy = kind not in {"modern", "dual"}

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        method, identifier = message.get("method"), message.get("id")
        if identifier is None:
            return None
        outcome = self._outcome(str(method), message.get("params") or {})
        if outcome is None:
            return None
        if method == "initialize" and "result" in outcome and self.answered is not None:
            self.answered.touch()
        return {"jsonrpc": "2.0", "id": identifier, **outcome}

    def _outcome(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        version = (params.get("_meta") or {}).get(PREFIX + "protocolVersion")
        if method == "server/discover":
            return self._discovered()
        if method == "initialize":
            return self._initialized(params)
        modern = version == NEW and not self.legacy
        if method == "tools/list":
            return {"result": self._complete(modern, {"tools": [TOOL]}, listed=True)}
        if method == "tools/call":
            content = {"content": [{"type": "text", "text": "seen"}]}
            return {"result": self._complete(modern, content)}
        if method == "ping" and not modern:
            return {"result": {}}
        return None if self.kind == "ignores" else refused(-32601, "Method not found")

    def _complete(
        self, modern: bool, result: dict[str, Any], *, listed: bool = False
    ) -> dict[str, Any]:
        if not modern:
            return result
        cached = {"ttlMs": 0, "cacheScope": "private"} if listed else {}
        return {
            "resultType": "complete",
            **cached,
            **result,
            "_meta": {PREFIX + "serverInfo": INFO},
        }

    def _discovered(self) -> dict[str, Any] | None:
        if self.kind == "exits":
            sys.exit(1)
        if self.kind == "ignores":
            return None
        if self.kind == "unsupported":
            named = {"supported": [OLD, "2025-06-18"], "requested": NEW}
            return refused(-32022, "Unsupported protocol version", named)
        if self.kind == "legacy" or (self.kind == "dual" and self.legacy):
            return refused(-32601, "Method not found")
        versions = {"older": [OLD, "2025-06-18"], "nothing-shared": ["2031-01-01"]}
        found = {"supportedVersions": versions.get(self.kind, [NEW]), "capabilities": CAPABILITIES}
        return {"result": self._complete(True, found, listed=True)}

    def _initialized(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.kind in {"modern", "nothing-shared"}:
            return refused(-32601, "Method not found")
        self.legacy = True  # from now on it is spoken to as before
        version = params.get("protocolVersion", OLD)
        found = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
        return {"result": found}


def refused(code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"error": error if data is None else {**error, "data": data}}


def await_file(path: Path) -> None:
    """Look again until it is there; whoever waits for us has a limit."""
    while not path.exists():
        threading.Event().wait(0.01)


def serve_lines(kind: str, late: Path | None) -> None:
    """The first process waits for another one to be answered; that one does not wait."""
    if late is not None:
        try:
            os.close(os.open(f"{late}.first", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            await_file(late)
    server = Server(kind, late)
    for line in sys.stdin:
        answer = server.answer(json.loads(line))
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def serve_http(kind: str, late: Path | None, port_file: Path) -> None:
    # Over stdio nobody needs it, and importing it takes longer than all else.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if message.get("method") == "server/discover" and late is not None:
                await_file(late)
            # Over HTTP each request stands for itself: what was asked before pins nobody.
            answer = Server(kind, late).answer(message)
            self.reply(202 if answer is None else 200, answer)

        def do_GET(self) -> None:
            self.reply(405, None)

        def do_DELETE(self) -> None:
            self.reply(405, None)

        def reply(self, status: int, answer: Any) -> None:
            body = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if body:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port_file.write_text(str(listener.server_port))
    print("ready", flush=True)
    listener.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--http", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument("--lock", type=Path)
    words = parser.parse_args()
    if words.lock is not None:
        try:
            fcntl.flock(os.open(words.lock, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another one is running")
    if words.http is not None:
        serve_http(words.kind, words.after, words.http)
    else:
        serve_lines(words.kind, words.after)


if __name__ == "__main__":
    main()
