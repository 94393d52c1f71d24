"""Peers written with Python libraries, without the time that importing the libraries takes.

`import mcp` takes 0.8 s of a processor, and a command that judges a server starts it ten times. So
one process imports the libraries and forks for every peer; see `tests/e2e/warm_command.py`. What is
started is a small program that stands for the peer (`launch_warm.py`). Tests of how a peer starts,
ends or is found take the plain command.
"""

from __future__ import annotations

import atexit
import contextlib
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
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAUNCHER = Path(__file__).with_name("launch_warm.py")
LIBRARIES = (
    *("anyio._backends._asyncio", "mcp.client.stdio", "mcp.server.mcpserver", "mcp_server_time"),
    *("fastmcp.client.transports", "fastmcp.server.server"),
)


# -- on the side of the tests ------------------------------------------------------------------


def warm_peer(*command: str) -> tuple[str, ...]:
    """A command that does the same as this Python program, with the libraries imported."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        return command
    words = command[1:] if command[0] == sys.executable else command
    return (sys.executable, "-I", "-S", str(LAUNCHER), _warm_process(), *words)


@cache
def _warm_process() -> str:
    """Where it listens, as long as the tests run."""
    folder = tempfile.mkdtemp(prefix="mcptest-peers-")
    path = f"{folder}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.peers.warm_peers", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n", "the warm process of the peers did not start"
    return path


# -- on the other side -------------------------------------------------------------------------


class WarmProcess:
    """Forks for every launcher that comes, and tells each how its program ended."""

    def __init__(self, path: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(128)
        self._selector.register(sys.stdin, selectors.EVENT_READ, self._end)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> list[str]:
        """Comes back in a new process only, with the words of its command."""
        while True:
            for key, _ in self._selector.select():
                if (words := key.data()) is not None:
                    return list(words)

    def _end(self) -> None:
        """The tests are over."""
        for pid in self._running:
            _kill(pid)
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
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)
    code: object = 0
    try:
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
    warm = WarmProcess(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _run(warm.serve())
