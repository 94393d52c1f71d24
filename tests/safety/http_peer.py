"""The misbehaving HTTP servers of `tests/rogues` as a process: `http_peer.py KIND NAME [METHOD]`.

The first line on stdout is the URL; the end of stdin ends it.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
import time

from tests.rogues.http_script import LAST_CHUNK, SSE_HEAD, Script, Wire, chunk, reply, serving
from tests.rogues.malformed import malformed_http
from tests.rogues.test_http_gallery import (
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


SCRIPTS = {name: rogue.script for name, rogue in GALLERY.items()} | {
    "slow body": after_request(stops_inside_the_body),
    "head in bytes": after_request(head_in_bytes),
    "half closed": after_request(half_closed),
    "wants itself": after_request(wants_itself),
    "chunk extensions": after_request(sends(JSON_HEAD + b"5"), for_ever(b";x=y" * 4096)),
    "trailers": after_request(sends(JSON_HEAD + BODY), for_ever(b"X: y\r\n" * 999)),
    "event id": after_request(sends(SSE_HEAD), for_ever(chunk(b"id: " + b"x" * 65536))),
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
