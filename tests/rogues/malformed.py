"""A server whose answers have one fault of form: `python -I -S malformed.py FAULT [METHOD]`.

METHOD is the method whose answers are at fault, `tools/call` if none is given. The same faults are
served over HTTP by `malformed_http`.
"""

from __future__ import annotations

import gzip
import http.server
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TOOL = {
    "name": "echo",
    "description": "Says hello to whoever calls it, and returns nothing else.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "malformed", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "ping": {},
}


def plain(message: dict) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def put(name: str, value: object) -> Callable[[dict], bytes]:
    return lambda message: plain({**message, name: value})


def without(name: str) -> Callable[[dict], bytes]:
    return lambda message: plain({k: v for k, v in message.items() if k != name})


def inside(text: bytes) -> Callable[[dict], bytes]:
    """The result has one more member, with this as its value."""
    return lambda message: plain(message).replace(b'"result":{', b'"result":{"extra":%s,' % text)


FAULTS: dict[str, Callable[[dict], bytes]] = {
    "none": plain,
    # what is refused
    "invalid-utf8": inside(b'"\xff"'),
    "nan": inside(b"NaN"),
    "infinity": inside(b"-Infinity"),
    "batch": lambda message: plain([message]),  # type: ignore[arg-type]  # on purpose
    "bom": lambda message: b"\xef\xbb\xbf" + plain(message),
    "version-1": put("jsonrpc", "1.0"),
    "no-version": without("jsonrpc"),
    "error-null": put("error", None),
    "result-and-error": put("error", {"code": -32000, "message": "no"}),
    "neither": without("result"),
    "string-id": lambda message: plain({**message, "id": str(message["id"])}),
    "error-text": lambda message: plain({"jsonrpc": "2.0", "id": message["id"], "error": "no"}),
    # what is warned about
    "duplicate-key": inside(b'1,"extra":2'),
    "lone-surrogate": inside(b'"\\ud800"'),
    "huge-number": inside(b"1e999"),
    # what is accepted
    "float-id": lambda message: plain({**message, "id": float(message["id"])}),
    "extra-member": put("note", "hello"),
    # what is no message to anyone
    "two-lines": lambda message: json.dumps(message, indent=1).encode(),
    "utf-16": lambda message: json.dumps(message).encode("utf-16"),
    "gzip": lambda message: gzip.compress(plain(message)),
    "no-id": without("id"),
    "null-id": put("id", None),
}


NOISE = {
    "json-log": b'{"level":"info","time":1,"msg":"listening"}',
    "log-with-id": b'{"level":"info","id":1,"method":"initialize","msg":"request"}',
    "null-line": b"null",
    "text-line": b'"ready"',
}
"""What such a server writes to stdout before its first answer."""
ACCEPTED = {"null-202": b"null", "text-202": b'"Accepted"', "object-202": b'{"status":"ok"}'}
"""What stands below the 202 of such a server."""


def answers(line: bytes, fault: str, method: str) -> bytes | None:
    """What goes back for one message of the client."""
    try:
        request = json.loads(line)
    except ValueError:
        return plain({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}})
    if not isinstance(request, dict) or "id" not in request or "method" not in request:
        return None
    name = request.get("method")
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS.get(name)}
    if name not in RESULTS:
        error = {"code": -32601, "message": "Method not found"}
        return plain({"jsonrpc": "2.0", "id": request["id"], "error": error})
    return (FAULTS.get(fault, plain) if name == method else plain)(answer)


@contextmanager
def malformed_http(fault: str, method: str = "tools/call") -> Iterator[str]:
    """The URL of such a server on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = answers(body, fault, method)
            self.send_response(202 if answer is None else 200)
            answer = ACCEPTED.get(fault, b"") if answer is None else answer
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_GET(self) -> None:
            body = b'{"detail":"Method Not Allowed"}'
            self.send_response(405)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_DELETE = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    fault, method = sys.argv[1], (sys.argv[2:] or ["tools/call"])[0]
    times = 1
    if fault == "twice":
        fault, times = "none", 2
    noise = NOISE.get(fault, b"")
    for line in sys.stdin.buffer:
        answer = answers(line, fault, method)
        if noise:
            sys.stdout.buffer.write(noise + b"\n")
            noise = b""
        if answer is not None:
            again = times if b'"%s"' % method.encode() in line else 1
            sys.stdout.buffer.write((answer + b"\n") * again)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
