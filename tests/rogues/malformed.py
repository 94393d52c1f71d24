"""A server whose answers have one fault of form: `python -I -S malformed.py FAULT [METHOD]`.

METHOD is the method whose answers are at fault, `tools/call` if none is given. With `each` as FAULT
there is a tool for every fault, which answers with it. Both eras are spoken. The same faults, and
those of HTTP, are served over HTTP by `malformed_http`.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STATELESS = "2026-07-28"
CAPABILITIES = {"tools": {}}
INFO = {"name": "malformed", "version": "1"}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "serverInfo": INFO,
    },
    "server/discover": {
        "supportedVersions": [STATELESS],
        "capabilities": CAPABILITIES,
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    },
    "tools/list": {},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "ping": {},
}
OLDER = {"2024-11-05", "2025-03-26", "2025-06-18"}
CACHED = {"server/discover", "tools/list"}
HUNDRED_THOUSAND = 100_000


def plain(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def put(name: str, value: object) -> Callable[[dict], bytes]:
    return lambda message: plain({**message, name: value})


def without(name: str) -> Callable[[dict], bytes]:
    return lambda message: plain({k: v for k, v in message.items() if k != name})


def inside(text: bytes) -> Callable[[dict], bytes]:
    """The result has one more member, with this as its value."""
    return lambda message: plain(message).replace(b'"result":{', b'"result":{"extra":%s,' % text)


def error(value: object) -> Callable[[dict], bytes]:
    return lambda message: plain({"jsonrpc": "2.0", "id": message["id"], "error": value})


def content(*blocks: object) -> Callable[[dict], bytes]:
    """A call's result has this content."""
    return lambda message: plain({**message, "result": {**message["result"], "content": blocks}})


FAULTS: dict[str, Callable[[dict], bytes]] = {
    "none": plain,
    # the text
    "invalid-utf8": inside(b'"\xff"'),
    "invalid-utf8-key": inside(b'1,"k\xff":2'),
    "overlong-utf8": inside(b'"\xc0\xaf"'),
    "surrogate-utf8": inside(b'"\xed\xa0\x80"'),
    "latin-1": inside(b'"caf\xe9"'),
    "nan": inside(b"NaN"),
    "infinity": inside(b"Infinity"),
    "minus-infinity": inside(b"-Infinity"),
    "bom": lambda message: b"\xef\xbb\xbf" + plain(message),
    "too-deep": inside(b"[" * HUNDRED_THOUSAND + b"]" * HUNDRED_THOUSAND),
    "trailing-comma": lambda message: plain(message)[:-1] + b",}",
    "single-quotes": lambda message: plain(message).replace(b'"', b"'"),
    "python": lambda message: repr({**message, "more": [None, True]}).encode(),
    "truncated": lambda message: plain(message)[:-10],
    "nul-byte": inside(b'"\0"'),
    "nul-behind": lambda message: plain(message) + b"\0",
    "prefix": lambda message: b"INFO sending: " + plain(message),
    "suffix": lambda message: plain(message) + b" // sent",
    "utf-16-le": lambda message: json.dumps(message).encode("utf-16-le"),
    "utf-16-be": lambda message: json.dumps(message).encode("utf-16-be"),
    "utf-16-bom": lambda message: json.dumps(message).encode("utf-16"),
    "utf-16-be-bom": lambda message: b"\xfe\xff" + json.dumps(message).encode("utf-16-be"),
    "gzip": lambda message: gzip.compress(plain(message), mtime=0),
    "html": lambda message: b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "two-on-a-line": lambda message: plain(message) + plain({**message, "id": 99_999}),
    "server-sent-event": lambda message: b"data: " + plain(message),
    # the message
    "batch": lambda message: plain([message]),
    "empty-batch": lambda message: b"[]",
    "version-1": put("jsonrpc", "1.0"),
    "version-number": put("jsonrpc", 2.0),
    "no-version": without("jsonrpc"),
    "string-id": lambda message: plain({**message, "id": str(message["id"])}),
    "fraction-id": lambda message: plain({**message, "id": message["id"] + 0.5}),
    "other-id": put("id", 99_999),
    "no-id": without("id"),
    "null-id": put("id", None),
    "error-null": put("error", None),
    "result-and-error": put("error", {"code": -32000, "message": "no"}),
    "neither": without("result"),
    "error-text": error("no"),
    "error-without-code": error({"message": "no"}),
    "error-code-text": error({"code": "E_NO", "message": "no"}),
    "error-code-fraction": error({"code": 1.5, "message": "no"}),
    "error-without-message": error({"code": -32000}),
    "unknown-content": content({"type": "video", "data": "", "mimeType": "video/mp4"}),
    "untyped-content": content({"text": "hello"}),
    "result-null": put("result", None),
    "result-text": put("result", "hello"),
    # what JSON allows and parsers differ on
    "duplicate-key": inside(b'1,"extra":2'),
    "duplicate-in-envelope": lambda message: b'{"jsonrpc":"2.0",' + plain(message)[1:],
    "duplicate-id": lambda message: b'{"id":99999,' + plain(message)[1:],
    "duplicate-in-structured": lambda message: plain(message).replace(
        b'"result":{', b'"result":{"structuredContent":{"a":1,"a":2},'
    ),
    "lone-surrogate": inside(b'"\\ud800"'),
    "huge-number": inside(b"1e400"),
    "long-integer": inside(b"7" * 5_000),
    # what is accepted
    "float-id": lambda message: plain({**message, "id": float(message["id"])}),
    "extra-member": put("note", "hello"),
    "carriage-return": lambda message: plain(message) + b"\r",
}
FRAMINGS: dict[str, Callable[[bytes], bytes]] = {
    "two-lines": lambda text: json.dumps(json.loads(text), indent=1).encode() + b"\n",
    "content-length": lambda text: b"Content-Length: %d\r\n\r\n%s" % (len(text), text),
    "no-newline": lambda text: text,
    "carriage-return-only": lambda text: text + b"\r",
    "event-stream": lambda text: b"event: message\ndata: " + text + b"\n\n",
    "twice": lambda text: (text + b"\n") * 2,
    "twice-differently": lambda text: text + b"\n" + text.replace(b"hello", b"goodbye") + b"\n",
    "late": lambda text: text + b"\n",
}
"""How a sound message is written to stdout, its end included."""
LATE = {"late"}
"""What is sent a second time before the next answer, or at the end."""

