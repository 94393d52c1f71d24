"""One thread, one `poll`: file descriptors, timers and signals. Nothing here sleeps or spins."""

from __future__ import annotations

import heapq
import math
import os
import select
import signal
import time

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.POLLIN
WRITE = select.POLLOUT
SWEEP_AT = 1_000
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


def wait_for(fd: int, events: int, seconds: float) -> bool:
    """Whether one of these events happens to one descriptor within so many seconds."""
    poll = select.poll()
    poll.register(fd, events)
    return bool(poll.poll(seconds * 1000))


class Timer:
    """Something to do later, unless it is cancelled first."""

    __slots__ = ("_loop", "action", "at")

    def __init__(self, at: float, action: Callable[[], None], loop: Loop) -> None:
        self.at = at
        self.action: Callable[[], None] | None = action
        self._loop = loop

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            self._loop.forget_cancelled()

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at


class Loop:
    """Calls back when a descriptor is ready or a timer is due, until it is stopped."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._timers: list[Timer] = []
        self._cancelled = 0
        self.stopped = False

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call back when one of these events happens; replaces what was watched on `fd`."""
        self._callbacks[fd] = callback
        self._poll.register(fd, events)

    def ignore(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, action, self)
        heapq.heappush(self._timers, timer)
        return timer

    def forget_cancelled(self) -> None:
        """One more timer was cancelled; they are swept out once they are the larger part."""
        self._cancelled += 1
        if self._cancelled > max(SWEEP_AT, len(self._timers) // 2):
            self._timers = [timer for timer in self._timers if timer.action is not None]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def stop(self) -> None:
        self.stopped = True

    def run(self) -> None:
        while not self.stopped:
            self.turn()

    def turn(self, longest: float = math.inf) -> bool:
        """Wait for what comes next, so many seconds at most, and deal with it: was there any?"""
        ready = self._poll.poll(self._wait_ms(longest))
        for fd, events in ready:
            callback = self._callbacks.get(fd)
            if callback is not None:  # an earlier callback of this round may have closed it
                callback(events)
        if ready or longest > 0:
            now = time.monotonic()
            while self._timers and self._timers[0].at <= now:
                timer = heapq.heappop(self._timers)
                action, timer.action = timer.action, None
                if action is not None:
                    action()
        return bool(ready)

    def run_until_quiet(self, rounds: int) -> None:
        """Deal with what has come already and with what that leads to at once; never wait."""
        for _ in range(rounds):
            if not self.turn(0):
                return

    def _wait_ms(self, longest: float) -> int | None:
        timers = self._timers
        while timers and timers[0].action is None:
            heapq.heappop(timers)
        if timers:
            longest = min(longest, timers[0].at - time.monotonic())
        return None if longest == math.inf else max(0, math.ceil(longest * 1000))

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT end the loop, also while it waits in `poll`."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.watch(reader, READ, lambda events: self.stop())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, frame: self.stop())
