"""The copy that a proxy looks at: behind the stream's back, in order, in bounded memory.

Whoever passes bytes on hands a copy to the onlooker first and never waits for it to be looked at,
unless more is waiting than the memory that was granted: then the stream waits, and nothing is
lost. What goes wrong in looking can't touch the stream; it is told at the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mcptest.model.capture import AnyRecord, Frame, Sender, Step, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.model.show import show
from mcptest.transport.base import Sink
from mcptest.transport.large_messages import LARGE_BYTES, return_large_blocks
from mcptest.transport.leftover import LateOutput, last_line
from mcptest.wire.lines import LineReader, LineTooLong

HELD_BYTES = 32 * 1024 * 1024
"""How far the copy may lag behind."""
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
                    self._let_go(len(chunk) + _COST_OF_ONE)
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

    def _let_go(self, size: int) -> None:
        with self._changed:
            was_full = self._held > self._room
            self._held -= size
            if was_full:
                self._changed.notify_all()


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
        return [
            Frame(t=t, sender=sender, raw=line) if type(line) is bytes else self._too_long(line, t)  # type: ignore[arg-type]  # the only other kind of line
            for line in self._reader.feed(chunk)
        ]

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

    def _too_long(self, line: LineTooLong, t: float) -> Trouble:
        what = f"a line of over {line.size} bytes, from the {self._sender}"
        return self._trouble(ErrorKind.LINE_TOO_LONG, what, line.head, t)

    def _trouble(self, kind: ErrorKind, detail: str, head: bytes, t: float) -> Trouble:
        return Trouble(
            t=t, error=kind.value, detail=detail, excerpt=show(head), sender=self._sender
        )
