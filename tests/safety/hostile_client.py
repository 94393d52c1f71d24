"""Misbehaving clients, one function each: `python -I -S hostile_client.py CASE SERVER...`.

SERVER is a URL, or the command of a stdio server. Standard library only. Each process writes its id
to the file in ROGUE_PIDS.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn

CASES: dict[str, Callable[[], object]] = {}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def case(function: Callable[[], object]) -> Callable[[], object]:
    CASES[function.__name__.replace("_", "-")] = function
    return function


def hang() -> NoReturn:
    while True:
        signal.pause()


def note_pid() -> None:
    if "ROGUE_PIDS" in os.environ:
        with open(os.environ["ROGUE_PIDS"], "a") as file:  # noqa: PTH123 - quick to start
            file.write(f"{os.getpid()}\n")


def connect() -> socket.socket:
    host, _, port = sys.argv[2].split("/")[2].partition(":")
    return socket.create_connection((host, int(port)))


def post(body: bytes, length: int | None = None) -> bytes:
    path = "/" + sys.argv[2].split("/", 3)[3]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {sys.argv[2].split('/')[2]}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


def server() -> subprocess.Popen[bytes]:
    return subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)


def over_http() -> bool:
    return sys.argv[2].startswith("http")


def send(data: bytes, *, framed: bool = True) -> Any:
    """These bytes to the server: as the body of a POST, or as a line."""
    if over_http():
        sock = connect()
        sock.sendall(post(data) if framed else data)
        return sock
    process = server()
    assert process.stdin is not None
    process.stdin.write(data + b"\n")
    process.stdin.flush()
    return process


@case
def exits_at_once() -> None:
    sys.exit(0)


@case
def exits_with_code() -> None:
    sys.stderr.write("fatal: no such scenario\n")
    sys.exit(3)


@case
def never_connects() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


@case
def leaves_a_daemon() -> None:
    if not os.fork():
        os.setsid()
        if not os.fork():
            note_pid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            hang()
        os._exit(0)
    os.wait()


@case
def floods_stderr() -> None:
    while True:
        os.write(2, b"spam\n" * 10_000)


@case
def floods_stdout() -> None:
    while True:
        os.write(1, b"spam\n" * 10_000)


@case
def sends_garbage() -> None:
    kept = send(b"\x16\x03\x01\x02\x00 hello\r\n\r\n", framed=False)
    hang()
    del kept


@case
def sends_deep_json() -> None:
    kept = send(b"[" * 100_000 + b"]" * 100_000)
    hang()
    del kept


@case
def sends_without_end() -> None:
    """A body, or a line, without end."""
    if over_http():
        sock = connect()
        sock.sendall(post(b"", 1 << 40))
        while True:
            sock.sendall(b"x" * 65536)
    process = server()
    assert process.stdin is not None
    while True:
        process.stdin.write(b"x" * 65536)


@case
def asks_without_end() -> None:
    """Requests without end, and no answer is read."""
    if over_http():
        sock = connect()
        while True:
            sock.sendall(post(PING) * 100)
    process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    while True:
        process.stdin.write((PING + b"\n") * 100)


@case
def stops_inside_a_request() -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).encode()
    if over_http():
        sock = connect()
        sock.sendall(post(data, 1000))
        hang()
    process = server()
    assert process.stdin is not None
    process.stdin.write(data[:20])
    process.stdin.flush()
    hang()


if __name__ == "__main__":
    note_pid()
    CASES[sys.argv[1]]()
