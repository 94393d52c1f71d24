"""Starting servers that won't go, and knowing that they did."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e.driving import is_alive, wait_until

STUBBORN = Path(__file__).with_name("stubborn.py")


class Stubborn:
    """The command of such a server, and the processes that were started with it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._pids = folder / "pids"
        self.command = (sys.executable, str(STUBBORN), str(self._pids), *words)

    @property
    def processes(self) -> list[int]:
        text = self._pids.read_text() if self._pids.exists() else ""
        return [int(word) for word in text.split()]

    def assert_gone(self) -> None:
        assert self.processes, "it was never started"
        wait_until(lambda: not any(map(is_alive, self.processes)), "the end of the server")
