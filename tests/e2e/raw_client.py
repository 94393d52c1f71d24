"""Clients of few words, as programs: what each does is named by its first argument.

The last argument is the server's URL; over stdio the words behind `--` are the server's command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
NAMES = {"name": "raw", "version": "1"}
PREFIX = "io.modelcontextprotocol/"
CALL = {"name": "add_numbers", "arguments": {"a": 1, "b": 2}}


def requests() -> list[dict]:
    """What it takes to call the tool in the revision that was asked for."""
    if VERSION >= "2026":
        meta = {f"{PREFIX}protocolVersion": VERSION, f"{PREFIX}clientCapabilities": {}}
        meta[f"{PREFIX}clientInfo"] = NAMES
        listing, calling = {"_meta": meta}, {"_meta": meta, **CALL}
        first: list[dict] = []
    else:
        begin = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": NAMES}
        listing, calling = {}, CALL
        first = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
    return [
        *first,
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": listing},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": calling},
    ]


def over_http(url: str) -> dict[str, str]:
    """Gives the headers of the last request."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname, place.port, timeout=20)
    headers = {"Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    for message in requests():
        if message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = VERSION
        headers["Mcp-Method"] = message["method"]
        headers["Mcp-Name"] = message.get("params", {}).get("name", "")
        sent = {key: value for key, value in headers.items() if value}
        connection.request("POST", place.path, json.dumps(message), sent)
        answer = connection.getresponse()
        answer.read()
        if answer.headers["Mcp-Session-Id"]:
            headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
    connection.close()
    return sent


def over_stdio(command: list[str], *, wait: bool = True) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    for message in requests():
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        if "id" in message:
            assert json.loads(server.stdout.readline())["id"] == message["id"]
    if wait:
        server.stdin.close()
        assert server.wait() == 0
    return server


def good(*rest: str) -> None:
    over_http(rest[-1])


def good_on_stdio(*rest: str) -> None:
    assert list(rest) == json.loads(os.environ["MCP_CONFORMANCE_SERVER_COMMAND"])
    over_stdio(list(rest))


def twice_on_stdio(*rest: str) -> None:
    over_stdio(list(rest))
    over_stdio(list(rest))


def leaves_its_server(*rest: str) -> None:
    over_stdio(list(rest), wait=False)
    os._exit(0)


def ends_with(code: str, *rest: str) -> None:
    over_http(rest[-1])
    sys.exit(int(code))


def crashes(*rest: str) -> None:
    over_http(rest[-1])
    os.kill(os.getpid(), signal.SIGSEGV)


def stays(*rest: str) -> None:
    over_http(rest[-1])
    time.sleep(600)


def stays_with_children(file: str, *rest: str) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    child = subprocess.Popen(sleep)
    hidden = subprocess.Popen(sleep, start_new_session=True)
    partial = Path(f"{file}.partial")
    partial.write_text(f"{os.getpid()} {child.pid} {hidden.pid}")
    partial.rename(file)
    time.sleep(60)


def deaf(file: str, *rest: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(file).touch()
    time.sleep(60)


def loud(*rest: str) -> None:
    for _ in range(400):
        sys.stdout.write("\x1b[31m::error::" + "x" * 1000 + "\n")
    sys.stderr.write("the last words\n")


def tell(*rest: str) -> None:
    names = sorted(name for name in os.environ if name.startswith("MCP_CONFORMANCE_"))
    print(json.dumps({name: os.environ[name] for name in names} | {"argv": rest}))


def whispers(*rest: str) -> None:
    print(os.environ["API_TOKEN"])
    CALL["name"] = os.environ["API_TOKEN"]
    over_http(rest[-1])


def half(*rest: str) -> None:
    """Sends half of a message after all others, and nothing more."""
    text = json.dumps(requests()[-1]).encode()
    if "://" in rest[-1]:
        headers, place = over_http(rest[-1]), urlsplit(rest[-1])
        connection = HTTPConnection(place.hostname, place.port)
        connection.putrequest("POST", place.path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(text)))
        connection.endheaders(text[: len(text) // 2])
    else:
        server = over_stdio(list(rest), wait=False)
        os.write(server.stdin.fileno(), text[: len(text) // 2])
    signal.pause()


def nothing(*rest: str) -> None:
    """The client that no scenario may pass."""


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
