"""A server on a raw socket that does to each connection what a script says, however wrong.

Scripts run in threads. They wait for the client, never for the clock, and all of them are gone
when the `with` block ends.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mcptest.core.capture import AnyRecord, Frame, HttpResponse, StreamEnd, Trouble
from mcptest.core.limits import DEFAULT_LIMITS, Deadline, Limits
from mcptest.transport.http.transports import StreamableHttp

WAIT = 40.0
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@dataclass(frozen=True)
class SeenRequest:
    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    raw_head: bytes
    body: bytes


class Wire:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        """Counts connections from 1."""
        self._buffer = b""

    def request(self) -> SeenRequest | None:
        """The next request, or None when the client has hung up."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("utf-8").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        size = int(headers.get("content-length", 0))
        while len(self._buffer) < size:
            if not self._more():
                return None
        body, self._buffer = self._buffer[:size], self._buffer[size:]
        method, target, _ = first.split(" ")
        return SeenRequest(method, target, headers, head, body)

    def wait_unread(self) -> None:
        """Until the client has sent something, which stays where it is."""
        self.sock.recv(1, socket.MSG_PEEK)

    def _more(self) -> bool:
        data = self.sock.recv(65536)
        self._buffer += data
        return bool(data)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send_for_ever(self, data: bytes) -> None:
        """Until the client hangs up; how much it took by then is bounded by its own limit."""
        while True:
            self.sock.sendall(data)

    def wait_for_hang_up(self) -> None:
        while self._more():
            self._buffer = b""

    def reset(self) -> None:
        """End the connection with a reset instead of an orderly close."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


Script = Callable[[Wire], None]


@dataclass
class ScriptedServer:
    script: Script
    threads: list[threading.Thread] = field(default_factory=list)
    socks: list[socket.socket] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    hung_up: int = 0
    connections: int = 0

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(WAIT)
            self.connections += 1
            self.socks.append(sock)
            thread = threading.Thread(
                target=self._serve, args=(Wire(sock, self.connections),), daemon=True
            )
            self.threads.append(thread)
            thread.start()

    def _serve(self, wire: Wire) -> None:
        with wire.sock:
            try:
                self.script(wire)
            except (ConnectionError, BrokenPipeError):
                self.hung_up += 1  # the client has had enough
            except Exception as error:  # noqa: BLE001  # shown by the test's own thread
                self.failures.append(error)

    def hang_up(self) -> None:
        """End all connections that there are; new ones are taken."""
        for sock in list(self.socks):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._acceptor.join(WAIT)
        self.hang_up()
        for thread in self.threads:
            thread.join(WAIT)
        assert not any(thread.is_alive() for thread in self.threads)
        assert not self.failures, self.failures


@contextlib.contextmanager
def serving(script: Script) -> Iterator[ScriptedServer]:
    server = ScriptedServer(script)
    try:
        yield server
    finally:
        server.close()


def reply(
    body: bytes = PONG,
    status: str = "200 OK",
    kind: str | None = "application/json",
    extra: str = "",
) -> bytes:
    """A proper response with Content-Length."""
    type_line = f"Content-Type: {kind}\r\n" if kind else ""
    head = f"HTTP/1.1 {status}\r\n{type_line}{extra}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("utf-8") + body


SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def always(data: bytes, *, then_close: bool = False) -> Script:
    """Answers every request with the same bytes."""

    def script(wire: Wire) -> None:
        while wire.request() is not None:
            wire.send(data)
            if then_close:
                return

    return script


@contextlib.contextmanager
def connected(
    server: ScriptedServer, records: list[AnyRecord] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[StreamableHttp]:
    transport = StreamableHttp(
        server.url, sink=(records if records is not None else []).append, limits=limits
    )
    try:
        transport.open(Deadline.after(WAIT))
        yield transport
    finally:
        transport.close(Deadline.after(WAIT))


def until_end(transport: StreamableHttp, stream: int, seconds: float = WAIT) -> list[AnyRecord]:
    """Everything up to the end of one stream, or up to the deadline."""
    deadline = Deadline.after(seconds)
    seen: list[AnyRecord] = []
    while not any(isinstance(each, StreamEnd) and each.stream == stream for each in seen):
        came = transport.receive(deadline)
        seen += came
        if not came:
            break
    return seen


def ask(script: Script, limits: Limits = DEFAULT_LIMITS, seconds: float = WAIT) -> list[AnyRecord]:
    """POST one ping to a server with this script; what the client saw of its answer."""
    with serving(script) as server, connected(server, limits=limits) as transport:
        stream = transport.send(PING, Deadline.after(seconds))
        return until_end(transport, stream, seconds)


def troubles(records: list[AnyRecord]) -> list[Trouble]:
    return [each for each in records if isinstance(each, Trouble)]


def messages(records: list[AnyRecord]) -> list[bytes]:
    return [each.raw for each in records if isinstance(each, Frame) and each.sender == "server"]


def statuses(records: list[AnyRecord]) -> list[int]:
    return [each.status for each in records if isinstance(each, HttpResponse)]
