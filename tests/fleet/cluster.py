"""A real Dask cluster on this machine: a scheduler and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.driving import wait_until

_ADDRESS = re.compile(r"tcp://127\.0\.0\.1:\d+")
# What `dask scheduler` and `dask worker` do, without the time that their command line takes.
_SCHEDULER = """
import asyncio, distributed
LIFELINE
async def main():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
_WORKER = """
import asyncio, sys, distributed
LIFELINE
async def main():
    async with distributed.Worker(sys.argv[1], nthreads=1, host="127.0.0.1") as worker:
        print(worker.address, flush=True)
        await worker.finished()
asyncio.run(main())
"""
# Whoever started it is gone, however that came about: then so is every process of the cluster.
_LIFELINE = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
"""


class Cluster:
    """Workers may come and go. What all of them write is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.address, self.scheduler = self._start(_SCHEDULER)

    def add_worker(self) -> int:
        """Its process id."""
        return self._start(_WORKER, self.address)[1]

    def _start(self, program: str, *arguments: str) -> tuple[str, int]:
        log = self._folder / f"{len(self._processes)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-c", program.replace("LIFELINE", _LIFELINE), *arguments],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "info"},
            )
        self._processes[str(process.pid)] = process
        found: Any = wait_until(
            lambda: _ADDRESS.search(log.read_text()), "the address of a process of the cluster"
        )
        return found[0], process.pid

    def kill(self, pid: int) -> None:
        process = self._processes[str(pid)]
        process.kill()
        process.communicate()

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.communicate()


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="mcptest-cluster-") as folder:
        started = Cluster(Path(folder))
        try:
            for _ in range(workers):
                started.add_worker()
            yield started
        finally:
            started.end()
