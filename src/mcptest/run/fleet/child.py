"""A process of ours that judges one server, seen by whoever started it.

It is never trusted to end: after its limit it is killed with everything below it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from mcptest.model.deadline import Deadline
from mcptest.model.fleet import Found, Kept
from mcptest.model.redaction import redaction
from mcptest.model.show import show
from mcptest.run.fleet.frames import Finished, Frame, Lines, encoded
from mcptest.run.fleet.order import ServerOrder
from mcptest.transport.descendants import look_at, tree_of
from mcptest.transport.environment import MARKER

GRACE = 15.0
"""Seconds after its own limit in which a process may still come to an end by itself."""
_KILLING = 5.0
_QUIET_LOOKS = 3
_STDERR_KEPT = 4_000
# -P: the folder that somebody happens to stand in is no place to import from.
_COMMAND = (sys.executable, "-P", "-m", "mcptest.run.fleet.worker")


class Child:
    """One process at its work. `events` tells which of its pipes are to be watched."""

    def __init__(self, order: ServerOrder) -> None:
        self.order = order
        self.began = time.monotonic()
        self.until = Deadline.after(order.limit + GRACE)
        self.found: Found | None = None
        self.news = ""
        self._lines = Lines()
        self._unsent = memoryview(encoded(order))
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._trouble = ""
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us; we tell it
        )
        self.stdin, self.stdout, self.stderr = map(_unblocked, self._pipes())

    def _pipes(self) -> tuple[IO[bytes], ...]:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        return tuple(pipe for pipe in pipes if pipe is not None)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def write(self) -> None:
        """Send more of the order."""
        try:
            self._unsent = self._unsent[os.write(self.stdin, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it is gone, which its stdout tells as well
            self._unsent = memoryview(b"")

    def read(self) -> bool:
        """Take what it says; False at the end of it."""
        try:
            chunk = os.read(self.stdout, 1 << 20)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        try:
            frames = self._lines.feed(chunk)
        except ValueError as error:
            self._trouble = f"what it told can't be read: {show(str(error), 200)}"
            return False
        for frame in frames:
            self._take(frame)
        return True

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, Finished):
            self.found = frame.found
        else:
            self.news = frame.text

    def read_stderr(self) -> bool:
        """Keep the end of it; False when there will be no more."""
        try:
            chunk = os.read(self.stderr, 65536)
        except BlockingIOError:
            return True
        self._stderr.append(chunk)
        self._stderr_size += len(chunk)
        while self._stderr_size - len(self._stderr[0]) > _STDERR_KEPT:
            self._stderr_size -= len(self._stderr.popleft())
        return bool(chunk)

    # -- its end -----------------------------------------------------------------------------

    def leave_alone(self) -> None:
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
            quiet = 0 if _kill_living(tree_of(pid)) else quiet + 1
        self._process.kill()

    def close(self) -> None:
        """After its end: nothing of it is left with us."""
        self._process.wait()
        for pipe in self._pipes():
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def outcome(self, kept: Kept | None = None, reason: str = "") -> Found:
        """What it found; or, where it could not tell, what kept it from that."""
        if self.found is not None:
            return self.found
        spent = round((time.monotonic() - self.began) * 1000)
        if kept is not None:
            return Found(self.order.name, kept=kept, reason=reason, duration_ms=spent)
        said = self._trouble or f"the process that judged it {self._end_in_words()}"
        tail = b"".join(self._stderr)[-_STDERR_KEPT:].decode("utf-8", "backslashreplace")
        last = tail.strip().rpartition("\n")[2]
        mask = redaction.masker.cut_text
        return Found(
            self.order.name,
            kept=Kept.LOST,
            reason=said + (f": {show(mask(last), 300)}" if last else ""),
            duration_ms=spent,
        )

    def _end_in_words(self) -> str:
        code = self._process.wait()
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with code {code} and told nothing"


def _unblocked(pipe: IO[bytes]) -> int:
    os.set_blocking(pipe.fileno(), False)
    return pipe.fileno()


def _kill_living(pids: Iterable[int]) -> bool:
    """Whether there was anyone alive."""
    found = False
    for pid in list(pids):
        process = look_at(pid)
        if process is not None and not process.dead:
            found = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return found


def end_orphans_of_the_dead() -> None:
    """Servers whose process of ours was killed by others. They are our children now (Linux)."""
    ours = os.getpid()
    for pid in list(tree_of(ours)):
        process = look_at(pid)
        if process is not None and process.parent == ours and _is_a_server(pid):
            _kill_living([*tree_of(pid), pid])


def _is_a_server(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it went, or it is another user's
        return False
    return any(one.startswith(f"{MARKER}=".encode()) for one in environment.split(b"\0"))
