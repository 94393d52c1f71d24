"""Sitting on stdio between a client and a server: bytes first, then a look at a copy.

What arrives is noted, written on, and looked at by someone else: nothing that goes wrong in
looking can touch the stream, and no answer is seen before what it answers. End of input, the end
of output, signals and the exit code are passed on both ways. One thread per direction: each has
nothing to do but read and write.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TypeAlias

import msgspec

from mcptest.core.capture import FORCED, AnyRecord, Exited, Frame, Sender, Step, Trouble
from mcptest.core.errors import ErrorKind
from mcptest.core.limits import DEFAULT_LIMITS, Deadline, Limits
from mcptest.core.safe_text import show
from mcptest.transport.base import LARGE_BYTES, Clock, Sink, return_large_blocks
from mcptest.transport.interrupt import handling_signals
from mcptest.transport.process import ExitStatus, ServerProcess, signal_name
from mcptest.transport.recorder import LateOutput, last_line
from mcptest.transport.stdio import StderrLog
from mcptest.wire.lines import LineReader, LineTooLong

# -- Passing bytes from one descriptor to another ------------------------------------------------

_SMALL = 64 * 1024
_LARGE = 1024 * 1024
"""As much as a pipe holds after `widen`, and so what one read can give at the most."""


def widen(pipe: int) -> None:
    """Let a pipe hold more, so that a stream of data needs fewer turns. Others stay as they are."""
    # Not on every system, not for files and sockets, and not beyond what a user may have.
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGE)


def chunks_of(source: int, gone: int, *, drain: bool) -> Iterator[bytes]:
    """What can be read from `source`, until its end or until `gone` tells that the server is.

    With `drain` the rest that a dead server left in its pipe still comes, but no waiting: a
    descendant of the server may hold the pipe open for ever.
    """
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    waiting.register(gone, select.POLLIN)
    size = _SMALL
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if gone in ready and not drain:
            return
        try:
            chunk = os.read(source, size) if source in ready or drain else b""
        except BlockingIOError:
            if gone in ready:
                return
            continue
        except OSError:  # closed under our hands, or its terminal is gone: the same as its end
            return
        if not chunk:
            return
        # A large buffer for each small message would cost more than the message.
        size = _LARGE if len(chunk) == size else _SMALL
        yield chunk


def write_all(sink: int, chunk: bytes, gone: int | None = None) -> None:
    """Write it all, waiting as long as the reader needs, or until the server is gone."""
    rest: bytes | memoryview = chunk
    while rest:
        try:
            rest = memoryview(rest)[os.write(sink, rest) :]
        except BlockingIOError:
            waiting = select.poll()
            waiting.register(sink, select.POLLOUT)
            if gone is not None:
                waiting.register(gone, select.POLLIN)
            if any(descriptor == gone for descriptor, _ in waiting.poll()):
                raise BrokenPipeError from None


# -- The copy that a proxy looks at --------------------------------------------------------------

HELD_BYTES = 4 * 1024 * 1024
"""How far the copy may lag behind: looking at the rest takes no time worth mentioning."""
_COST_OF_ONE = 256
"""What a chunk takes in the queue besides its bytes: a peer may send them one by one."""
_GATHERED = 1024 * 1024
"""What the sink may gather between two flushes; it counts records, which may be large."""

Take: TypeAlias = Callable[[bytes, float], Sequence[AnyRecord]]


class Onlooker:
    """One thread that turns copies into records, oldest first."""

    def __init__(self, sink: Sink, flush: Callable[[], None], room: int = HELD_BYTES) -> None:
        self._sink = sink
        self._flush = flush
        self._room = room
        self._changed = threading.Condition()
        self._queue: deque[tuple[Take, bytes, float]] = deque()
        self._held = 0
        self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="onlooker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def saw(self, take: Take, chunk: bytes, t: float) -> None:
        """Note what came, before it goes on: what it gives rise to can only come after it."""
        with self._changed:
            while self._held > self._room and self._failure is None:
                self._changed.wait()
            if self._failure is None:
                self._queue.append((take, chunk, t))
                self._held += len(chunk) + _COST_OF_ONE
                self._changed.notify_all()

    def finish(self) -> None:
        """Wait until everything has been looked at. Raises what went wrong meanwhile."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            gathered = 0
            while batch := self._next():
                while batch:
                    take, chunk, t = batch.popleft()  # so that nobody else holds the bytes
                    for record in take(chunk, t):
                        self._sink(record)
                    gathered += len(chunk)
                    if gathered >= _GATHERED or not (batch or self._queue):
                        self._flush()
                        gathered = 0
                    with self._changed:
                        was_full = self._held > self._room
                        self._held -= len(chunk) + _COST_OF_ONE
                        if was_full:
                            self._changed.notify_all()
        except Exception as error:  # noqa: BLE001 - raised again by `finish`; the stream goes on
            with self._changed:
                self._failure = error
                self._queue.clear()
                self._changed.notify_all()

    def _next(self) -> deque[tuple[Take, bytes, float]]:
        """All that waits; nothing only when no more will come."""
        with self._changed:
            while not self._queue and not self._closing:
                self._changed.wait()
            batch, self._queue = self._queue, deque()
            return batch