NOISE = {
    "json-log": b'{"level":"info","time":1,"msg":"listening"}',
    "log-with-id": b'{"level":"info","id":1,"method":"initialize","msg":"request"}',
    "null-line": b"null",
    "text-line": b'"ready"',
}
"""What such a server writes to stdout before its first answer."""
STRAY = b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}'
"""The same as `stray-error`: an error with an id that nobody used."""
ACCEPTED = {"null-202": b"null", "text-202": b'"Accepted"', "object-202": b'{"status":"ok"}'}
"""What stands below the 202 of such a server."""

JSON_TYPE, EVENTS = "application/json", "text/event-stream"
BODIES: dict[str, Callable[[bytes], tuple[int, str, bytes, int]]] = {
    "text-plain": lambda text: (200, "text/plain", text, 0),
    "no-content-type": lambda text: (200, "", text, 0),
    "charset-latin-1": lambda text: (200, f"{JSON_TYPE}; charset=iso-8859-1", text, 0),
    "charset-utf-16": lambda text: (
        *(200, f"{JSON_TYPE}; charset=utf-16"),
        *(text.decode().encode("utf-16"), 0),
    ),
    "length-too-long": lambda text: (200, JSON_TYPE, text, 10),
    "length-too-short": lambda text: (200, JSON_TYPE, text, -10),
    "empty-body": lambda text: (200, JSON_TYPE, b"", 0),
    "accepted-only": lambda text: (202, JSON_TYPE, b"", 0),
    "no-content": lambda text: (204, JSON_TYPE, b"", 0),
    "array-body": lambda text: (200, JSON_TYPE, b"[" + text + b"]", 0),
    "events-as-json": lambda text: (200, JSON_TYPE, b"data: " + text + b"\n\n", 0),
    "json-as-events": lambda text: (200, EVENTS, text, 0),
    "event-not-json": lambda text: (200, EVENTS, b"data: hello\n\n", 0),
    "event-unfinished": lambda text: (200, EVENTS, b"data: " + text + b"\n", 0),
    "event-other-name": lambda text: (200, EVENTS, b"event: ready\ndata: " + text + b"\n\n", 0),
    "event-twice": lambda text: (200, EVENTS, (b"data: " + text + b"\n\n") * 2, 0),
    "event-bom": lambda text: (200, EVENTS, b"\xef\xbb\xbfdata: " + text + b"\n\n", 0),
    "no-event": lambda text: (200, EVENTS, b": nothing\n\n", 0),
}
"""How a sound message is sent over HTTP: status, content type, body, and how much too long its
length is said to be."""


