"""One command in a process of its own, on the loop of the server.

The server answers pings and takes cancellations while the engine works elsewhere; whatever a peer
does to the engine, the server lives on. Nothing here waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from mcptest.peer.demo.exchange import ToolFailure
from mcptest.peer.demo.loop import READ, Loop, Timer

MAX_CHILDREN = 4
MAX_OUTPUT = 4 * 1024 * 1024
TICK_SECONDS = 1.0
GRACE_SECONDS = 5.0
_CHUNK = 64 * 1024


class Children:
    """All that run. With the server every one of them ends."""

    def __init__(self) -> None:
        self._running: dict[Child, None] = {}

    def start(self, loop: Loop, words: Sequence[str], cwd: str, env: Mapping[str, str]) -> Child:
        if len(self._running) >= MAX_CHILDREN:
            raise ToolFailure(f"{MAX_CHILDREN} calls are running already; wait for one to end")
        child = Child(loop, words, cwd, env, self._ended)
        self._running[child] = None
        return child

    def close(self) -> None:
        running = tuple(self._running)
        for child in running:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        for child in running:
            child.reap(max(0.0, until - time.monotonic()))

    def _ended(self, child: Child) -> None:
        self._running.pop(child, None)


class Child:
    """A process whose output is kept; it is asked to go, and then made to."""

    def __init__(
        self,
        loop: Loop,
        words: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        forget: Callable[[Child], None],
    ) -> None:
        self._loop = loop
        self._forget = forget
        self.started = time.monotonic()
        # In a session of its own: a signal for us is not one for it, and its group is killed whole.
        self._process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self.out = bytearray()
        self.err = bytearray()
        self.overflowed = False
        self.ended = False
        self.at_end: Callable[[], None] | None = None
        self._wake: Callable[[], None] | None = None
        self._kill: Timer | None = None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._open = {
            self._process.stdout.fileno(): self.out,
            self._process.stderr.fileno(): self.err,
        }
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            loop.watch(descriptor, READ, lambda events, fd=descriptor: self._readable(fd))  # type: ignore[misc]  # binds the descriptor now

    @property
    def code(self) -> int:
        """The exit code; negative where a signal ended it."""
        return self._process.returncode if self._process.returncode is not None else -1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def wait(self, resume: Callable[[], None]) -> Callable[[], None]:
        """Call back at its end, or after a moment. What this gives takes that back."""
        timer = self._loop.after(TICK_SECONDS, self._tell)

        def wake() -> None:
            timer.cancel()
            resume()

        self._wake = wake

        def withdraw() -> None:
            timer.cancel()
            self._wake = None

        return withdraw

    def stop(self) -> None:
        """Ask it to end; it cleans up behind itself and is killed only if it takes too long."""
        if self.ended or self._kill is not None:
            return
        self.signal(signal.SIGTERM)
        self._kill = self._loop.after(GRACE_SECONDS, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def reap(self, patience: float) -> None:
        """The server ends: see it end too."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._end()

    def _tell(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def _readable(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        kept = self._open[descriptor]
        if chunk and len(kept) < MAX_OUTPUT:
            kept += chunk
        elif chunk:
            self.overflowed = True
            self.stop()
        else:
            self._loop.ignore(descriptor)
            del self._open[descriptor]
            if not self._open:
                self._await_exit()

    def _await_exit(self) -> None:
        """Its pipes are closed; its exit code follows within a moment."""
        if not hasattr(os, "pidfd_open"):
            self.reap(GRACE_SECONDS)
            return
        descriptor = os.pidfd_open(self._process.pid)

        def exited(events: int) -> None:
            self._loop.ignore(descriptor)
            os.close(descriptor)
            self.reap(GRACE_SECONDS)

        self._loop.watch(descriptor, READ, exited)

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        if self._kill is not None:
            self._kill.cancel()
        for descriptor in tuple(self._open):
            self._loop.ignore(descriptor)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._forget(self)
        if self.at_end is not None:
            self.at_end()
        self._tell()
