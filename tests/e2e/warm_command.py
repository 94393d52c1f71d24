"""`mcptest` in a process of its own that did not have to import anything: a fork of a warm one.

A test of a command spends most of its time on imports. So one process imports all of mcptest, runs
nothing of it, and forks for every command. What comes of it is a real process with its own folder,
environment, descriptors, signals and exit code; only the start of the interpreter is saved. The
tests that are about the start itself, and some of each command, start one: `mcptest_anew`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FORK = b"f"


# -- on the side of the tests ------------------------------------------------------------------


class WarmCommand:
    """The warm process, as long as the tests run."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._turn = threading.Lock()
        self._read_at_the_start = _read_at_the_start(os.environ)
        command = [sys.executable, "-m", "tests.e2e.warm_command", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # what wraps a pipe is not the same as what wraps a file
            stderr=subprocess.PIPE,
        )
        theirs.close()
        atexit.register(self.end)

    def is_like(self, env: Mapping[str, str]) -> bool:
        """Whether an interpreter that starts in this environment would be the same."""
        return _read_at_the_start(env) == self._read_at_the_start

    def end(self) -> None:
        self._control.close()
        self._process.communicate()

    def _how_it_ended(self) -> str:
        _, said = self._process.communicate()
        return f"the warm process ended with {self._process.returncode}: {said.decode()[-2000:]}"

    def run(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], bound: float
    ) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr. What is not over in time is killed."""
        with contextlib.ExitStack() as opened:
            link, out, err = self._fork(opened)
            link.sendall(json.dumps({"argv": list(argv), "cwd": cwd, "env": dict(env)}).encode())
            link.shutdown(socket.SHUT_WR)
            told = _read_to_the_end([link.fileno(), out, err], bound)
            pid, _, code = told[0].partition(b"\n")
            assert pid, "the warm process started nothing"
            if not code.endswith(b"\n"):
                os.kill(int(pid), signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(argv), bound, told[1], told[2])
            return int(code), told[1], told[2]

    def _fork(self, opened: contextlib.ExitStack) -> tuple[socket.socket, int, int]:
        """Our ends of what the new process was given as its link to us, stdout and stderr."""
        ours, theirs = socket.socketpair()
        opened.enter_context(ours)
        with theirs, open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor
            out, their_out = os.pipe()
            err, their_err = os.pipe()
            opened.callback(os.close, out)
            opened.callback(os.close, err)
            given = [nothing.fileno(), their_out, their_err, theirs.fileno()]
            with self._turn:
                try:
                    socket.send_fds(self._control, [FORK], given)
                except BrokenPipeError:
                    warm_command.cache_clear()  # the next test has a new one
                    raise AssertionError(self._how_it_ended()) from None
            os.close(their_out)
            os.close(their_err)
        return ours, out, err


def _read_at_the_start(env: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter asks its environment once."""
    names = {name for name in env if name.startswith(("PYTHON", "LC_"))} | {"LANG", "TZ"}
    return {name: env.get(name, "") for name in names}


@cache
def warm_command() -> WarmCommand:
    return WarmCommand()


def _read_to_the_end(descriptors: Sequence[int], bound: float) -> list[bytes]:
    """Everything that comes on each of them; in time, or what came so far."""
    seen = {descriptor: bytearray() for descriptor in descriptors}
    limit = time.monotonic() + bound
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, limit - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                seen[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    return [bytes(seen[descriptor]) for descriptor in descriptors]


# -- on the other side -------------------------------------------------------------------------


def _wait_for_orders(control: socket.socket) -> dict[str, Any] | None:
    """Fork for each order. Comes back in the new process with the order, or at the end of all."""
    while True:
        _bury_the_dead()
        try:
            _, given, _, _ = socket.recv_fds(control, 1, 4)
        except ConnectionResetError:  # the tests were killed
            return None
        if not given:
            return None
        if os.fork() == 0:
            control.close()
            return _guarded(given)
        for descriptor in given:
            os.close(descriptor)


def _bury_the_dead() -> None:
    """Those that told how their command ended, and nobody else waits for."""
    with contextlib.suppress(ChildProcessError):  # there is none
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _guarded(given: Sequence[int]) -> dict[str, Any]:
    """Fork once more: one runs the command, the other waits for it and tells how it ended."""
    *streams, number = given
    with socket.socket(fileno=number) as link:
        with link.makefile("rb") as words:
            order: dict[str, Any] = json.load(words)
        pid = os.fork()
        if pid == 0:
            _take_over(streams)
            return order
        for descriptor in streams:
            os.close(descriptor)
        link.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):  # the test did not want to wait that long
            link.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _take_over(streams: Sequence[int]) -> None:
    """Make these descriptors stdin, stdout and stderr. What wraps them is as good as new."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _import_all() -> None:
    """All modules of mcptest, and the rules that it ships."""
    for module in pkgutil.walk_packages([str(ROOT / "src" / "mcptest")], "mcptest."):
        if not module.name.endswith("__main__"):
            # Whoever needs it imports it again, and says what is wrong with it.
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    revisions = importlib.import_module("mcptest.core.revision")
    corpora = importlib.import_module("mcptest.rules.corpus.reader")
    for revision in revisions.TIMELINE:
        corpora.corpus_of(revision)


def _run(order: Mapping[str, Any]) -> None:
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = ["mcptest", *order["argv"]]
    sys.path[0] = order["cwd"]
    try:
        runpy.run_module("mcptest", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """End as an interpreter does, but for clearing away all modules: they were not made here."""
    threading._shutdown()  # type: ignore[attr-defined]  # as it does: no public name for this
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _import_all()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if (wanted := _wait_for_orders(socket.socket(fileno=int(sys.argv[1])))) is not None:
        _run(wanted)
