"""Sitting on stdio between a client and a server: bytes first, then a look at a copy.

What arrives is put in a queue, written on, and only then looked at: nothing that goes wrong in
looking can touch the stream, and no answer is seen before what it answers. End of input, the end
of output, signals and the exit code are passed on both ways. One thread per direction: each has
nothing to do but read, write and look.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from mcptest.model.capture import AnyRecord, Exited, Frame, Sender, Trouble
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.model.show import show
from mcptest.transport.base import Clock, Sink
from mcptest.transport.process import ExitStatus, ServerProcess
from mcptest.transport.stderr import StderrLog
from mcptest.wire.lines import LineReader, LineTooLong

_CHUNK = 256 * 1024
_LETTING_GO = 1.0
_LOOKING_FOR_OUR_PARENT = 1.0
_LAST_WARNING = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALLED = 128


class StdioProxy:
    """One client on our own stdin and stdout, one server process behind us."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        sink: Sink,
        env: Mapping[str, str],
        cwd: str | None = None,
        flush: Callable[[], None] = lambda: None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._sink = sink
        self._flush = flush
        self._clock = Clock()
        self._queueing = threading.Lock()
        self._looking = threading.Lock()
        self._queue: deque[tuple[Callable[[bytes], Sequence[AnyRecord]], bytes, float]] = deque()
        self._now = 0.0
        """When the chunk that is being looked at arrived."""
        self._limits = limits
        self._client_left = threading.Event()
        self._parent = os.getppid()
        self._alone: Deadline | None = None
        # The client gave us the environment that it meant for the server.
        self._process = ServerProcess(command, {**os.environ, **env}, cwd)
        # Closing one end tells every thread that the server is gone.
        self._gone, self._server_lives = os.pipe()

    def run(self) -> int:
        """Pass everything on until the server is gone; its exit code is ours."""
        upstream = threading.Thread(target=self._client_to_server, daemon=True)
        downstream = threading.Thread(target=self._server_to_client, daemon=True)
        errors = threading.Thread(target=self._server_errors, daemon=True)
        with _passing_on_signals(self._process):
            for thread in (upstream, downstream, errors):
                thread.start()
            status = self._wait()
            os.close(self._server_lives)
            upstream.join(_LETTING_GO)
            # The client takes what the server said at its own pace.
            downstream.join()
            errors.join()
        self._sink(Exited(t=self._clock(), code=status.code, signal=status.signal))
        self._process.release(Deadline.after(_LETTING_GO), politely=False)
        if not upstream.is_alive():
            os.close(self._gone)
        return _SIGNALLED + status.signal if status.signal is not None else (status.code or 0)

    def _wait(self) -> ExitStatus:
        while (status := self._process.status()) is None:
            ready = [self._process.pidfd] if self._process.pidfd is not None else []
            patience = _LOOKING_FOR_OUR_PARENT if ready else 0.05
            select.select(ready, [], [], patience)
            if self._client_left.is_set() and os.getppid() != self._parent:
                self._end_it_ourselves()
        return status

    def _end_it_ourselves(self) -> None:
        """Nobody is left who would ever ask the server to stop."""
        if self._alone is None:
            self._alone = Deadline.after(_LAST_WARNING)
            self._process.terminate()
        elif self._alone.expired:
            self._process.kill()

    # -- the three directions --------------------------------------------------------------

    def _client_to_server(self) -> None:
        copy = self._watch("client")
        with contextlib.suppress(BrokenPipeError):  # the server is gone, as its exit will say
            for chunk in _chunks(0, self._gone, drain=False):
                self._arrived(copy.take, chunk)
                _write_all(self._process.stdin, chunk, self._gone)
                self._look()
        self._end_of(copy.finish)
        self._client_left.set()
        self._process.hang_up()

    def _server_to_client(self) -> None:
        copy = self._watch("server")
        try:
            for chunk in _chunks(self._process.stdout, self._gone, drain=True):
                self._arrived(copy.take, chunk)
                _write_all(1, chunk)
                self._look()
        except OSError:  # the client does not listen any more: let the server know
            self._client_left.set()
            self._process.stop_listening()
        self._end_of(copy.finish)
        _let_go_of_stdout()

    def _server_errors(self) -> None:
        log = StderrLog(self._limits, self._arrival)
        client_listens = True
        for chunk in _chunks(self._process.stderr, self._gone, drain=True):
            self._arrived(log.feed, chunk)
            if client_listens:
                try:
                    _write_all(2, chunk)
                except OSError:
                    client_listens = False
            self._look()
        self._end_of(log.finish)

    # -- the copy --------------------------------------------------------------------------

    def _watch(self, sender: Sender) -> _Copy:
        return _Copy(sender, self._arrival, self._limits)

    def _arrival(self) -> float:
        return self._now

    def _arrived(self, take: Callable[[bytes], Sequence[AnyRecord]], chunk: bytes) -> None:
        """Note it before it goes on: what it gives rise to can only come after it."""
        with self._queueing:
            self._queue.append((take, chunk, self._clock()))

    def _look(self) -> None:
        with self._looking:
            while self._queue:
                take, chunk, self._now = self._queue.popleft()
                for record in take(chunk):
                    self._sink(record)
            self._flush()

    def _end_of(self, finish: Callable[[], Sequence[AnyRecord]]) -> None:
        self._arrived(lambda _: finish(), b"")
        self._look()


