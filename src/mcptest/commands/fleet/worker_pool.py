"""Judging several servers at once on this machine: a process for each, and a thread that listens.

A server that hangs, floods or kills costs its own process and its own row.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.core.limits import Deadline
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.report.codec import plain_json
from mcptest.report.fleet import FleetServer, ServerOutcome
from mcptest.transport.descendants import become_subreaper, look_at, tree_of
from mcptest.transport.interrupt import Stop, kill_all, kill_living
from mcptest.transport.lifeline import MARKER
from mcptest.transport.recorder import finish_captures
from mcptest.transport.target import Target
from mcptest.wire.lines import Line, LineReader, LineTooLong

# -- One server to be judged: as it is told to whoever does it, and what comes back --------------


class FleetServerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a process on another machine needs to know. It holds secrets."""

    name: str
    target: Target
    revision: str = ""
    """Empty: the newest that the server speaks."""
    timeout: float = 30.0
    """For each request of judging."""
    audit_timeout: float = 15.0
    """For each call of the audit."""
    startup: float = 30.0
    limit: float = 300.0
    """For everything that is asked of this server."""
    until: float = 0.0
    """When that is over, on the monotonic clock of the machine that judges it."""
    strict: bool = False
    min_grade: str = ""
    min_score: int | None = None
    captures: str = ""
    """A folder, if what goes over the wire is to be kept."""
    repeat_compliance: str = ""
    repeat_audit: str = ""

    def __repr__(self) -> str:
        """Without secrets: others may write our arguments into their logs."""
        return f"FleetServerOrder({self.name!r})"


class OfferedNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server lists, by name: where two list the same, a client can't tell them apart."""

    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    left_out: int = 0
    """Names that are too long or too many to be compared."""


class Found(msgspec.Struct, frozen=True):
    """What came of one server: as it comes back from wherever it was judged, without secrets."""

    server: FleetServer
    offered: OfferedNames | None = None

    @classmethod
    def nothing(cls, name: str, outcome: ServerOutcome, reason: str) -> Found:
        return cls(FleetServer(name, outcome, reason))


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

GRACE = 1.0
"""Seconds after its own limit in which a process may still come to an end by itself.

It stops judging before its limit; what is left after this is for ending it and for the report.
"""
_PATIENCE = 5.0
"""Seconds in which it may end what it started, when it is told to stop."""
_KILLING = 2.0
_LOOKING_UP = 0.2
"""Seconds between two looks whether we are to stop."""
_STDERR_KEPT = 4_000
# -P: the folder that somebody happens to stand in is no place to import from.
_COMMAND = (sys.executable, "-P", "-m", "mcptest.commands.fleet.worker")

Tell: TypeAlias = Callable[[str, str], None]
"""Hears the name of a server, and what is done with it."""


def judge_in_process(
    order: FleetServerOrder,
    should_stop: Callable[[], bool] = lambda: False,
    tell: Tell = lambda name, news: None,
) -> Found:
    """Judge one server in a process of its own, and see that nothing is left of either."""
    if should_stop():
        return Found.nothing(order.name, ServerOutcome.INTERRUPTED, "interrupted")
    tell(order.name, "")
    worker = WorkerProcess(order, tell)
    try:
        worker.listen(should_stop)
    finally:
        worker.end()
    return worker.outcome()


class WorkerProcess:
    """One process at its work."""

    def __init__(self, order: FleetServerOrder, tell: Tell) -> None:
        self._order = order
        self._tell = tell
        self._began = time.monotonic()
        self._until = Deadline.after(order.limit + GRACE)
        self._is_done = False
        self._found = Found.nothing(order.name, ServerOutcome.NOT_JUDGED, "")
        """So far; all of it when it is done."""
        self._lines = LineReader(LARGEST)
        # the start of the process is part of its time
        own = replace(order, until=self._began + order.limit)
        self._unsent = memoryview(encoded(own))
        self._stderr = b""
        self._trouble = ""
        self._is_over = self._is_stopped = False
        """Why it was not heard to its end: its time, or somebody told us to stop."""
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us; we tell it
        )
        self._pipes = tuple(
            pipe
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
            if pipe is not None
        )
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)

    def listen(self, should_stop: Callable[[], bool]) -> None:
        """Until it has told everything, or is gone; or its time is over, or we are to stop."""
        stdin, stdout, stderr = (pipe.fileno() for pipe in self._pipes)
        with selectors.DefaultSelector() as selector:
            selector.register(stdin, selectors.EVENT_WRITE, self._write)
            selector.register(stdout, selectors.EVENT_READ, self._read)
            selector.register(stderr, selectors.EVENT_READ, self._read_stderr)
            while stdout in selector.get_map():
                self._is_stopped, self._is_over = should_stop(), self._until.expired
                if self._is_stopped or self._is_over:
                    return
                for key, _ in selector.select(self._until.within(_LOOKING_UP).remaining()):
                    if not key.data(key.fd):
                        selector.unregister(key.fd)

    def _write(self, stdin: int) -> bool:
        """Send more of the order; False when there is no more of it."""
        try:
            self._unsent = self._unsent[os.write(stdin, self._unsent) :]
        except BrokenPipeError:  # it is gone, which its stdout tells as well
            return False
        return bool(self._unsent)

    def _read(self, stdout: int) -> bool:
        """Take what it says; False at the end of it."""
        chunk = os.read(stdout, 1 << 20)
        try:
            messages = list(map(message_of, self._lines.feed(chunk)))
        except ValueError as error:
            self._trouble = f"what it told can't be read: {show(str(error), 200)}"
            return False
        for message in messages:
            if isinstance(message, WorkerFinished):
                self._found, self._is_done = message.found, message.is_all
            else:
                self._tell(self._order.name, message.text)
        return bool(chunk)

    def _read_stderr(self, stderr: int) -> bool:
        """Keep the end of it; False when there will be no more."""
        chunk = os.read(stderr, 65536)
        self._stderr = (self._stderr + chunk)[-_STDERR_KEPT:]
        return bool(chunk)

    # -- its end -----------------------------------------------------------------------------

    def end(self) -> None:
        """At the end of its stdin it ends what it started, and then itself; or it is killed."""
        self._pipes[0].close()
        patience = _PATIENCE if self._is_stopped else self._until.within(_PATIENCE).remaining()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._kill()
        self._process.wait()
        for pipe in self._pipes:
            pipe.close()
        if not self._is_done:
            end_orphaned_servers()
            if self._order.captures:  # those that it was still writing when it was ended
                finish_captures(Path(self._order.captures))

    def _kill(self) -> None:
        """End it and everything below it, whatever they are doing."""
        pid = self._process.pid
        # A process that stands still starts nothing, and stays the parent of whom it left behind.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        kill_all(lambda: tree_of(pid), _KILLING)
        self._process.kill()

    def outcome(self) -> Found:
        """What it found; or, where it could not tell, what kept it from that."""
        if self._is_done:
            return self._found
        outcome, reason = ServerOutcome.NOT_JUDGED, self._how_it_ended()
        if self._is_stopped:
            outcome, reason = ServerOutcome.INTERRUPTED, "interrupted"
        elif self._is_over:
            reason = f"not judged within {self._order.limit:g}s"
        spent = round((time.monotonic() - self._began) * 1000)
        row = replace(self._found.server, outcome=outcome, reason=reason, duration_ms=spent)
        return Found(row, self._found.offered)

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        ended = f"ended with code {code} without a result"
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


@contextlib.contextmanager
def judging_here(
    orders: Sequence[FleetServerOrder], stop: Stop, jobs: int, tell: Tell = lambda name, news: None
) -> Iterator[Iterator[tuple[int, Found]]]:
    """The results as they come, each with the number of its order. The first signal ends all."""
    become_subreaper()  # not where one is judged, which may be in a program of others
    is_left = threading.Event()

    def should_stop() -> bool:
        return stop.is_set() or is_left.is_set()

    with ThreadPoolExecutor(jobs) as threads:
        numbers = {
            threads.submit(judge_in_process, order, should_stop, tell): number
            for number, order in enumerate(orders)
        }
        try:
            yield ((numbers[one], one.result()) for one in as_completed(numbers))
        finally:
            is_left.set()
