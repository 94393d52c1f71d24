"""Judging several servers at once on this machine: a process for each, and one loop that listens.

A server that hangs, floods or kills costs its own process and its own row.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.commands.fleet.config import FleetServerOrder, Found
from mcptest.core.limits import Deadline
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.report.codec import plain_json
from mcptest.report.fleet import ServerOutcome
from mcptest.transport.descendants import become_subreaper, look_at, tree_of
from mcptest.transport.interrupt import Stop, kill_living
from mcptest.transport.lifeline import MARKER
from mcptest.transport.recorder import finish_captures
from mcptest.wire.lines import Line, LineReader, LineTooLong

# -- What a process that judges one server and the one that started it say to each other ---------

LARGEST = 64 * 1024 * 1024
"""Bytes of a line. What was found is bounded by the limits of judging; this is for the rest."""


class WorkerProgress(msgspec.Struct, frozen=True, tag="progress"):
    text: str


class WorkerFinished(msgspec.Struct, frozen=True, tag="finished"):
    found: Found
    is_all: bool = True
    """Or what was found so far: it is told again with what comes of the rest."""


WorkerMessage: TypeAlias = WorkerProgress | WorkerFinished
_decoder: msgspec.json.Decoder[WorkerMessage] = msgspec.json.Decoder(WorkerMessage)


def encoded(value: msgspec.Struct) -> bytes:
    """One line. Half a character, which a server can say and UTF-8 can't, is made visible."""
    return plain_json(value) + b"\n"


def message_of(line: Line) -> WorkerMessage:
    """Raises ValueError for a line that is too long or no message."""
    if isinstance(line, LineTooLong):
        raise ValueError(f"a line of more than {LARGEST} bytes")
    return _decoder.decode(line)


# -- A process of ours that judges one server, seen by whoever started it ------------------------

GRACE = 2.5
"""Seconds after its own limit in which a process may still come to an end by itself."""
_KILLING = 5.0
_QUIET_LOOKS = 3
_STDERR_KEPT = 4_000
# -P: the folder that somebody happens to stand in is no place to import from.
_COMMAND = (sys.executable, "-P", "-m", "mcptest.commands.fleet.worker")