class LineCopy:
    """Cuts what one side sent into messages, for the record only."""

    def __init__(self, sender: Sender, limits: Limits = DEFAULT_LIMITS) -> None:
        self._sender: Sender = sender
        self._reader = LineReader(limits.message_bytes)
        self._late = LateOutput()

    def take(self, chunk: bytes, t: float) -> Sequence[AnyRecord]:
        sender = self._sender
        if self._reader.held > LARGE_BYTES:
            return_large_blocks()
        records: list[AnyRecord] = []
        for line in self._reader.feed(chunk):
            if isinstance(line, LineTooLong):
                what = f"a line of over {line.size} bytes, from the {sender}"
                records.append(self._trouble(ErrorKind.LINE_TOO_LONG, what, line.head, t))
            else:
                records.append(Frame(t=t, sender=sender, raw=line))
        return records

    def take_late(self, chunk: bytes, t: float) -> Sequence[AnyRecord]:
        """What a server says after it was told to end by a signal."""
        records = self._last_line("terminate", t)
        self._late.add(chunk)
        return records

    def finish(self, step: Step, t: float) -> Sequence[AnyRecord]:
        """No more comes; `step` is what had been done by then to end the server."""
        return [*self._last_line(step, t), *self._late.records(t)]

    def _last_line(self, step: Step, t: float) -> Sequence[AnyRecord]:
        rest = self._reader.finish()
        detail = f"the last line has no newline, from the {self._sender}"
        if self._sender == "server":
            return list(last_line(rest, step, t, detail))
        if not rest:
            return ()
        return (
            Frame(t=t, sender="client", raw=rest),
            self._trouble(ErrorKind.TRUNCATED, detail, rest, t),
        )

    def _trouble(self, kind: ErrorKind, detail: str, head: bytes, t: float) -> Trouble:
        return Trouble(
            t=t, error=kind.value, detail=detail, excerpt=show(head), sender=self._sender
        )


# -- Sitting on stdio between a client and a server ----------------------------------------------

_LETTING_GO = 1.0
_LOOKING_FOR_OUR_PARENT = 1.0
_LOOKING_FOR_THE_END = 0.05
"""How often the process is looked at where the system has no process descriptors."""
AFTER_SIGNAL = 4.0
"""How long a server may take to end after a signal for us was passed on."""
AFTER_SIGNAL_AND_EOF = 1.5
"""The same when its stdin was closed before: a client that does both waits two seconds for each."""
AFTER_LIMIT = 2.0
SILENCE = 30.0
"""How long a server may say nothing after the end of its input before it is asked to end."""
_SIGNALLED = 128
_STEPS: tuple[Step, ...] = ("", "stdin-closed", "terminate", "kill")
_TAKING_TURNS = 0.0005
"""Seconds that one thread may keep the others from passing bytes on; Python's own is ten times."""


class Ending(msgspec.Struct, frozen=True):
    """How the session through a proxy came to its end."""

    status: ExitStatus
    timed_out: bool = False
    signalled: int | None = None
    """A signal that came when the server was gone already, and so was for us."""
    why: str = ""
    """What made it end, in words that follow how it did; "" by itself or with the client's EOF."""
    unasked: bool = False
    """The server ended by itself while the client was still there."""

    @property
    def code(self) -> int:
        """The server's exit code, as a shell would tell it."""
        number = self.signalled or self.status.signal
        return _SIGNALLED + number if number is not None else (self.status.code or 0)


