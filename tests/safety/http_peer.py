"""The misbehaving HTTP servers of `tests/rogues` as a process: `http_peer.py KIND NAME [METHOD]`.

The first line on stdout is the URL; the end of stdin ends it.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable

from tests.rogues.http_script import LAST_CHUNK, PONG, SSE_HEAD, Script, Wire, chunk, reply, serving
from tests.rogues.malformed import malformed_http
from tests.rogues.test_http_gallery import (
    GALLERY,
    after_request,
    for_ever,
    sends,
    stops_inside_the_body,
)

JSON_HEAD = SSE_HEAD.replace(b"text/event-stream", b"application/json")
BODY = chunk(b"{}") + b"0\r\n"


def head_in_bytes(wire: Wire) -> None:
    """A head that never ends, a byte each tenth of a second."""
    for byte in itertools.chain(b"HTTP/1.1 200 OK\r\nX-Slow: ", itertools.repeat(120)):
        wire.send(bytes([byte]))
        time.sleep(0.1)


def half_closed(wire: Wire) -> None:
    wire.sock.shutdown(socket.SHUT_WR)
    wire.wait_for_hang_up()


def wants_itself(wire: Wire) -> None:
    """Who wants to know how to get a token is sent here, where a token is wanted."""
    where = f"http://127.0.0.1:{wire.sock.getsockname()[1]}/mcp"
    challenge = f'WWW-Authenticate: Bearer resource_metadata="{where}"\r\n'
    wire.send(reply(b"", "401 Unauthorized", None, challenge))


def resumed(event: bytes) -> Script:
    """A stream that ends without an answer, and promises more to whoever comes back."""
    return after_request(sends(SSE_HEAD + chunk(event) + LAST_CHUNK))


INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "http", "version": "1"},
}
ECHO = {
    "name": "echo",
    "description": "Says hello to whoever calls it, and returns nothing else.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
RESULTS = {
    "initialize": INITIALIZED,
    "tools/list": {"tools": [ECHO]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "ping": {},
}


def served(send: Callable[[Wire, bytes], None]) -> Script:
    """A small, healthy server that sends its answers in its own way."""

    def script(wire: Wire) -> None:
        while request := wire.request():
            if request.method != "POST":
                wire.send(reply(b"", "405 Method Not Allowed", None))
                continue
            asked = json.loads(request.body)
            if not isinstance(asked, dict) or "id" not in asked or "method" not in asked:
                wire.send(reply(b"", "202 Accepted", None))
                continue
            result = RESULTS.get(asked["method"])
            answer: dict[str, object] = {"jsonrpc": "2.0", "id": asked["id"]}
            if result is None:
                answer["error"] = {"code": -32601, "message": "Method not found"}
            else:
                answer["result"] = result
            send(wire, json.dumps(answer, separators=(",", ":")).encode())

    return script


def byte_by_byte(wire: Wire, answer: bytes) -> None:
    """Each byte in a segment of its own."""
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in reply(answer):
        wire.send(bytes([byte]))


def by_carriage_returns(wire: Wire, answer: bytes) -> None:
    """Events whose lines end with a carriage return alone, which the format allows."""
    wire.send(SSE_HEAD + chunk(b": hello\rdata: " + answer + b"\r\r") + LAST_CHUNK)


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
SCRIPTS = {name: rogue.script for name, rogue in GALLERY.items()} | {
    "slow body": after_request(stops_inside_the_body),
    "head in bytes": after_request(head_in_bytes),
    "half closed": after_request(half_closed),
    "wants itself": after_request(wants_itself),
    "chunk extensions": after_request(sends(JSON_HEAD + b"5"), for_ever(b";x=y" * 4096)),
    "trailers": after_request(sends(JSON_HEAD + BODY), for_ever(b"X: y\r\n" * 999)),
    "event id": after_request(sends(SSE_HEAD), for_ever(chunk(b"id: " + b"x" * 65536))),
    "byte by byte": served(byte_by_byte),
    "carriage returns": served(by_carriage_returns),
    "comments without end": after_request(sends(SSE_HEAD), for_ever(chunk(b": x\n\n" * 99))),
    "two lengths": after_request(sends(LENGTH + b"2\r\nContent-Length: 3\r\n\r\n{}")),
    "length too short": after_request(sends(LENGTH + b"5\r\n\r\n" + PONG)),
    "length below nothing": after_request(sends(LENGTH + b"-1\r\n\r\n" + PONG)),
    "chunk cut off": after_request(sends(JSON_HEAD + b"ffff\r\n{}")),
    "no head": after_request(sends(PONG)),
    "HTTP/2 frames": after_request(sends(b"\0\0\x12\x04" + b"\0" * 23 + b"PRI * HTTP/2.0\r\n\r\n")),
    "TLS alert": after_request(sends(b"\x15\x03\x03\0\x02\x02\x46")),
    "204": after_request(sends(b"HTTP/1.1 204 No Content\r\n\r\n"), Wire.wait_for_hang_up),
    "retry at once": resumed(b"id: 1\nretry: 0\ndata:\n\n"),
    "retry never": resumed(b"id: 1\nretry: 999999999999\ndata:\n\n"),
}


def main(kind: str, *words: str) -> None:
    def wait(url: str) -> None:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
        os._exit(0)

    if kind == "malformed":
        with malformed_http(*words) as url:
            wait(url)
    else:
        with serving(SCRIPTS[words[0]]) as server:
            wait(server.url)


if __name__ == "__main__":
    main(*sys.argv[1:])