class WorkerProcess:
    """One process at its work. `events` tells which of its pipes are to be watched."""

    def __init__(self, order: FleetServerOrder) -> None:
        self.order = order
        self.began = time.monotonic()
        self.until = Deadline.after(order.limit + GRACE)
        self.is_done = False
        self.found = Found.nothing(order.name, ServerOutcome.NOT_JUDGED, "")
        """So far; all of it when it is done."""
        self.news = ""
        self._lines = LineReader(LARGEST)
        # the start of the process is part of its time
        own = replace(order, until=self.began + order.limit)
        self._unsent = memoryview(encoded(own))
        self._stderr = b""
        self._trouble = ""
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us; we tell it
        )
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes())

    def _pipes(self) -> tuple[IO[bytes], ...]:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        return tuple(pipe for pipe in pipes if pipe is not None)

    def write(self) -> bool:
        """Send more of the order; False when there is no more of it."""
        try:
            self._unsent = self._unsent[os.write(self.stdin, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it is gone, which its stdout tells as well
            self._unsent = memoryview(b"")
        return bool(self._unsent)

    def read(self) -> bool:
        """Take what it says; False at the end of it."""
        try:
            chunk = os.read(self.stdout, 1 << 20)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        try:
            messages = list(map(message_of, self._lines.feed(chunk)))
        except ValueError as error:
            self._trouble = f"what it told can't be read: {show(str(error), 200)}"
            return False
        for message in messages:
            if isinstance(message, WorkerFinished):
                self.found, self.is_done = message.found, message.is_all
            else:
                self.news = message.text
        return True

    def read_stderr(self) -> bool:
        """Keep the end of it; False when there will be no more."""
        try:
            chunk = os.read(self.stderr, 65536)
        except BlockingIOError:
            return True
        self._stderr = (self._stderr + chunk)[-_STDERR_KEPT:]
        return bool(chunk)

    # -- its end -----------------------------------------------------------------------------

    def close_stdin(self) -> None:
        """The end of its stdin: it ends what it started, and then itself."""
        self._unsent = memoryview(b"")
        self._pipes()[0].close()

    def has_ended(self, within: float) -> bool:
        try:
            self._process.wait(max(0.0, within))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it and everything below it, whatever they are doing."""
        pid = self._process.pid
        limit = Deadline.after(_KILLING)
        quiet = 0
        # A process that stands still starts nothing, and stays the parent of whom it left behind.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        while quiet < _QUIET_LOOKS and not limit.expired:
            quiet = 0 if kill_living(tree_of(pid)) else quiet + 1
        self._process.kill()

    def close(self) -> None:
        """After its end: nothing of it is left with us."""
        self._process.wait()
        for pipe in self._pipes():
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def finish_captures(self) -> None:
        """Those that it was still writing when it was ended."""
        if self.order.captures:
            finish_captures(Path(self.order.captures))

    def outcome(
        self, reason: str = "", otherwise: ServerOutcome = ServerOutcome.NOT_JUDGED
    ) -> Found:
        """What it found; or, where it could not tell, what kept it from that."""
        if self.is_done:
            return self.found
        spent = round((time.monotonic() - self.began) * 1000)
        told = reason or self._how_it_ended()
        row = replace(self.found.server, outcome=otherwise, reason=told, duration_ms=spent)
        return Found(row, self.found.offered)

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        ended = f"ended with code {code} and told nothing"
        if code < 0:
            ended = f"was ended by {signal.Signals(-code).name}"
        said = self._trouble or f"the process that judged it {ended}"
        last = self._stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        return said + (f": {show(redaction.masker.cut_text(last), 300)}" if last else "")


def end_orphaned_servers() -> None:
    """Servers whose process of ours was killed by others. They are our children now (Linux)."""
    ours = os.getpid()
    for pid in list(tree_of(ours)):
        process = look_at(pid)
        environment = b""
        with contextlib.suppress(OSError):  # it went, or it is another user's
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        is_a_server = any(one.startswith(f"{MARKER}=".encode()) for one in environment.split(b"\0"))
        if process is not None and process.parent == ours and is_a_server:
            kill_living([*tree_of(pid), pid])


# -- All of them at once -------------------------------------------------------------------------

_PATIENCE = 5.0
"""Seconds in which a process may end what it started, when we are told to stop."""
_HOURLY = 3600.0
"""Somebody is always woken at last, whatever was forgotten."""


@contextlib.contextmanager
def judging_here(
    orders: Sequence[FleetServerOrder],
    stop: Stop,
    jobs: int,
    tell: Callable[[Sequence[WorkerProcess]], None] = lambda children: None,
) -> Iterator[Iterator[tuple[int, Found]]]:
    """The results of a pool on this machine. The first signal ends it in order."""
    become_subreaper()  # not in the pool itself, which may live in a program of others
    pool = ServerPool(orders, jobs, should_stop=stop.is_set, tell=tell)
    stop.on_set = pool.wake
    try:
        with contextlib.closing(pool.results()) as results:
            yield results
    finally:
        stop.on_set = lambda: None


class ServerPool:
    """Read `results` to the end. `wake` may be called from a signal handler."""

    def __init__(
        self,
        orders: Sequence[FleetServerOrder],
        jobs: int,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        tell: Callable[[Sequence[WorkerProcess]], None] = lambda children: None,
        tick: float = _HOURLY,
    ) -> None:
        """`tick`: how often `should_stop` is asked, where nobody calls `wake`."""
        self._todo = deque(enumerate(orders))
        self._jobs = jobs
        self._should_stop = should_stop
        self._tell = tell
        self._tick = tick
        self._at_work: dict[WorkerProcess, int] = {}
        """With the number of its order."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def results(self) -> Generator[tuple[int, Found], None, None]:
        """Each with the number of its order, as they come. All is taken down at the end."""
        try:
            while (self._todo or self._at_work) and not self._should_stop():
                self._fill()
                yield from self._listen()
            yield from self._stop()
        finally:
            for child in list(self._at_work):
                child.kill()
                self._stop_watching(child)
            self._selector.close()
            os.close(self._woken)
            os.close(self._waker)

    def _fill(self) -> None:
        while self._todo and len(self._at_work) < self._jobs:
            number, order = self._todo.popleft()
            child = WorkerProcess(order)
            self._at_work[child] = number
            self._selector.register(child.stdout, selectors.EVENT_READ, child)
            self._selector.register(child.stderr, selectors.EVENT_READ, child)
            self._selector.register(child.stdin, selectors.EVENT_WRITE, child)

    # -- listening ---------------------------------------------------------------------------

    def _listen(self) -> Iterator[tuple[int, Found]]:
        patience = min(child.until.remaining() for child in self._at_work)
        for key, _ in self._selector.select(min(patience, self._tick)):
            child = key.data
            if child is None:
                os.read(self._woken, 4096)
            elif child not in self._at_work:
                continue  # it ended with what its other pipe said
            elif key.fd == child.stdin:
                if not child.write():
                    self._selector.unregister(child.stdin)
            elif key.fd == child.stderr:
                if not child.read_stderr():
                    self._selector.unregister(child.stderr)
            elif not child.read():
                yield self._ended(child)
        self._tell(list(self._at_work))
        for child in list(self._at_work):
            if child.until.expired:
                yield self._ended(child)

    def _ended(self, child: WorkerProcess) -> tuple[int, Found]:
        """It told everything, or is gone, or its time is over."""
        number = self._at_work[child]
        out_of_time = child.until.expired
        if out_of_time or not child.has_ended(child.until.within(_PATIENCE).remaining()):
            child.kill()
        self._stop_watching(child)
        if not child.is_done:
            end_orphaned_servers()
            child.finish_captures()
        over = f"not judged within {child.order.limit:g} s" if out_of_time else ""
        return number, child.outcome(over)

    def _stop_watching(self, child: WorkerProcess) -> None:
        for descriptor in (child.stdin, child.stdout, child.stderr):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        del self._at_work[child]
        child.close()

    # -- stopping ----------------------------------------------------------------------------

    def _stop(self) -> Iterator[tuple[int, Found]]:
        """Everybody is told to leave, and then waited for. What was not begun is told as well."""
        stopped = list(self._at_work.items())
        for child, _ in stopped:
            if child.stdin in self._selector.get_map():
                self._selector.unregister(child.stdin)
            child.close_stdin()
        limit = Deadline.after(_PATIENCE)
        for child, number in stopped:
            if not child.has_ended(limit.remaining()):
                child.kill()
            self._stop_watching(child)
            child.finish_captures()
            yield number, child.outcome("interrupted", ServerOutcome.INTERRUPTED)
        while self._todo:
            number, order = self._todo.popleft()
            yield number, Found.nothing(order.name, ServerOutcome.INTERRUPTED, "interrupted")
