"""Servers that start before anybody needs them: starting is what takes the longest in a run."""

from __future__ import annotations

import threading

from mcptest.model.deadline import Deadline
from mcptest.model.errors import McptestError
from mcptest.transport.base import discard
from mcptest.transport.process import ServerProcess
from mcptest.transport.target import Target, transport_for

_LEAVING = 2.0


class WarmServers:
    """Processes of one target that nobody has talked to yet."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._waiting: list[ServerProcess] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start one more, where a connection is a process."""
        target = self._target
        if target.way != "stdio":
            return
        try:
            process = ServerProcess(
                target.command, target.env, target.cwd, clean_env=target.clean_env
            )
        except McptestError:
            return  # whoever needs one meets it again, and says what is wrong
        with self._lock:
            self._waiting.append(process)

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self) -> ServerProcess | None:
        """One that runs already, if there is one. It belongs to whoever asked from then on."""
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def end(self) -> None:
        """End those that nobody took."""
        while (process := self.take()) is not None:
            unused = transport_for(self._target, discard, process=process)
            unused.open(Deadline.after(_LEAVING))
            unused.close(Deadline.after(_LEAVING))
