"""Raw peers for the demo server: a process on pipes, and plain sockets. No client of ours."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DEMO = (sys.executable, "-m", "mcptest.servers.demo")
BOUND = 60.0
"""Longest wait for anything, also on a busy machine."""

A, B, C, D, E = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
HANDSHAKE = (A, B, C, D)
ALL = (*HANDSHAKE, E)
CAPABILITIES: dict[str, Any] = {"sampling": {}, "roots": {}, "elicitation": {}}
CLIENT = {"name": "raw", "version": "1"}
PREFIX = "io.modelcontextprotocol/"

Obj = dict[str, Any]
Answer = Callable[[Obj], Obj]


def client_answer(request: Obj) -> Obj:
    """What a helpful client answers to each of the server's questions."""
    return {
        "sampling/createMessage": {
            "role": "assistant",
            "content": {"type": "text", "text": "42"},
            "model": "none",
        },
        "elicitation/create": {"action": "accept", "content": {"answer": "yes"}},
        "roots/list": {"roots": [{"uri": "file:///somewhere", "name": "there"}]},
        "ping": {},
    }[request["method"]]


def meta(capabilities: Obj | None = None, **more: Any) -> Obj:
    """The `_meta` of a stateless request."""
    return {
        PREFIX + "protocolVersion": E,
        PREFIX + "clientCapabilities": CAPABILITIES if capabilities is None else capabilities,
        PREFIX + "clientInfo": CLIENT,
        **more,
    }


def initialize_params(version: str, capabilities: Obj | None = None) -> Obj:
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES if capabilities is None else capabilities,
        "clientInfo": CLIENT,
    }


class StdioDemo:
    """The demo as a child process; every message that it writes is kept in `seen`."""

    def __init__(self, *options: str, command: Sequence[str] = DEMO, **how: Any) -> None:
        self.process = subprocess.Popen(
            [*command, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        )
        self.seen: list[Any] = []
        self.answer: Answer = client_answer
        self._data = b""
        self._last_id = 0

    def __enter__(self) -> StdioDemo:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def receive(self, bound: float = BOUND) -> Any:
        """The next message; fails when none comes in time."""
        line = self._line(bound)
        assert line is not None, "the demo said nothing"
        message = json.loads(line)
        self.seen.append(message)
        return message

    def _line(self, bound: float) -> bytes | None:
        assert self.process.stdout is not None
        end = time.monotonic() + bound
        while b"\n" not in self._data:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            assert chunk, f"the demo is gone: {self._stderr()}"
            self._data += chunk
        line, self._data = self._data.split(b"\n", 1)
        return line

    def _stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def request(self, method: str, params: Obj | None = None, identifier: Any = None) -> Obj:
        """Send a request and give its response; the server's own questions are answered."""
        if identifier is None:
            self._last_id += 1
            identifier = self._last_id
        message: Obj = {"jsonrpc": "2.0", "id": identifier, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self.response(identifier)

    def response(self, identifier: Any) -> Obj:
        while True:
            message = self.receive()
            if isinstance(message, list):
                continue
            if "method" in message and "id" in message:
                result = self.answer(message)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            elif "method" not in message and message.get("id") == identifier:
                assert type(message["id"]) is type(identifier)
                return message

    def call(self, method: str, params: Obj | None = None, **more: Any) -> Obj:
        """A stateless request."""
        whole = {**(params or {}), "_meta": meta(**more)}
        return self.request(method, whole)

    def initialize(self, version: str, capabilities: Obj | None = None) -> Obj:
        response = self.request("initialize", initialize_params(version, capabilities))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return response

    def notifications(self, method: str) -> list[Obj]:
        return [message for message in self.seen if message.get("method") == method]

    def assert_alive(self) -> None:
        response = self.request("server/discover", {"_meta": meta()}, "is it alive?")
        assert response.get("result", response).get("supportedVersions") == [E], response

    def close(self) -> int:
        """End of input; gives the exit code."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.process.wait(BOUND)


class HttpDemo:
    """The demo as a child process that listens on a port of its own."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.process = process

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)

    def ask(
        self,
        method: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        path: str = "/mcp",
    ) -> Reply:
        """One request on a connection of its own; the whole answer."""
        connection = self.connect()
        try:
            send(connection, method, body, headers, path)
            return Reply(connection.getresponse())
        finally:
            connection.close()


class Reply:
    """A whole HTTP response, with the messages in it."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.kind = (self.headers.get("content-type") or "").partition(";")[0]

    @property
    def events(self) -> list[dict[str, str]]:
        return list(events_of(self.body.decode().splitlines()))

    @property
    def messages(self) -> list[Any]:
        if self.kind == "text/event-stream":
            return [json.loads(event["data"]) for event in self.events if event.get("data")]
        return [json.loads(self.body)] if self.body else []

    @property
    def message(self) -> Any:
        """The response; it is the last of them."""
        return self.messages[-1]

    @property
    def code(self) -> int:
        code: int = self.message["error"]["code"]
        return code


def events_of(lines: Iterator[str] | list[str]) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in lines:
        if not line:
            if event:
                yield event
            event = {}
            continue
        name, _, value = line.partition(":")
        event[name] = value.removeprefix(" ")


def lines_of(response: http.client.HTTPResponse) -> Iterator[str]:
    """The lines of a response as they come."""
    while line := response.readline():
        yield line.decode().rstrip("\n")


BOTH = "application/json, text/event-stream"


def send(
    connection: http.client.HTTPConnection,
    method: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    path: str = "/mcp",
) -> None:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    fields = {"Accept": BOTH}
    if body is not None:
        fields["Content-Type"] = "application/json"
    fields |= headers or {}
    connection.request(method, path, data, {name: value for name, value in fields.items() if value})


def stateless_headers(message: Obj) -> dict[str, str]:
    """The headers that belong to a stateless request."""
    params = message.get("params", {})
    headers = {"MCP-Protocol-Version": E, "Mcp-Method": message["method"]}
    name = params.get("uri") if message["method"] == "resources/read" else params.get("name")
    if isinstance(name, str) and message["method"] in {
        "tools/call",
        "prompts/get",
        "resources/read",
    }:
        headers["Mcp-Name"] = name
    city = params.get("arguments", {}).get("city") if name == "weather" else None
    if city is not None:
        headers["Mcp-Param-City"] = city
    return headers


@contextmanager
def http_demo(folder: Path, *options: str) -> Iterator[HttpDemo]:
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "mcptest.servers.demo", "--transport", "http"]
    process = subprocess.Popen(
        [*command, "--port-file", str(port_file), *options], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        assert select.select([process.stderr], [], [], BOUND)[0], "the demo does not listen"
        line = process.stderr.readline().decode()
        assert line.startswith("listening on http://"), line
        yield HttpDemo(int(port_file.read_text()), process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(BOUND)
        finally:
            process.kill()
            process.stderr.close()