ON_STDIO, OVER_HTTP = [*FAULTS, *FRAMINGS], [*FAULTS, *BODIES]


def offered(fault: str, every: list[str]) -> list[dict]:
    """The tools: one for every fault, or one that has the fault."""
    return [
        {
            "name": name,
            "description": f"Says hello to whoever calls it ({name}), and returns nothing else.",
            "inputSchema": {"type": "object", "additionalProperties": False},
            "annotations": {"readOnlyHint": True},
        }
        for name in (every if fault == "each" else ["echo"])
    ]


def answer_to(line: bytes, fault: str, method: str, every: list[str]) -> tuple[bytes, str] | None:
    """What goes back for one message of the client, and which framing or body carries it."""
    try:
        request = json.loads(line)
    except ValueError:
        refusal = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}
        return plain(refusal), ""
    if not isinstance(request, dict) or "id" not in request or "method" not in request:
        return None
    name, params = request["method"], request.get("params") or {}
    if name not in RESULTS:
        refusal = {"code": -32601, "message": "Method not found"}
        return plain({"jsonrpc": "2.0", "id": request["id"], "error": refusal}), ""
    result: dict = dict(RESULTS[name])
    if name == "tools/list":
        result["tools"] = offered(fault, every)
    if name == "initialize" and params.get("protocolVersion") in OLDER:
        result["protocolVersion"] = params["protocolVersion"]
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta:
        result["resultType"] = "complete"
        result |= {"ttlMs": 0, "cacheScope": "public"} if name in CACHED else {}
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    if name != method:
        return plain(answer), ""
    if fault == "each":
        fault = str(params.get("name"))
    return FAULTS.get(fault, plain)(answer), fault


@contextmanager
def malformed_http(fault: str, method: str = "tools/call") -> Iterator[str]:
    """The URL of such a server on loopback."""
    import http.server  # over stdio nobody needs it, and it takes longer than all else

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body at once

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = answer_to(body, fault, method, OVER_HTTP)
            if answer is None:
                self.reply(202, JSON_TYPE, ACCEPTED.get(fault, b""))
                return
            text, how = answer
            self.reply(*BODIES.get(how, lambda text: (200, JSON_TYPE, text, 0))(text))

        def reply(self, status: int, kind: str, body: bytes, lie: int = 0) -> None:
            self.send_response(status)
            if kind:
                self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) + lie))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = bool(lie)

        def do_GET(self) -> None:
            self.reply(405, JSON_TYPE, b'{"detail":"Method Not Allowed"}')

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


def react(fault: str, method: str = "tools/call") -> Callable[[str, object, bytes], bytes]:
    """The same over HTTP+SSE: what goes to the stream for a POST."""

    def answer(path: str, headers: object, body: bytes) -> bytes:
        said = answer_to(body, fault, method, list(FAULTS)) if body else None
        return b"" if said is None else b"data: " + said[0] + b"\n\n"

    return answer


def main() -> None:
    fault, method = sys.argv[1], (sys.argv[2:] or ["tools/call"])[0]
    noise = STRAY if fault == "stray-error" else NOISE.get(fault, b"")
    late = b""
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        answer = answer_to(line, fault, method, ON_STDIO)
        if noise:
            out.write(noise + b"\n")
            noise = b""
        if answer is not None:
            text, how = answer
            out.write(late + FRAMINGS.get(how, lambda text: text + b"\n")(text))
            late = text + b"\n" if how in LATE else b""
            out.flush()
    out.write(late)
    out.flush()


if __name__ == "__main__":
    main()
