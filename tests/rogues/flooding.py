"""Servers that never stop talking: `python -I -S flooding.py CASE [http|sse] [stateless]`.

Each behaves well until it does the one thing that it is named for. The same cases are served on
stdio and, with `http` or `sse` (HTTP+SSE of 2024-11-05), on a free port of the loopback: its URL is
the first line on stdout. With `stateless` they speak 2026-07-28 and nothing else. Standard library
only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

Message = dict[str, Any]
Flood = Iterator[bytes]

CHUNK = 64 * 1024
MANY = 100_000


def dump(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def note(method: str, **params: object) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


LOG = dump(note("notifications/message", level="info", data="flood"))


# What never ends


def logs() -> Flood:
    while True:
        yield LOG


def progress() -> Flood:
    step = 0
    while True:
        step += 1
        yield dump(note("notifications/progress", progressToken="mcptest", progress=step))


def list_changes() -> Flood:
    while True:
        yield dump({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def pings() -> Flood:
    number = 0
    while True:
        number += 1
        yield dump({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})


def samplings() -> Flood:
    number = 0
    asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "more"}}]}
    while True:
        number += 1
        yield dump(
            {
                "jsonrpc": "2.0",
                "id": f"s{number}",
                "method": "sampling/createMessage",
                "params": asked | {"maxTokens": 1},
            }
        )


def unasked_answers() -> Flood:
    number = 1_000_000
    while True:
        number += 1
        yield dump({"jsonrpc": "2.0", "id": number, "result": {}})


def noise() -> Flood:
    while True:
        yield b"INFO still working"


def large_logs() -> Flood:
    large = dump(note("notifications/message", level="info", data="x" * 1_000_000))
    while True:
        yield large


def largest_logs() -> Flood:
    """Each as large as a message may be."""
    large = dump(note("notifications/message", level="info", data="x" * 15_000_000))
    while True:
        yield large


def endless_line() -> Flood:
    """One message whose end never comes; `join` adds no newline to it."""
    yield b""


def many_logs() -> Flood:
    for _ in range(MANY):
        yield LOG


# When it happens

DURING_A_CALL = {
    "logs-in-a-call": logs,
    "progress-in-a-call": progress,
    "pings-in-a-call": pings,
    "samplings-in-a-call": samplings,
    "answers-in-a-call": unasked_answers,
    "noise-in-a-call": noise,
    "large-logs-in-a-call": large_logs,
    "largest-logs-in-a-call": largest_logs,
}
BEFORE_THE_BEGINNING = {"logs-at-first": logs, "pings-at-first": pings}
ALL_THE_TIME = {
    "logs-all-the-time": logs,
    "changes-all-the-time": list_changes,
    "pings-all-the-time": pings,
    "noise-all-the-time": noise,
}
BEFORE_EACH_ANSWER = {"many-logs-then-the-answer": many_logs}
SLOWLY = "drips-in-a-call"
ON_STDERR = "stderr-all-the-time"
NO_NEWLINE = "endless-line-in-a-call"
CASES = (
    *DURING_A_CALL,
    *BEFORE_THE_BEGINNING,
    *ALL_THE_TIME,
    *BEFORE_EACH_ANSWER,
    SLOWLY,
    ON_STDERR,
    NO_NEWLINE,
)
BEGINNINGS = frozenset({"initialize", "server/discover"})


STATELESS = "2026-07-28"


def reply(request: Message) -> Message:
    answer: Message = {"jsonrpc": "2.0", "id": request["id"]}
    if "stateless" in sys.argv[2:]:
        return answer | stateless_reply(request["method"])
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "flooding", "version": "1"},
        },
        "tools/list": {
            "tools": [
                {
                    "name": "echo",
                    "description": "Echo the text back.",
                    "inputSchema": schema,
                    "annotations": {"readOnlyHint": True},
                }
            ]
        },
        "tools/call": {"content": [{"type": "text", "text": "hello"}]},
        "logging/setLevel": {},
        "ping": {},
    }
    if request["method"] in results:
        return answer | {"result": results[request["method"]]}
    return answer | {"error": {"code": -32601, "message": "Method not found"}}


def stateless_reply(method: str) -> Message:
    """The same server in the era that has no sessions."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = {"name": "echo", "description": "Echo the text back.", "inputSchema": schema}
    cached = {"ttlMs": 0, "cacheScope": "private"}
    results: dict[str, Message] = {
        "server/discover": {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
        | cached,
        "tools/list": {"tools": [tool | {"annotations": {"readOnlyHint": True}}]} | cached,
        "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    }
    if method not in results:
        return {"error": {"code": -32601, "message": "Method not found"}}
    who = {"io.modelcontextprotocol/serverInfo": {"name": "flooding", "version": "1"}}
    return {"result": {"resultType": "complete", "_meta": who} | results[method]}


def flood_before(case: str, request: Message) -> Callable[[], Flood] | None:
    """What comes before the answer to this request; where it has no end, instead of it."""
    if case in BEFORE_EACH_ANSWER and request["method"] == "tools/call":
        return BEFORE_EACH_ANSWER[case]
    if request["method"] == "tools/call":
        return DURING_A_CALL.get(case)
    return BEFORE_THE_BEGINNING.get(case) if request["method"] in BEGINNINGS else None


def in_chunks(flood: Flood, frame: Callable[[bytes], bytes]) -> Flood:
    """Few writes for many messages."""
    gathered: list[bytes] = []
    size = 0
    for message in flood:
        gathered.append(frame(message))
        size += len(gathered[-1])
        if size > CHUNK:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


# On stdio


def write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def as_line(message: bytes) -> bytes:
    return message + b"\n"


def requests_on_stdin() -> Iterator[Message]:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if isinstance(message, dict) and "id" in message and "method" in message:
            yield message


def serve_stdio(case: str) -> None:
    saying = threading.Lock()

    def say(data: bytes) -> None:
        with saying:
            write(1, data)

    for request in requests_on_stdin():
        flood = flood_before(case, request)
        for chunk in in_chunks(flood(), as_line) if flood is not None else ():
            say(chunk)
        if request["method"] == "tools/call" and case in {SLOWLY, NO_NEWLINE}:
            never_end_a_line(say, 0.05 if case == SLOWLY else 0.0)
        answer = reply(request)
        say(as_line(dump(answer)))
        if request["method"] in BEGINNINGS and "error" not in answer:
            threading.Thread(target=go_on, args=(case, say), daemon=True).start()


def go_on(case: str, say: Callable[[bytes], None]) -> None:
    """What a session has to bear from its beginning on."""
    if case in ALL_THE_TIME:
        with contextlib.suppress(BrokenPipeError):
            for chunk in in_chunks(ALL_THE_TIME[case](), as_line):
                say(chunk)
    while case == ON_STDERR:
        write(2, b"warning: still here\n" * 3000)


def never_end_a_line(say: Callable[[bytes], None], pause: float) -> NoReturn:
    say(b'{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"')
    while True:
        say(b"x" if pause else b"x" * CHUNK)
        time.sleep(pause)


# Over HTTP

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def as_event(message: bytes) -> bytes:
    return b"data: " + message + b"\n\n"


def read_request(sock: socket.socket) -> tuple[str, bytes] | None:
    """The method and the body of the one request of a connection."""
    came = b""
    while b"\r\n\r\n" not in came:
        chunk = sock.recv(CHUNK)
        if not chunk:
            return None
        came += chunk
    head, _, body = came.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    size = next((int(n[15:]) for n in lines if n.lower().startswith("content-length:")), 0)
    while len(body) < size:
        body += sock.recv(CHUNK)
    return first.split(" ")[0], body


def serve_connection(case: str, sock: socket.socket) -> None:
    with sock, contextlib.suppress(ConnectionError):
        read = read_request(sock)
        if read is None:
            return
        method, body = read
        if method == "GET" and case in ALL_THE_TIME:
            sock.sendall(STREAM)
            for chunk in in_chunks(ALL_THE_TIME[case](), as_event):
                sock.sendall(chunk)
        if method != "POST":
            sock.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        try:
            message = json.loads(body)
        except ValueError:
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            sock.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        sock.sendall(STREAM)
        answer_with_stream(case, message, sock.sendall)


def answer_with_stream(case: str, request: Message, say: Callable[[bytes], None]) -> None:
    flood = flood_before(case, request)
    if flood is not None:
        for chunk in in_chunks(flood(), as_event):
            say(chunk)
    if request["method"] == "tools/call" and case in {SLOWLY, NO_NEWLINE}:
        say(b"data: ")
        never_end_a_line(say, 0.05 if case == SLOWLY else 0.0)
    say(as_event(dump(reply(request))))


# Over HTTP+SSE


class SseSite:
    """One stream for all that the server says; what is posted is answered there."""

    def __init__(self) -> None:
        self._saying = threading.Lock()
        self._stream: socket.socket | None = None

    def serve_connection(self, case: str, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            read = read_request(sock)
            if read is None:
                return
            method, body = read
            if method == "GET":
                self._stream = sock
                self.say(STREAM + b"event: endpoint\ndata: /messages\n\n")
                return
            sock.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            sock.close()
            message = json.loads(body)
            if isinstance(message, dict) and "id" in message and "method" in message:
                answer_with_stream(case, message, self.say)

    def say(self, data: bytes) -> None:
        assert self._stream is not None
        with self._saying:
            self._stream.sendall(data)


def serve_http(case: str, way: str) -> NoReturn:
    serve = SseSite().serve_connection if way == "sse" else serve_connection
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    path = "sse" if way == "sse" else "mcp"
    write(1, f"http://127.0.0.1:{listener.getsockname()[1]}/{path}\n".encode())
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(case, sock), daemon=True).start()


if __name__ == "__main__":
    for way in {"http", "sse"}.intersection(sys.argv[2:]):
        serve_http(sys.argv[1], way)
    serve_stdio(sys.argv[1])
    os._exit(0)
