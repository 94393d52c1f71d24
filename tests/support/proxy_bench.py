"""An HTTP proxy in this process, between raw sockets and a scripted server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcptest.core.capture import AnyRecord
from mcptest.core.limits import DEFAULT_LIMITS
from mcptest.probe.proxied_session import begins_session
from mcptest.transport.base import Sink
from mcptest.transport.egress import parse_url
from mcptest.transport.proxy.exchange_record import SessionBook
from mcptest.transport.proxy.http_proxy import HttpProxy

BOUND = 20.0
Script = Callable[[socket.socket, bytes], None]


def read_request(connection: socket.socket) -> bytes:
    """The head of a request, and its body by Content-Length or to the last chunk."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.partition(b":")[2]):
                body += received(connection)
        elif line.startswith(b"transfer-encoding:"):
            while not body.endswith(b"0\r\n\r\n"):
                body += received(connection)
    return head + b"\r\n\r\n" + body


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the other side is gone")
    return data


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def plain(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    """An answer with a length."""
    fields = "".join(f"{line}\r\n" for line in (*lines, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode() + body


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


class ScriptedServer:
    """Answers each connection as the script says; keeps the requests."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []
        self.problems: list[BaseException] = []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(BOUND)
        with connection:
            try:
                request = read_request(connection)
                self.requests.append(request)
                self.script(connection, request)
            except (ConnectionError, TimeoutError) as problem:
                self.problems.append(problem)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(BOUND)


class Between:
    """The proxy, running, with what it records."""

    def __init__(self, port: int, path: str = "/mcp", **options: Any) -> None:
        self.sessions: list[list[AnyRecord]] = []
        legacy = options.pop("legacy", False)
        limits = options.pop("limits", DEFAULT_LIMITS)
        url = parse_url(f"{options.pop('scheme', 'http')}://127.0.0.1:{port}{path}")
        book = SessionBook(url, self._begin, begins_session, legacy=legacy, limits=limits)
        self.proxy = HttpProxy(url, book, **options)
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _begin(self) -> Sink:
        self.sessions.append([])
        return self.sessions[-1].append

    def _run(self) -> None:
        try:
            self.proxy.run()
        except BaseException as error:  # noqa: BLE001 - told by `close`
            self.failure = error

    @property
    def port(self) -> int:
        return self.proxy.origin.port

    @property
    def records(self) -> list[AnyRecord]:
        return [record for session in self.sessions for record in session]

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), BOUND)
        connection.settimeout(BOUND)
        return connection

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and read until the proxy hangs up."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def close(self) -> None:
        self.proxy.stop()
        self._thread.join(BOUND)
        assert not self._thread.is_alive()
        self.proxy.close()
        assert self.failure is None, repr(self.failure)


@contextmanager
def between(script: Script, path: str = "/mcp", **options: Any) -> Iterator[tuple[Between, Any]]:
    server = ScriptedServer(script)
    proxy = Between(server.port, path, **options)
    try:
        yield proxy, server
    finally:
        proxy.close()
        server.close()


def get(path: str = "/mcp", *lines: str, host: str = "localhost", close: bool = True) -> bytes:
    fields = [f"Host: {host}", *lines, *(["Connection: close"] if close else [])]
    return ("\r\n".join([f"GET {path} HTTP/1.1", *fields]) + "\r\n\r\n").encode()


def post(body: bytes, *lines: str, path: str = "/mcp", close: bool = True) -> bytes:
    fields = ["Host: localhost", f"Content-Length: {len(body)}", *lines]
    fields += ["Connection: close"] if close else []
    return ("\r\n".join([f"POST {path} HTTP/1.1", *fields]) + "\r\n\r\n").encode() + body
