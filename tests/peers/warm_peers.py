"""Peers written with Python libraries, without the time that importing the libraries takes.

`import mcp` takes 0.8 s of a processor, and a command that judges a server starts it ten times. So
one process imports the libraries and forks for every peer; see `tests/e2e/warm_command.py`. What is
started is a small program that stands for the peer (`launch_warm.py`). Tests of how a peer starts,
ends or is found take the plain command.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKERS = 0
"""What each worker has open for writing: it is at its end when there is none."""
LAUNCHER = Path(__file__).with_name("launch_warm.py")
LIBRARIES = (
    *("anyio._backends._asyncio", "mcp.client.stdio", "mcp.server.mcpserver", "mcp_server_time"),
    *("fastmcp.client.transports", "fastmcp.server.server"),
    *("http.client", "http.server", "tests.rogues.malformed", "tests.rogues.test_http_gallery"),
)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Held while the process is started, and while it looks whether the last worker is gone."""
    lock = os.open(folder.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


# -- on the side of the tests ------------------------------------------------------------------


def warm_peer(*command: str) -> tuple[str, ...]:
    """A command that does the same as this Python program, with the libraries imported."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        return command
    words = command[1:] if command[0] == sys.executable else command
    return (sys.executable, "-I", "-S", str(LAUNCHER), _warm_process(), *words)


@cache
def _warm_process() -> str:
    """Where it listens. All workers of a run share one, which ends when the last of them has."""
    run = os.environ.get("MCPTEST_TESTS_RUN") or os.urandom(16).hex()
    folder = Path(tempfile.gettempdir(), f"mcptest-peers-{run}")
    workers = folder / "workers"
    with _locked(folder):
        if not folder.exists():
            folder.mkdir(mode=0o700)
            os.mkfifo(workers)
            watched = os.open(workers, os.O_RDONLY | os.O_NONBLOCK)
            subprocess.run(
                [sys.executable, "-m", "tests.peers.warm_peers", str(folder)],
                cwd=ROOT,
                stdin=watched,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                check=True,
            )
            os.close(watched)
        os.open(workers, os.O_WRONLY | os.O_NONBLOCK)  # as long as this worker lives
    return str(folder / "socket")


# -- on the other side -------------------------------------------------------------------------


class WarmProcess:
    """Forks for every launcher that comes, and tells each how its program ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen(128)
        self._selector.register(WORKERS, selectors.EVENT_READ, self._end)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> list[str]:
        """Comes back in a new process only, with the words of its command."""
        while True:
            for key, _ in self._selector.select():
                if (words := key.data()) is not None:
                    return list(words)

    def _end(self) -> None:
        """The tests are over, unless a worker came meanwhile."""
        with _locked(self._folder), contextlib.suppress(BlockingIOError):
            os.read(WORKERS, 1)
            for pid in self._running:
                _kill(pid)
            shutil.rmtree(self._folder)
            os._exit(0)

    def _accept(self) -> list[str] | None:
        link, _ = self._listener.accept()
        size, given, _, _ = socket.recv_fds(link, 8, 3)
        with link.makefile("rb") as stream:
            words, folder, environment = marshal.loads(stream.read(int.from_bytes(size, "little")))
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            for other in (self._listener, link, *self._running.values()):
                other.close()
            _take_over(given, folder, environment)
            return list(words)
        for descriptor in given:
            os.close(descriptor)
        process = os.pidfd_open(pid)
        self._running[pid] = link
        self._selector.register(link, selectors.EVENT_READ, lambda: self._pass_on(pid))
        self._selector.register(process, selectors.EVENT_READ, lambda: self._bury(pid, process))
        return None

    def _pass_on(self, pid: int) -> None:
        """What the launcher was told. If it is gone it was killed."""
        link = self._running.get(pid)
        if link is None:  # it ended at the same moment
            return
        signals = b""
        with contextlib.suppress(ConnectionResetError):
            signals = link.recv(64)
        for number in signals:
            os.kill(pid, number)
        if not signals:
            self._selector.unregister(link)
            _kill(pid)

    def _bury(self, pid: int, process: int) -> None:
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(process)
        os.close(process)
        link = self._running.pop(pid)
        with contextlib.suppress(KeyError):  # its launcher was killed
            self._selector.unregister(link)
        with link, contextlib.suppress(BrokenPipeError):
            code = os.waitstatus_to_exitcode(status)
            link.sendall(code.to_bytes(8, "little", signed=True))


def _kill(pid: int) -> None:
    """It, and what it started."""
    with contextlib.suppress(ProcessLookupError):  # it has no group of its own yet
        os.killpg(pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


def _take_over(given: list[int], folder: bytes, environment: dict[bytes, bytes]) -> None:
    for number, descriptor in enumerate(given):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.setsid()
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)


def _run(words: list[str]) -> None:
    is_module = words[0] == "-m"
    sys.argv = words[1:] if is_module else words
    sys.path[0] = str(Path.cwd() if is_module else Path(words[0]).parent)
    code: object = 0
    try:
        if is_module:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            raise
    # As an interpreter ends, but for clearing away all modules: they were not made here.
    threading._shutdown()  # type: ignore[attr-defined]  # no public name for this
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in LIBRARIES:
        importlib.import_module(name)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    warm = WarmProcess(Path(sys.argv[1]))
    if os.fork():
        os._exit(0)  # who started us knows that it listens
    _run(warm.serve())
