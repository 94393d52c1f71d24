"""A scripted server in a thread of its own, and raw clients that talk to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcptest.core.capture import AnyRecord
from mcptest.core.revision import Revision
from mcptest.servers.scripted.conforming import Conforming
from mcptest.servers.scripted.recording import SiteTape
from mcptest.servers.scripted.script import Obj, Script, ScriptedCall, ScriptedSite
from mcptest.transport.loop import READ, Loop

BOUND = 20.0
"""Longest wait for anything, also on a busy machine."""
D = Revision.V2025_11_25
E = Revision.V2026_07_28
PREFIX = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"
R = TypeVar("R", bound=AnyRecord)


class Adder(Conforming):
    """One tool, so that there is something to call."""

    tools = (
        {
            "name": "add",
            "description": "Adds two numbers",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            },
        },
    )

    def call_tool(self, call: ScriptedCall, name: str, arguments: Obj) -> None:
        if name == "add":
            self.text(call, str(arguments["a"] + arguments["b"]))
        else:
            super().call_tool(call, name, arguments)


class Play:
    """A script on its stage, with a loop that runs beside the test."""

    def __init__(self, script: Script, revision: Revision) -> None:
        self.tape = SiteTape()
        self.loop = Loop()
        self.tape.opened("test", "http", revision.value)
        self.site = ScriptedSite(script, self.tape, self.loop, [revision])
        self.port = int(self.site.url().rpartition(":")[2])
        self._stopped = False
        self._ears, self._wake = os.pipe()
        self.loop.watch(self._ears, READ, lambda events: self.loop.stop())
        self._thread = threading.Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the loop has ended by itself."""
        self._thread.join(BOUND)
        assert not self._thread.is_alive(), "the loop still runs"

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        os.write(self._wake, b"!")
        self.wait()
        self.site.close()
        os.close(self._ears)
        os.close(self._wake)

    def of(self, kind: type[R]) -> list[R]:
        """The records of one kind. The server is stopped first, so that all of them are there."""
        self.stop()
        return [record for record in self.tape.records if isinstance(record, kind)]


@contextlib.contextmanager
def playing(script: Script, revision: Revision) -> Iterator[Play]:
    play = Play(script, revision)
    try:
        yield play
    finally:
        play.stop()


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[dict[str, str]]:
        """The fields of each event."""
        blocks = self.body.decode().strip().split("\n\n")
        return [
            {name: value.removeprefix(" ") for name, _, value in map(_field, block.split("\n"))}
            for block in blocks
        ]


def _field(line: str) -> tuple[str, str, str]:
    return line.partition(":")


@dataclass
class Http:
    """A client that does just what it is told."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def send(
        self,
        method: str,
        path: str = "/mcp",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def post(self, message: Any, headers: Mapping[str, str] | None = None) -> Answer:
        given = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
        return self.send("POST", "/mcp", json.dumps(message).encode(), given)

    def initialize(self, version: str = "2025-11-25") -> Answer:
        """Begin a session and remember it."""
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        if "Mcp-Session-Id" in answer.headers:
            self.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        return answer

    def ask(self, method: str, params: Obj | None = None, identifier: Any = 1) -> Answer:
        message: Obj = {"jsonrpc": "2.0", "id": identifier, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message)

    def ask_on_its_own(
        self, method: str, params: Obj | None = None, without: str = "", **changed: str
    ) -> Answer:
        """A request of the stateless era; `without` one header, or with some changed."""
        message = on_its_own(method, params)
        headers = headers_of(message)
        headers.pop(without, None)
        return self.post(message, {**headers, **changed})


def on_its_own(method: str, params: Obj | None = None, identifier: Any = 1) -> Obj:
    """A request of the stateless era."""
    meta = {
        f"{PREFIX}protocolVersion": "2026-07-28",
        f"{PREFIX}clientCapabilities": {},
        f"{PREFIX}clientInfo": {"name": "test", "version": "1"},
    }
    whole = {"_meta": meta, **(params or {})}
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": whole}


def headers_of(message: Obj) -> dict[str, str]:
    named = message["params"].get("name") or message["params"].get("uri")
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": message["method"]}
    return {**headers, "Mcp-Name": named} if named else headers


def raw(port: int, data: bytes, *, until: bytes | None = None, host: str = "127.0.0.1") -> bytes:
    """Send bytes and read to the end, or until something was read."""
    with socket.create_connection((host, port), timeout=BOUND) as connection:
        connection.sendall(data)
        return read_until(connection, until)


def read_until(connection: socket.socket, until: bytes | None) -> bytes:
    got = b""
    while until is None or until not in got:
        try:
            chunk = connection.recv(65536)
        except ConnectionResetError:
            break
        if not chunk:
            break
        got += chunk
    return got


def good_session(port: int) -> None:
    """What must work whatever happened before."""
    client = Http(port)
    assert client.initialize().status == 200
    answer = client.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert answer.message["result"]["content"] == [{"type": "text", "text": "3"}]
