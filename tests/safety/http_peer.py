"""The misbehaving HTTP servers of `tests/rogues` as a process: `http_peer.py KIND NAME [METHOD]`.

The first line on stdout is the URL; the end of stdin ends it.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable

from tests.rogues.http_script import (
    LAST_CHUNK,
    PONG,
    SSE_HEAD,
    Script,
    Wire,
    always,
    chunk,
    reply,
    serving,
)
from tests.rogues.malformed import malformed_http
from tests.rogues.test_http_gallery import (
    BOMB,
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


def compact(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


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
            send(wire, compact(answer))

    return script


def byte_by_byte(wire: Wire, answer: bytes) -> None:
    """Each byte in a segment of its own."""
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in reply(answer):
        wire.send(bytes([byte]))


def by_carriage_returns(wire: Wire, answer: bytes) -> None:
    """Events whose lines end with a carriage return alone, which the format allows."""
    wire.send(SSE_HEAD + chunk(b": hello\rdata: " + answer + b"\r\r") + LAST_CHUNK)


def with_head(head: str) -> Callable[[Wire, bytes], None]:
    """Sound answers below these lines."""

    def send(wire: Wire, answer: bytes) -> None:
        wire.send(reply(answer, extra=head))

    return send


def http_1_0(wire: Wire, answer: bytes) -> None:
    """A body that ends with the connection."""
    wire.send(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + answer)
    wire.sock.shutdown(socket.SHUT_RDWR)


def in_small_chunks(wire: Wire, answer: bytes) -> None:
    wire.send(JSON_HEAD + b"".join(chunk(bytes([byte])) for byte in answer) + LAST_CHUNK)


def answered_twice(wire: Wire, answer: bytes) -> None:
    """A second response that nobody asked for, on the same connection."""
    wire.send(reply(answer) + reply(answer.replace(b"hello", b"goodbye")))


def closed_unsaid(wire: Wire, answer: bytes) -> None:
    wire.send(reply(answer))
    raise ConnectionError("it does not wait for another request")


def in_many_data_lines(wire: Wire, answer: bytes) -> None:
    """An event of 3,000,000 lines, each of them empty but for its name."""
    wire.send(SSE_HEAD)
    for _ in range(100):
        wire.send(chunk(b"data:\n" * 30_000))
    wire.send(chunk(b"data: " + answer + b"\n\n") + LAST_CHUNK)


def kept_alive(wire: Wire) -> None:
    """A comment each tenth of a second, and never an answer."""
    wire.send(SSE_HEAD)
    while True:
        wire.send(chunk(b": keep-alive\n\n"))
        time.sleep(0.1)


def one_byte_a_second(wire: Wire) -> None:
    wire.send(SSE_HEAD)
    for byte in itertools.cycle(b"data: {"):
        wire.send(chunk(bytes([byte])))
        time.sleep(1)


def further_each_time(wire: Wire) -> None:
    while request := wire.request():
        extra = f"Location: {request.target}x\r\n"
        wire.send(reply(b"", "307 Further", None, extra))


def notifications_unanswered(wire: Wire) -> None:
    """Requests are answered; for what needs no answer, there is not even a status."""
    while request := wire.request():
        asked = json.loads(request.body) if request.method == "POST" else {}
        if "id" not in asked:
            wire.wait_for_hang_up()
            return
        result = RESULTS.get(asked["method"], {})
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        wire.send(reply(compact(answer)))


def forgets_sessions(wire: Wire) -> None:
    """Each session is over as soon as it has begun."""
    while request := wire.request():
        asked = json.loads(request.body) if request.method == "POST" else {}
        if asked.get("method") != "initialize":
            wire.send(reply(b"", "404 Not Found", None))
            continue
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": INITIALIZED}
        extra = f"Mcp-Session-Id: {os.urandom(8).hex()}\r\n"
        wire.send(reply(compact(answer), extra=extra))


def keeps_goodbyes(wire: Wire) -> None:
    """The end of a session is never answered."""
    while request := wire.request():
        if request.method == "DELETE":
            wire.wait_for_hang_up()
            return
        asked = json.loads(request.body) if request.method == "POST" else {}
        if "id" not in asked:
            wire.send(reply(b"", "202 Accepted" if asked else "405 No", None))
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] in RESULTS:
            answer["result"] = RESULTS[asked["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        wire.send(reply(compact(answer), extra="Mcp-Session-Id: one\r\n"))


STEERING = "\x1b[2J\x1b]0;owned\x07 ::error::x \u202e"
METADATA = "http://169.254.169.254/\x1b[2J"
TWICE = gzip.compress(BOMB)
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
    "HTTP/1.0": served(http_1_0),
    "small chunks": served(in_small_chunks),
    "second response": served(answered_twice),
    "closes unsaid": served(closed_unsaid),
    "many cookies": served(with_head("Set-Cookie: a=b\r\n" * 2_000)),
    "long session": served(with_head(f"Mcp-Session-Id: {'s' * 60_000}\r\n")),
    "session of control codes": served(with_head("Mcp-Session-Id: a\x01\u00e9 b\r\n")),
    "data lines": served(in_many_data_lines),
    "both lengths": served(
        lambda wire, answer: wire.send(
            reply(b"", extra="Transfer-Encoding: chunked\r\n") + chunk(answer) + LAST_CHUNK
        )
    ),
    "keep-alives without end": after_request(kept_alive),
    "one byte a second": after_request(one_byte_a_second),
    "redirects further": further_each_time,
    "redirect steers": always(reply(b"", "307 A", None, f"Location: {METADATA}\r\n")),
    "redirect with a password": always(
        reply(b"", "308 A", None, "Location: http://user:pass@127.0.0.1:1/\r\n")
    ),
    "redirect nowhere": always(reply(b"", "307 A", None)),
    "notifications unanswered": notifications_unanswered,
    "forgets sessions": forgets_sessions,
    "keeps goodbyes": keeps_goodbyes,
    "huge chunk": after_request(
        sends(JSON_HEAD + b"FFFFFFFFFFFFFFFF\r\n{}"), Wire.wait_for_hang_up
    ),
    "negative chunk": after_request(sends(JSON_HEAD + b"-5\r\n{}\r\n0\r\n\r\n")),
    "steering status": always(reply(b"", f"500 {STEERING}", None)),
    "steering challenge": always(
        reply(b"", "401 No", None, f'WWW-Authenticate: Bearer resource_metadata="{METADATA}"\r\n')
    ),
    "later": always(reply(b"", "429 Later", None, "Retry-After: 999999999\r\n")),
    "packed twice": always(reply(TWICE, extra="Content-Encoding: gzip, gzip\r\n")),
    "reset at once": Wire.reset,
    "version of nobody": after_request(sends(b"HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n")),
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
