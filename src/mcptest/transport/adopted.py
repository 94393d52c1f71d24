"""A child that `subprocess` did not start, with as much of a `Popen` as a `ServerProcess` needs."""

from __future__ import annotations

import os
from io import FileIO

from mcptest.transport.early_spawn import EarlyProcess


class AdoptedChild:
    """A process that was started early. Only where the system has process descriptors."""

    def __init__(self, early: EarlyProcess) -> None:
        self.pid = early.pid
        self.stdin = FileIO(early.stdin, "wb")
        self.stdout = FileIO(early.stdout, "rb")
        self.stderr = FileIO(early.stderr, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal, or None while it lives. Reaps it."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # someone else in this program waits for every child
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode
