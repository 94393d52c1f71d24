"""Serving HTTP+SSE on loopback: what a POST is answered with goes to the one stream of events."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reaction = Callable[[str, Any, bytes], bytes]
"""Path, headers and body of a POST to the bytes that go to the stream; empty for none."""
ENDPOINT = "/messages"


def event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, address: Any) -> None:
        """A client that leaves is no reason to say anything."""


def sse_server(react: Reaction) -> ThreadingHTTPServer:
    """A server on a free port, not serving yet. Its stream is at /sse."""
    streams: list[queue.SimpleQueue[bytes | None]] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            react(self.path, self.headers, b"")
            mine: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            with lock:
                streams.append(mine)
                place = f"{ENDPOINT}/{len(streams) - 1}"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(f"event: endpoint\ndata: {place}\n\n".encode())
            with contextlib.suppress(OSError):  # the client has left
                while (piece := mine.get()) is not None:
                    self.wfile.write(piece)
            self.close_connection = True

        def do_POST(self) -> None:
            if not self.path.startswith(ENDPOINT):
                self._reply(405)
                return
            body = self.rfile.read(int(self.headers["Content-Length"]))
            said = react(self.path, self.headers, body)
            self._reply(202)
            if said:
                streams[int(self.path.rpartition("/")[2])].put(said)

        def do_DELETE(self) -> None:
            self._reply(405)

        def _reply(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


@contextlib.contextmanager
def served_over_sse(react: Reaction) -> Iterator[str]:
    """The URL of such a server."""
    with sse_server(react) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/sse"
        finally:
            server.shutdown()
            thread.join()
