"""The demo on standard input and output: one message per line, both eras on one connection.

Reading never waits for a client that does not read: answers are kept, and once there are too many
of them no more requests are taken.
"""

from __future__ import annotations

import os
import stat

from mcptest.servers.demo.exchange import SharedStream, internal_error
from mcptest.servers.demo.handshake_era import HandshakeSession, check_new_request
from mcptest.servers.demo.jsonrpc import (
    MAX_MESSAGE_BYTES,
    REQUEST,
    Refusal,
    encode,
    error_message,
    kind_of,
    read_text,
    readable_id,
    too_large,
)
from mcptest.servers.demo.stateless_era import is_stateless, serve
from mcptest.servers.demo.world import World
from mcptest.transport.loop import GONE, READ, WRITE, Loop, wait_for
from mcptest.wire.lines import LineReader

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from typing import Any

    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Content
    from mcptest.servers.demo.start_options import Options

STDIN = 0
STDOUT = 1
CHUNK = 64 * 1024
MAX_UNSENT_BYTES = 16 * 1024 * 1024
WRITE_BYTES = 1024 * 1024
PATIENCE_SECONDS = 10.0
"""How long a client that ended its input may pause in reading our last answers."""
SIGNAL_PATIENCE_SECONDS = 0.5


class StdioPipes:
    """Standard input, line by line, and standard output that never makes us wait for its reader.

    With the end of the input the loop ends.
    """

    def __init__(self, loop: Loop, take_line: Any, taken: Any = lambda: None) -> None:
        self._loop = loop
        self._take_line = take_line
        """Called with each line, and with None for one that is too long and so is skipped."""
        self._taken = taken
        """Called after each round of lines, before what was said to them is sent."""
        self._lines = LineReader(MAX_MESSAGE_BYTES)
        self._unsent = bytearray()
        self._paused = False
        self._waiting = False
        self._scheduled = False
        self.ended = False
        """Whether the input has come to its end."""
        mode = os.fstat(STDOUT).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # A terminal or a file is shared with others, and does not block for long.
            os.set_blocking(STDOUT, False)

    def run(self) -> None:
        """Until the input ends, or somebody stops the loop."""
        self._loop.watch(STDIN, READ, self._readable)
        self._loop.run()

    def write(self, data: bytes) -> None:
        self._unsent += data
        if not self._scheduled:
            self._scheduled = True
            self._loop.after(0, self._flush)

    def finish(self) -> None:
        """Send what is left, to a client that still reads."""
        patience = PATIENCE_SECONDS if self.ended else SIGNAL_PATIENCE_SECONDS
        while self._unsent and wait_for(STDOUT, WRITE, patience):
            if not self._write_some():
                return

    def _readable(self, events: int) -> None:
        try:
            chunk = os.read(STDIN, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self.ended = not chunk
        for line in self._lines.feed(chunk) if chunk else [self._lines.finish()]:
            self._take_line(line if isinstance(line, bytes) else None)
        self._taken()
        self._flush()
        if self.ended:
            self._loop.stop()

    def _flush(self) -> None:
        self._scheduled = False
        if not self._waiting:
            self._push()
        else:
            self._regulate_input()

    def _push(self) -> None:
        while self._unsent and self._write_some():
            pass
        waits = bool(self._unsent)
        if waits and not self._waiting:
            self._loop.watch(STDOUT, WRITE | GONE, lambda events: self._push())
        elif not waits and self._waiting:
            self._loop.ignore(STDOUT)
        self._waiting = waits
        self._regulate_input()

    def _regulate_input(self) -> None:
        if (len(self._unsent) > MAX_UNSENT_BYTES) != self._paused:
            self._paused = not self._paused
            if self._paused:
                self._loop.ignore(STDIN)
            else:
                self._loop.watch(STDIN, READ, self._readable)

    def _write_some(self) -> bool:
        try:
            done = os.write(STDOUT, memoryview(self._unsent)[:WRITE_BYTES])
        except BlockingIOError:
            return False
        except OSError:  # the reader is gone, and so is our reason to be
            self._unsent.clear()
            self._loop.stop()
            return False
        del self._unsent[:done]
        return True


class StdioConnection:
    """The one client at the other end of the pipes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._session = HandshakeSession(world, self)
        self._pipes = StdioPipes(world.loop, self._take_line)

    def send(self, message: Any) -> None:
        self._pipes.write(encode(message) + b"\n")

    def run(self) -> None:
        self._pipes.run()
        self._world.end_subscriptions()
        self._session.close()
        self._pipes.finish()

    def _take_line(self, line: bytes | None) -> None:
        value: Any = None
        try:
            if line is None:
                raise too_large()
            if not line.strip():
                return
            value = read_text(line)
            self._take(value)
        except Refusal as refusal:
            null_id = self._session.null_id
            self.send(error_message(readable_id(value), refusal, null_id))
        except Exception as problem:  # noqa: BLE001  reported, and answered as our defect
            self.send(error_message(readable_id(value), internal_error(problem)))

    def _take(self, value: Any) -> None:
        if isinstance(value, dict) and kind_of(value) == REQUEST and self._is_stateless(value):
            in_flight = self._session.in_flight
            check_new_request(value, in_flight)
            serve(value, self._world, SharedStream(value["id"], in_flight, self))
        else:
            self._session.take(value, lambda name, in_flight: SharedStream(name, in_flight, self))

    def _is_stateless(self, message: Obj) -> bool:
        """Decided for each request on its own, as a connection may carry both eras.

        Without a handshake, what only makes sense after one is taken for a request of the newer
        era that lacks its `_meta`.
        """
        if not (self._world.stateless and self._world.handshake):
            return bool(self._world.stateless)
        return is_stateless(message) or (
            self._session.version is None and message["method"] not in {"initialize", "ping"}
        )


def run_stdio(options: Options, content: Content | None = None) -> None:
    """Serve until standard input ends or a signal comes."""
    loop = Loop()
    loop.stop_on_signals()
    world = World(options, loop, content)
    try:
        StdioConnection(world).run()
    finally:
        world.content.close()
