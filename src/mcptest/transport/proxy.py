"""Sitting on stdio between a client and a server: bytes first, then a look at a copy.

What arrives is noted, written on, and looked at by someone else: nothing that goes wrong in
looking can touch the stream, and no answer is seen before what it answers. End of input, the end
of output, signals and the exit code are passed on both ways. One thread per direction: each has
nothing to do but read and write.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import msgspec

from mcptest.model.capture import FORCED, AnyRecord, Exited, Step
from mcptest.model.deadline import Deadline
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.transport.base import Clock, Sink
from mcptest.transport.process import ExitStatus, ServerProcess, signal_name
from mcptest.transport.proxy_copy import LineCopy, Onlooker
from mcptest.transport.proxy_pipes import chunks_of, widen, write_all
from mcptest.transport.stderr import StderrLog

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
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
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
        limits: Limits = DEFAULT_LIMITS,
        patience: Deadline | None = None,
        silence: float = SILENCE,
    ) -> None:
        """`patience` is for the whole session; without it, it lasts as long as it lasts."""
        self._sink = sink
        self._clock = Clock()
        self._onlooker = Onlooker(sink, flush)
        self._limits = limits
        self._patience = patience
        self._silence = silence
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
        with _taking_turns(), self._hearing_signals():
            self._onlooker.start()
            for thread in (upstream, downstream, errors):
                thread.start()
            self._wait_for_the_server()
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
        return Ending(status, self._timed_out, signalled, self._why)

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
            for number in self._signals_heard():
                self._be_signalled(number)
            self._look_for_a_reason_to_end()
            if self._step == "kill" and self._kill_at is not None and self._kill_at.expired:
                break  # not even SIGKILL ends it
        if pidfd is not None:
            self._poll.unregister(pidfd)

    def _wait_for_the_client(self, *directions: threading.Thread) -> int | None:
        """It takes what the server said at its own pace. Gives a signal that came for us."""
        self._moved = time.monotonic()
        while any(thread.is_alive() for thread in directions):
            self._doze(_LOOKING_FOR_OUR_PARENT)
            for number in self._signals_heard():
                return number
            if time.monotonic() - self._moved > self._patience_with_the_client():
                break
        return None

    def _patience_with_the_client(self) -> float:
        """Seconds in which it takes nothing; without end while it may still want to go on."""
        if self._step in FORCED:
            return _LETTING_GO
        if self._patience is not None:
            return max(_LETTING_GO, self._patience.remaining())
        return self._silence if self._client_left else math.inf

    def _doze(self, *seconds: float) -> None:
        for descriptor, _ in self._poll.poll(min(seconds) * 1000):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it will wake up
            os.write(self._wake, b".")

    # -- ending ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        def hear(number: int, frame: FrameType | None) -> None:
            self._signals.append(number)
            self._wake_up()

        # What is ignored, as SIGHUP under nohup, stays ignored.
        heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        before = {number: signal.signal(number, hear) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signals_heard(self) -> Iterator[int]:
        while self._signals:
            yield self._signals.pop(0)

    def _be_signalled(self, number: int) -> None:
        """The first signal is for the server, which gets time to end; the second ends it."""
        if self._step in FORCED:
            self._kill()
            return
        grace = AFTER_SIGNAL_AND_EOF if self._client_left else AFTER_SIGNAL
        self._advance("terminate", f"after {signal_name(number)}, which was passed on")
        self._kill_at = Deadline.after(grace)
        self._process.pass_on(signal.Signals(number))

    def _look_for_a_reason_to_end(self) -> None:
        if self._kill_at is not None:
            if self._kill_at.expired and self._step != "kill":
                self._kill()
            return
        why = self._reason_to_end()
        if why:
            self._advance("terminate", why)
            self._kill_at = Deadline.after(AFTER_LIMIT)
            self._process.terminate()

    def _reason_to_end(self) -> str:
        if self._patience is not None and self._patience.expired:
            self._timed_out = True
            return "when the time for the session was over"
        if not self._client_left:
            return ""
        if os.getppid() != self._parent:
            return "because the client is gone"
        if time.monotonic() - self._moved > self._silence:
            return f"after {self._silence:g} s of silence since the client closed its side"
        return ""

    def _kill(self) -> None:
        self._advance("kill", self._why)
        self._process.kill()
        self._kill_at = Deadline.after(_LETTING_GO)

    def _advance(self, step: Step, why: str = "") -> None:
        if _STEPS.index(step) > _STEPS.index(self._step):
            self._step, self._why = step, why

    # -- the three directions --------------------------------------------------------------

    def _client_to_server(self) -> None:
        copy = LineCopy("client", self._limits)
        with contextlib.suppress(BrokenPipeError):  # the server is gone, as its exit will say
            for chunk in chunks_of(0, self._gone, drain=False):
                self._onlooker.saw(copy.take, chunk, self._clock())
                write_all(self._process.stdin, chunk, self._gone)
        self._finish(copy)
        self._leave()
        self._process.hang_up()
        _let_go_of(0)

    def _server_to_client(self) -> None:
        copy = LineCopy("server", self._limits)
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
        now = 0.0
        log = StderrLog(self._limits, lambda: now)

        def take(chunk: bytes, t: float) -> Sequence[AnyRecord]:
            nonlocal now
            now = t
            return log.feed(chunk) if chunk else log.finish()

        is_open = True
        for chunk in chunks_of(self._process.stderr, self._gone, drain=True):
            self._onlooker.saw(take, chunk, self._clock())
            if is_open and self._client_listens:  # else a log without end is no sign of life
                self._moved = time.monotonic()
            if is_open:
                try:
                    write_all(2, chunk)
                except OSError:
                    is_open = False
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
