"""Sitting on stdio between a client and a server: bytes first, then a look at a copy.

What arrives is noted, written on, and looked at by someone else: nothing that goes wrong in
looking can touch the stream, and no answer is seen before what it answers. End of input, the end
of output, signals and the exit code are passed on both ways. One thread per direction: each has
nothing to do but read and write.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import msgspec

from mcptest.model.capture import AnyRecord, Exited
from mcptest.model.deadline import Deadline
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.transport.base import Clock, Sink
from mcptest.transport.process import ExitStatus, ServerProcess
from mcptest.transport.proxy_copy import LineCopy, Onlooker
from mcptest.transport.proxy_pipes import chunks_of, widen, write_all
from mcptest.transport.stderr import StderrLog

_LETTING_GO = 1.0
_LOOKING_FOR_OUR_PARENT = 1.0
_LAST_WARNING = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALLED = 128
_TAKING_TURNS = 0.0005
"""Seconds that one thread may keep the others from passing bytes on; Python's own is ten times."""


class Ending(msgspec.Struct, frozen=True):
    """How the session through a proxy came to its end."""

    status: ExitStatus
    timed_out: bool = False
    signalled: int | None = None
    """A signal that came when the server was gone already, and so was for us."""

    @property
    def code(self) -> int:
        """The server's exit code, as a shell would tell it."""
        number = self.signalled or self.status.signal
        return _SIGNALLED + number if number is not None else (self.status.code or 0)


class _ToldToLeave(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


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
        limits: Limits = DEFAULT_LIMITS,
        patience: Deadline | None = None,
    ) -> None:
        """`patience` is for the whole session; without it, it lasts as long as it lasts."""
        self._sink = sink
        self._clock = Clock()
        self._onlooker = Onlooker(sink, flush)
        self._limits = limits
        self._patience = patience
        self._client_left = threading.Event()
        self._parent = os.getppid()
        self._alone: Deadline | None = None
        self._timed_out = False
        self._process = ServerProcess(command, env, cwd, clean_env=clean_env)
        for pipe in (0, 1, self._process.stdin, self._process.stdout):
            widen(pipe)
        # Closing one end tells every thread that the server is gone.
        self._gone, self._server_lives = os.pipe()

    def run(self) -> Ending:
        """Pass everything on until the server is gone and the client has heard all of it."""
        upstream = threading.Thread(target=self._client_to_server, daemon=True)
        downstream = threading.Thread(target=self._server_to_client, daemon=True)
        errors = threading.Thread(target=self._server_errors, daemon=True)
        signalled = None
        with _taking_turns(), _passing_on_signals(self._process):
            self._onlooker.start()
            for thread in (upstream, downstream, errors):
                thread.start()
            try:
                self._wait()
                os.close(self._server_lives)
                upstream.join(_LETTING_GO)
                # The client takes what the server said at its own pace.
                for thread in (downstream, errors):
                    thread.join(self._patience_for_the_rest())
            except _ToldToLeave as told:
                signalled = told.number
        status = self._process.status()
        assert status is not None  # nothing above ends before the server does
        self._onlooker.finish()
        self._sink(Exited(t=self._clock(), code=status.code, signal=status.signal))
        self._process.release(Deadline.after(_LETTING_GO), politely=False)
        if not upstream.is_alive():
            os.close(self._gone)
        return Ending(status, timed_out=self._timed_out, signalled=signalled)

    def _wait(self) -> None:
        waiting = select.poll()
        if self._process.pidfd is not None:
            waiting.register(self._process.pidfd, select.POLLIN)
        longest = _LOOKING_FOR_OUR_PARENT if self._process.pidfd is not None else 0.05
        while self._process.status() is None:
            due = self._patience or self._alone
            seconds = min(longest, due.remaining()) if due and not due.expired else longest
            waiting.poll(seconds * 1000)
            orphaned = self._client_left.is_set() and os.getppid() != self._parent
            self._timed_out = self._patience is not None and self._patience.expired
            if orphaned or self._timed_out:
                self._end_it_ourselves()

    def _patience_for_the_rest(self) -> float | None:
        if self._patience is None:
            return None
        return max(_LETTING_GO, self._patience.remaining())

    def _end_it_ourselves(self) -> None:
        """Nobody is left who would ever ask the server to stop, or its time is over."""
        if self._alone is None:
            self._alone = Deadline.after(_LAST_WARNING)
            self._process.terminate()
        elif self._alone.expired:
            self._process.kill()

    # -- the three directions --------------------------------------------------------------

    def _client_to_server(self) -> None:
        copy = LineCopy("client", self._limits)
        with contextlib.suppress(BrokenPipeError):  # the server is gone, as its exit will say
            for chunk in chunks_of(0, self._gone, drain=False):
                self._onlooker.saw(copy.take, chunk, self._clock())
                write_all(self._process.stdin, chunk, self._gone)
        self._onlooker.saw(copy.finish, b"", self._clock())
        self._client_left.set()
        self._process.hang_up()
        _let_go_of(0)

    def _server_to_client(self) -> None:
        copy = LineCopy("server", self._limits)
        try:
            for chunk in chunks_of(self._process.stdout, self._gone, drain=True):
                self._onlooker.saw(copy.take, chunk, self._clock())
                write_all(1, chunk)
        except OSError:  # the client does not listen any more: let the server know
            self._client_left.set()
            self._process.stop_listening()
        self._onlooker.saw(copy.finish, b"", self._clock())
        _let_go_of(1)

    def _server_errors(self) -> None:
        now = 0.0
        log = StderrLog(self._limits, lambda: now)

        def take(chunk: bytes, t: float) -> Sequence[AnyRecord]:
            nonlocal now
            now = t
            return log.feed(chunk) if chunk else log.finish()

        client_listens = True
        for chunk in chunks_of(self._process.stderr, self._gone, drain=True):
            self._onlooker.saw(take, chunk, self._clock())
            if client_listens:
                try:
                    write_all(2, chunk)
                except OSError:
                    client_listens = False
        self._onlooker.saw(take, b"", self._clock())


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


@contextlib.contextmanager
def _passing_on_signals(process: ServerProcess) -> Iterator[None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        if process.status() is not None:  # then it is meant for us, who wait for the client
            raise _ToldToLeave(number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)

    before = {number: signal.signal(number, pass_on) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
