"""Ctrl-C and its relatives: the first stops us in order, the second ends everything at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

from mcptest.core.errors import ExitCode
from mcptest.core.limits import Deadline, cancellation
from mcptest.transport.descendants import live_servers, look_at, tree_of
from mcptest.transport.temporary import remove_all_folders

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KILLING = 2.0
_QUIET_LOOKS = 3

last_words: list[Callable[[], None]] = []
"""Called before we leave without waiting for anyone, within a signal handler."""


class Stop:
    """Whether the run is to end. A plain flag: the lock of an Event may be held by the very code
    that a signal interrupts."""

    def __init__(self) -> None:
        self._is_set = False
        self.limit: Deadline | None = None
        """When the command has to end (`--max-time`), whatever is under way."""
        self.on_set: Callable[[], None] = lambda: None
        """Called once, perhaps within a signal handler."""

    def is_set(self) -> bool:
        return self._is_set

    @property
    def is_out_of_time(self) -> bool:
        """Whether the limit is what ends the run, and nobody interrupted it."""
        return not self._is_set and self.limit is not None and self.limit.expired

    def is_over(self) -> bool:
        """Whether to end at once, for either reason."""
        return self._is_set or (self.limit is not None and self.limit.expired)

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self.on_set()


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[Stop]:
    """The first signal sets the flag that is given, and nothing else: nobody is torn away from
    what they do. The second does not wait for anyone."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            end_everything()
            for say in last_words:
                say()
            os._exit(ExitCode.INTERRUPTED)
        stop.set()

    with handling_signals(handle), cancellation.heeding(stop.is_over):
        yield stop


@contextlib.contextmanager
def handling_signals(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C and its relatives are handled so within the block."""
    # What is ignored, as SIGHUP under nohup, stays ignored.
    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_everything() -> None:
    """Kill every server with all that it started, and remove our temporary folders."""

    def ours() -> Iterator[int]:
        servers = list(live_servers)
        yield from servers
        for root in (*servers, os.getpid()):
            yield from tree_of(root)

    kill_all(ours, _KILLING)
    remove_all_folders()


def kill_all(living: Callable[[], Iterable[int]], seconds: float) -> None:
    """Until nobody is found any more: one that is dying may just have started another."""
    limit, quiet = Deadline.after(seconds), 0
    while quiet < _QUIET_LOOKS and not limit.expired:
        quiet = 0 if kill_living(living()) else quiet + 1


def kill_living(pids: Iterable[int]) -> bool:
    """Whether there was anyone alive."""
    found = False
    for pid in list(pids):
        process = look_at(pid)
        if process is not None and not process.dead:
            found = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return found