class _Copy:
    """Cuts what one side sent into messages, for the record only."""

    def __init__(self, sender: Sender, clock: Callable[[], float], limits: Limits) -> None:
        self._sender = sender
        self._clock = clock
        self._reader = LineReader(limits.message_bytes)

    def take(self, chunk: bytes) -> Sequence[AnyRecord]:
        t = self._clock()
        return [
            Frame(t=t, sender=self._sender, raw=line)
            if not isinstance(line, LineTooLong)
            else self._trouble(
                ErrorKind.LINE_TOO_LONG, f"a line of over {line.size} bytes", line.head
            )
            for line in self._reader.feed(chunk)
        ]

    def finish(self) -> Sequence[AnyRecord]:
        rest = self._reader.finish()
        if not rest:
            return ()
        return (
            Frame(t=self._clock(), sender=self._sender, raw=rest),
            self._trouble(ErrorKind.TRUNCATED, "the last line has no newline", rest),
        )

    def _trouble(self, kind: ErrorKind, what: str, head: bytes) -> Trouble:
        return Trouble(
            t=self._clock(),
            error=kind.value,
            detail=f"{what}, from the {self._sender}",
            excerpt=show(head),
        )


def _chunks(source: int, gone: int, *, drain: bool) -> Iterator[bytes]:
    """What can be read from `source`, until its end or until the server is gone.

    With `drain` the rest that a dead server left in its pipe still comes, but no waiting: a
    descendant of the server may hold the pipe open for ever.
    """
    while True:
        ready, _, _ = select.select([source, gone], [], [])
        if gone in ready and not drain:
            return
        try:
            chunk = os.read(source, _CHUNK) if source in ready or drain else b""
        except BlockingIOError:
            if gone in ready:
                return
            continue
        except OSError:  # closed under our hands, or its terminal is gone: the same as its end
            return
        if not chunk:
            return
        yield chunk


def _write_all(sink: int, chunk: bytes, gone: int | None = None) -> None:
    """Write it all, waiting as long as the reader needs, or until the server is gone."""
    rest = memoryview(chunk)
    until = [] if gone is None else [gone]
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:
            ready, _, _ = select.select(until, [sink], [])
            if ready:
                raise BrokenPipeError from None


def _let_go_of_stdout() -> None:
    """The client sees the end of our output, and nothing else can get the descriptor."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


@contextlib.contextmanager
def _passing_on_signals(process: ServerProcess) -> Iterator[None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        if process.status() is not None:  # then it is meant for us, who wait for the client
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)

    before = {number: signal.signal(number, pass_on) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
