"""Properties side by side: a worker process for each, with servers of its own, and one report.

The engine computes more than it waits, so threads would not make it faster. A worker is a fork of
this process: it knows all that is known here, and starts in no time. When a property is tried
changes no example, because each property has a seed of its own.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import ForkProcess
from types import FrameType
from typing import NoReturn

import msgspec

from mcptest.core.limits import Deadline, cancellation
from mcptest.probe.properties.engine import Done, OneAfterTheOther, Tell
from mcptest.probe.properties.property_catalogue import PROPERTIES
from mcptest.report.property import PropertyResult
from mcptest.rules.corpus.reader import corpus_of
from mcptest.schema.hypothesis_strategies import LETTERS
from mcptest.transport.descendants import tree_of
from mcptest.transport.interrupt import kill_living, last_words

_LOOKING_UP = 0.2
_PARTING = 5.0
"""Seconds that a worker has to end its server, before both are killed."""
_LONGEST_FIRST = ("arguments", "messages-valid", "conversations", "messages-invalid", "read-only")
"""What takes long is begun early, or all wait for it in the end."""
_FORKS = multiprocessing.get_context("fork")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Team:
    """The workers for one run, and what they have found so far."""

    def __init__(
        self, alone: OneAfterTheOther, names: Sequence[str], begins: Tell, ends: Tell
    ) -> None:
        self._alone = alone
        """Who would try them without a team, and knows of the server what each worker needs."""
        self._stage = alone.stage
        self._names = names
        self._begins = begins
        self._ends = ends
        early = [name for name in _LONGEST_FIRST if name in names]
        self._todo = deque(dict.fromkeys((*early, *names)))
        self._stopping = mmap.mmap(-1, 1)
        """Shared with the workers: a byte that says that all is to end."""
        self._busy: dict[Connection, ForkProcess] = {}
        """Each is named as the property that it is working on."""
        self._room = 0
        """So many may work at once."""
        self._parts: list[Done] = []
        self._results: dict[str, PropertyResult] = {}
        self._troubles: list[str] = []
        self._patience = Deadline.after(0)
        """For those who are to stop."""

    def done(self, workers: int) -> Done:
        """Try them all, so many at once. The results stand in the order of the names."""
        self._stage.drop()  # or each worker would hold its pipes open
        # What every worker would otherwise work out for itself.
        corpus_of(self._stage.revision)
        LETTERS.validate()
        self._room = workers
        try:
            self._hire()
            while self._busy and not (self._is_stopping and self._patience.expired):
                self._listen()
                self._hire()
        except BaseException:
            self._stopping[0] = 1
            raise
        finally:
            # However this ends, nobody is left behind.
            deadline = Deadline.after(_PARTING)
            for pipe, worker in self._busy.items():
                pipe.close()  # whatever is said now comes too late to count
                worker.join(deadline.remaining())
                if worker.is_alive() and worker.pid is not None:
                    kill_living([worker.pid, *tree_of(worker.pid)])
                    worker.join()
        if self._todo and not self._is_stopping:
            # No further server could be had: as if nobody had asked for more than one.
            self._take(self._alone.all_of(list(self._todo), self._begins, self._ends))
        else:
            self._parts.append(Done(starts=self._stage.live.sessions))
        slow = {tool: how for part in self._parts for tool, how in part.slow_tools.items()}
        troubles = [*self._troubles, *(one for part in self._parts for one in part.troubles)]
        return Done(
            results=tuple(self._results[name] for name in self._names if name in self._results),
            slow_tools=slow,
            troubles=tuple(dict.fromkeys(troubles)),
            starts=sum(part.starts for part in self._parts),
            interrupted=self._is_stopping or any(part.interrupted for part in self._parts),
        )

    def _take(self, part: Done) -> None:
        self._results |= {one.name: one for one in part.results}
        self._parts.append(part)

    # -- workers ---------------------------------------------------------------------------

    @property
    def _is_stopping(self) -> bool:
        return self._stopping[0] != 0

    def _hire(self) -> None:
        while self._todo and len(self._busy) < self._room and not self._is_stopping:
            name = self._todo.popleft()
            ours, theirs = Pipe(duplex=False)
            ends = (theirs, (ours, *self._busy))
            knows = (*ends, self._alone, self._stopping, name, not self._todo)
            worker = _FORKS.Process(target=_be_a_worker, args=knows, name=name, daemon=True)
            with warnings.catch_warnings():
                # The only thread there may be draws our display, which a worker never touches.
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            theirs.close()
            self._busy[ours] = worker
            self._begins(name)

    def _listen(self) -> None:
        if self._alone.order.is_interrupted and not self._is_stopping:
            self._stopping[0] = 1
            self._patience = Deadline.after(_PARTING)
        for pipe in wait(list(self._busy), _LOOKING_UP):
            assert isinstance(pipe, Connection)  # these are what was waited for
            self._hear(pipe)

    def _hear(self, pipe: Connection) -> None:
        try:
            told: Done = pipe.recv()
        except (EOFError, OSError):
            name, why = self._busy[pipe].name, "the process that ran it was killed"
            told = Done((PropertyResult(name=name, about=PROPERTIES[name].about, ended_early=why),))
        worker = self._busy.pop(pipe)
        pipe.close()
        worker.join()
        if told.defect:
            raise RuntimeError(f"a worker failed over {worker.name}:\n{told.defect}")
        if told.no_server:
            self._todo.appendleft(worker.name)
            self._troubles.append(f"another server for --jobs did not start: {told.no_server}")
            self._room -= 1
            return
        self._take(told)
        self._stage.slow_tools.update(told.slow_tools)
        self._ends(worker.name)


# -- in the worker -----------------------------------------------------------------------------


def _be_a_worker(
    pipe: Connection,
    not_ours: Iterable[Connection],
    alone: OneAfterTheOther,
    stopping: mmap.mmap,
    name: str,
    is_last: bool,
) -> NoReturn:
    """Never returns: what is done at the end of a program is for the process that was forked."""
    try:
        for other in not_ours:
            other.close()
        last_words.clear()
        order = msgspec.structs.replace(alone.order, should_stop=_heeding(stopping))
        own = OneAfterTheOther(alone.stage.another(order))
        with cancellation.heeding(order.is_over):
            try:
                result = own.one(name, is_last=is_last)
            finally:
                own.stage.close()
        no_server = "" if own.tried else own.lost
        news = Done(no_server=no_server) if no_server else own.done([result])
    except BaseException:  # noqa: BLE001 - whatever it is, the parent has to tell it
        news = Done(defect=traceback.format_exc())
    with suppress(OSError):
        pipe.send(news)
    os._exit(0)


def _heeding(stopping: mmap.mmap) -> Callable[[], bool]:
    """Whether to stop: we are told to, or nobody is there any more to tell us.

    A signal is a reason as well, however often it comes; to lose patience is for our parent.
    """
    parent = os.getppid()
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hear)
    return lambda: bool(stopping[0] or heard or os.getppid() != parent)