class StdioProxy:
    """One client on our own stdin and stdout, one server process behind us."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        sink: Sink,
        env: Mapping[str, str],
        cwd: str | None = None,
        clean_env: bool = False,
        flush: Callable[[], None] = lambda: None,
        patience: Deadline | None = None,
    ) -> None:
        """`patience` is for the whole session; without it, it lasts as long as it lasts."""
        self._sink = sink
        self._clock = Clock()
        self._onlooker = Onlooker(sink, flush)
        self._patience = patience
        self._parent = os.getppid()
        self._client_left = False
        self._client_listens = True
        self._moved = time.monotonic()
        """When the server said something last that the client took, or could take."""
        self._step: Step = ""
        self._why = ""
        self._kill_at: Deadline | None = None
        self._timed_out = False
        self._signals: list[int] = []
        # A byte wakes the thread that waits: for a signal, or the end of a direction.
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        # Closing one end tells every thread that the server is gone.
        self._gone, self._server_lives = os.pipe()
        self._process = ServerProcess(command, env, cwd, clean_env=clean_env)
        for pipe in (0, 1, self._process.stdin, self._process.stdout):
            widen(pipe)
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)

    def run(self) -> Ending:
        """Pass everything on until the server is gone and the client has heard all of it."""
        upstream = self._thread(self._client_to_server)
        downstream = self._thread(self._server_to_client)
        errors = self._thread(self._server_errors)

        def hear(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)
            self._wake_up()

        with _taking_turns(), handling_signals(hear):
            self._onlooker.start()
            for thread in (upstream, downstream, errors):
                thread.start()
            self._wait_for_the_server()
            self._wait_for_its_children(downstream)
            os.close(self._server_lives)
            signalled = self._wait_for_the_client(downstream, errors)
            upstream.join(_LETTING_GO)
        status = self._process.status() or ExitStatus(signal=signal.SIGKILL)
        self._onlooker.finish()
        self._sink(
            Exited(t=self._clock(), code=status.code, signal=status.signal, after=self._step)
        )
        self._process.release(Deadline.after(_LETTING_GO), politely=False)
        if not upstream.is_alive():
            os.close(self._gone)
        return Ending(status, self._timed_out, signalled, self._why, unasked=not self._step)

    def _thread(self, pass_on: Callable[[], None]) -> threading.Thread:
        def work() -> None:
            pass_on()
            self._wake_up()

        return threading.Thread(target=work, daemon=True)

    # -- waiting ---------------------------------------------------------------------------

    def _wait_for_the_server(self) -> None:
        pidfd = self._process.pidfd
        longest = _LOOKING_FOR_OUR_PARENT if pidfd is not None else _LOOKING_FOR_THE_END
        if pidfd is not None:
            self._poll.register(pidfd, select.POLLIN)
        while self._process.status() is None:
            due = [each for each in (self._patience, self._kill_at) if each and not each.expired]
            self._doze(min((each.remaining() for each in due), default=longest), longest)
            if self._process.status() is not None:
                break  # a signal that came since is for us
            while self._signals:
                # The first is for the server, which gets time to end; the second ends it.
                number = self._signals.pop(0)
                if self._step in FORCED:
                    self._kill()
                    continue
                grace = AFTER_SIGNAL_AND_EOF if self._client_left else AFTER_SIGNAL
                self._advance("terminate", f"after {signal_name(number)}, which was passed on")
                self._kill_at = Deadline.after(grace)
                self._process.pass_on(signal.Signals(number))
            self._look_for_a_reason_to_end()
            if self._step == "kill" and self._kill_at is not None and self._kill_at.expired:
                break  # not even SIGKILL ends it
        if pidfd is not None:
            self._poll.unregister(pidfd)

    def _wait_for_its_children(self, downstream: threading.Thread) -> None:
        """A server that exits unasked may leave its pipes to a child, which answers in its place.

        Without a proxy the client would hear that child, so it does here, until either closes its
        side. Whether the exit is noticed before or after an answer then changes nothing.
        """
        while downstream.is_alive() and not (self._step or self._client_left or self._signals):
            if self._patience is not None and self._patience.expired:
                self._timed_out = True
                return
            rest = self._patience.remaining() if self._patience is not None else math.inf
            self._doze(rest, _LOOKING_FOR_OUR_PARENT)

    def _wait_for_the_client(self, *directions: threading.Thread) -> int | None:
        """It takes what the server said at its own pace. Gives a signal that came for us."""
        self._moved = ended = time.monotonic()
        while any(thread.is_alive() for thread in directions):
            self._doze(_LOOKING_FOR_OUR_PARENT)
            if self._signals:
                return self._signals.pop(0)
            # Seconds in which it takes nothing; without end while it may still want to go on.
            patience = SILENCE if self._client_left else math.inf
            if self._step in FORCED:
                patience = _LETTING_GO
            elif self._patience is not None:
                patience = max(_LETTING_GO, self._patience.remaining())
            if time.monotonic() - self._moved > patience:
                break
            if self._timed_out and time.monotonic() - ended > _LETTING_GO:
                break  # one that takes a byte now and then does not make the session longer
        return None

    def _doze(self, *seconds: float) -> None:
        for descriptor, _ in self._poll.poll(min(seconds) * 1000):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it will wake up
            os.write(self._wake, b".")

    # -- ending ----------------------------------------------------------------------------

    def _look_for_a_reason_to_end(self) -> None:
        if self._kill_at is not None:
            if self._kill_at.expired and self._step != "kill":
                self._kill()
            return
        if self._patience is not None and self._patience.expired:
            self._timed_out = True
            why = "because the session timed out"
        elif not self._client_left:
            return
        elif os.getppid() != self._parent:
            why = "because the client disconnected"
        elif time.monotonic() - self._moved > SILENCE:
            why = f"after {SILENCE:g}s of silence since the client closed its side"
        else:
            return
        self._advance("terminate", why)
        self._kill_at = Deadline.after(AFTER_LIMIT)
        self._process.terminate()

    def _kill(self) -> None:
        self._advance("kill", self._why)
        self._process.kill()
        self._kill_at = Deadline.after(_LETTING_GO)

    def _advance(self, step: Step, why: str = "") -> None:
        if _STEPS.index(step) > _STEPS.index(self._step):
            self._step, self._why = step, why

    # -- the three directions --------------------------------------------------------------

    def _client_to_server(self) -> None:
        copy = LineCopy("client")
        with contextlib.suppress(BrokenPipeError):  # the server is gone, as its exit will say
            for chunk in chunks_of(0, self._gone, drain=False):
                self._onlooker.saw(copy.take, chunk, self._clock())
                write_all(self._process.stdin, chunk, self._gone)
        self._finish(copy)
        self._leave()
        self._process.hang_up()
        _let_go_of(0)

    def _server_to_client(self) -> None:
        copy = LineCopy("server")
        try:
            for chunk in chunks_of(self._process.stdout, self._gone, drain=True):
                take = copy.take_late if self._step in FORCED else copy.take
                self._onlooker.saw(take, chunk, self._clock())
                self._moved = time.monotonic()
                write_all(1, chunk)
                self._moved = time.monotonic()
        except OSError:  # the client does not listen any more: let the server know
            self._client_listens = False
            self._leave()
            self._process.stop_listening()
        self._finish(copy)
        _let_go_of(1)

    def _leave(self) -> None:
        """The client has closed its side. If the server lives, that is where its end begins."""
        self._moved = time.monotonic()
        self._client_left = True
        if self._process.status() is None:
            self._advance("stdin-closed")

    def _finish(self, copy: LineCopy) -> None:
        step = self._step
        self._onlooker.saw(lambda chunk, t: copy.finish(step, t), b"", self._clock())

    def _server_errors(self) -> None:
        log = StderrLog(DEFAULT_LIMITS)
        is_open = True
        for chunk in chunks_of(self._process.stderr, self._gone, drain=True):
            self._onlooker.saw(log.feed, chunk, self._clock())
            if is_open and self._client_listens:  # else a log without end is no sign of life
                self._moved = time.monotonic()
            if is_open:
                try:
                    write_all(2, chunk)
                except OSError:
                    is_open = False
        self._onlooker.saw(lambda chunk, t: log.finish(t), b"", self._clock())


def _let_go_of(descriptor: int) -> None:
    """The client sees that nobody is at the other end, and nothing else can get the descriptor."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextlib.contextmanager
def _taking_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TAKING_TURNS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
