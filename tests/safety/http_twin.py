"""A stdio program served over streamable HTTP as it is: `python -I http_twin.py COMMAND...`.

Each session has a process of its own. A line that answers an open request ends its stream; what
else the program writes goes to the stream that has been open longest, byte by byte, however wrong.
When the program ends, so do its streams, in the middle of whatever they were. The first line on
stdout is the URL; the end of stdin ends everything.
"""

from __future__ import annotations

import http.server
import json
import os
import queue
import re
import select
import subprocess
import sys
import threading
from typing import Any

LONGEST = 1 << 20
"""So much of a line is waited for. What is longer is passed on in pieces."""
_SHOWN = 200
_LONG_ANSWER = re.compile(rb'\{"jsonrpc":"2.0","id":(\d+),"result":')
LOOK = 0.2
"""Seconds after which half a line is passed on, and a silent stream looks for its client."""


class Session:
    """One process, and the streams that wait for what it says."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            sys.argv[1:],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.lock = threading.Lock()
        self.streams: list[tuple[Any, queue.Queue[bytes | None]]] = []
        self.early = b""
        """What was said while nobody listened."""
        self._beginning = b""
        """Of the line that is being written."""
        self.ended = False
        """The program has closed its output: nothing that is asked now will be answered."""
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, request: Any, body: bytes) -> queue.Queue[bytes | None]:
        """A queue of the bytes of events: an empty piece is a proper end, None an abrupt one."""
        # two pieces at a time: a client that does not read stops the program, as a pipe does
        said: queue.Queue[bytes | None] = queue.Queue(2)
        with self.lock:
            if self.early:
                said.put(events(self.early))
                self.early = b""
            if self.ended:
                said.put(None)
            else:
                self.streams.append((request, said))
        self.tell(body)
        return said

    def tell(self, body: bytes) -> None:
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(body.replace(b"\n", b" ") + b"\n")
            self.process.stdin.flush()
        except OSError:
            self._end()

    def forget(self, said: queue.Queue[bytes | None]) -> None:
        with self.lock:
            self.streams = [each for each in self.streams if each[1] is not said]
        while not said.empty():
            said.get_nowait()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        descriptor, pending, inside = self.process.stdout.fileno(), b"", False
        while True:
            if pending and not select.select([descriptor], [], [], LOOK)[0]:
                self._put((b"" if inside else b"data: ") + pending)
                pending, inside = b"", True
            data = os.read(descriptor, 65536)
            if not data:
                break
            if inside and b"\n" not in data:
                self._put(data)
                continue
            if not inside and not pending:
                self._beginning = data[:_SHOWN]
            pending += data
            whole, newline, rest = pending.rpartition(b"\n")
            if newline:
                self._pass_on(whole + newline, inside)
                pending, inside = rest, False
                self._beginning = rest[:_SHOWN]
            if len(pending) > LONGEST:
                self._put((b"" if inside else b"data: ") + pending)
                pending, inside = b"", True
        if pending:
            self._put((b"" if inside else b"data: ") + pending)
        self._end()

    def _pass_on(self, lines: bytes, inside: bool) -> None:
        if inside:
            end, _, lines = lines.partition(b"\n")
            self._put(end + b"\n\n")
            stream = self._answered(self._beginning)
            if stream is not None:
                stream.put(b"")
        others: list[bytes] = []
        for line in lines.splitlines(keepends=True):
            if others and b'"method"' not in line[:200]:
                # before the answer takes away the stream that they go to
                self._put(events(b"".join(others)), b"".join(others))
                others = []
            stream = self._answered(line)
            if stream is None:
                others.append(line)
            else:
                stream.put(events(line))
                stream.put(b"")
        if others:
            self._put(events(b"".join(others)), b"".join(others))

    def _answered(self, line: bytes) -> queue.Queue[bytes | None] | None:
        """The stream that this line ends."""
        if b'"method"' in line[:200] or len(self.streams) == 0:
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            named = _LONG_ANSWER.match(line)  # which was passed on before its end was there
            if named is None:
                return None
            message = {"id": json.loads(named[1])}
        if not isinstance(message, dict) or "id" not in message:
            return None
        with self.lock:
            for each in self.streams:
                if type(each[0]) is type(message["id"]) and each[0] == message["id"]:
                    self.streams.remove(each)
                    return each[1]
        return None

    def _put(self, data: bytes, raw: bytes = b"") -> None:
        with self.lock:
            stream = self.streams[0][1] if self.streams else None
            if stream is None:
                self.early = (self.early + raw)[:LONGEST]
        while stream is not None:
            try:
                stream.put(data, timeout=LOOK)
            except queue.Full:
                with self.lock:
                    if not any(each[1] is stream for each in self.streams):
                        return
            else:
                return

    def _end(self) -> None:
        with self.lock:
            self.ended = True
            streams, self.streams = self.streams, []
        for _, stream in streams:
            stream.put(None)


def events(lines: bytes) -> bytes:
    return b"".join(b"data: " + line + b"\n\n" for line in lines.split(b"\n") if line.strip())


SESSIONS: dict[str, Session] = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            message = json.loads(body)
        except ValueError:
            return self._refuse(400)
        if not isinstance(message, dict):
            return self._refuse(400)
        name = self.headers.get("Mcp-Session-Id", "")
        session = SESSIONS.get(name)
        if session is None:
            if name or message.get("method") not in {"initialize", "server/discover"}:
                return self._refuse(404 if name else 400)
            session = Session()
        if "id" not in message or "method" not in message:
            session.tell(body)
            self.send_response(202)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        named = message.get("method") == "initialize"
        if named:
            name = os.urandom(8).hex()
            SESSIONS[name] = session
        try:
            self._stream(session, session.ask(message["id"], body), name if named else "")
        finally:
            if session not in SESSIONS.values():
                session.close()
        return None

    def _stream(self, session: Session, said: queue.Queue[bytes | None], name: str) -> None:
        begun = False
        while True:
            try:
                data = said.get(timeout=LOOK)
            except queue.Empty:
                if self._is_gone():
                    break
                continue
            if data is None:
                break
            if not begun:
                self._begin(name)
                begun = True
            try:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            except OSError:
                break
            if not data:
                return
        session.forget(said)
        self.close_connection = True

    def _begin(self, name: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        if name:
            self.send_header("Mcp-Session-Id", name)
        self.end_headers()

    def _is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and not self.connection.recv(1, 2)  # MSG_PEEK
        except OSError:
            return True

    def do_DELETE(self) -> None:
        session = SESSIONS.pop(self.headers.get("Mcp-Session-Id", ""), None)
        if session is not None:
            session.close()
        self._refuse(200 if session else 404)

    def do_GET(self) -> None:
        self._refuse(405)

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is none."""


def main() -> None:
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}/mcp\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    for session in list(SESSIONS.values()):
        session.close()
    os._exit(0)


if __name__ == "__main__":
    main()
