"""One command in a process of its own, on the loop of the server.

The server answers pings and takes cancellations while the engine works elsewhere; whatever a peer
does to the engine, the server lives on. Nothing here waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mcptest.commands.mcp.roots import AllowedServer, Roots
from mcptest.core.safe_text import show
from mcptest.servers.demo.exchange import ToolFailure
from mcptest.session.server_spec import DEFAULT_CONFIG
from mcptest.transport.lifeline import server_environment
from mcptest.transport.loop import READ, Loop, Timer
from mcptest.transport.temporary import new_folder, remove_folder

REPORT = ".mcptest-report.json"
"""Hidden: what is copied from the roots is not, so nothing can stand in its place."""


class WorkFolder:
    """Where a command runs. A suite or a configuration that changes meanwhile changes nothing."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self.in_use = False
        """Whether a command is still ending in it."""
        self.folder = new_folder("mcptest-mcp-")

    def close(self) -> None:
        remove_folder(self.folder)

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.in_use:  # else the command closes it when it has ended
            self.close()

    def bring(self, path: str) -> str:
        """Copy it in; the word for the command line that names the copy, never an option."""
        try:
            return f"./{self._roots.copy(path, self.folder)}"
        except OSError as error:  # ours: the disk is full, or a name is too long for it
            raise ToolFailure(f"can't copy {show(path, 200)}: {error.strerror}") from None

    def put(self, name: str, text: str) -> str:
        (Path(self.folder) / name).write_text(text, encoding="utf-8")
        return f"./{name}"

    def name_server(self, server: AllowedServer) -> list[str]:
        """The words that name a server, whose configuration is the one of when we started."""
        entries = {} if server.entry is None else {server.name: dict(server.entry)}
        config = Path(self.folder) / DEFAULT_CONFIG
        config.touch(mode=0o600)
        config.write_text(json.dumps({"mcpServers": entries}))  # in any case: no other is heard
        words = [f"--server={server.name}"]
        # The demo is a module of ours: started in a folder of others it might find theirs instead.
        if server.target.way == "stdio" and server.name != "demo":
            words.append(f"--cwd={server.folder}")
        return words

    def report(self) -> bytes:
        """The JSON report that the command left; empty where there is none."""
        try:
            return (Path(self.folder) / REPORT).read_bytes()
        except OSError:
            return b""


def interpreter() -> list[str]:
    """Our own Python. With -P no module of the folder that it runs in takes the place of ours."""
    return [sys.executable, "-P"]


def environment_for(server: AllowedServer | None, place: WorkFolder) -> dict[str, str]:
    """What a command sees: no secret of ours, but what its server's configuration refers to.

    What it would remember for its next run goes when the folder goes.
    """
    named = server.variables if server is not None else {}
    own = {"NO_COLOR": "1", "XDG_CACHE_HOME": f"{place.folder}/.cache"}
    return {**server_environment(named, os.environ, clean=True), **own}


MAX_CHILDREN = 4
MAX_OUTPUT = 4 * 1024 * 1024
TICK_SECONDS = 1.0
GRACE_SECONDS = 5.0
_CHUNK = 64 * 1024


class CommandProcesses:
    """All that run. With the server every one of them ends."""

    def __init__(self) -> None:
        self._running: dict[CommandProcess, None] = {}

    def start(
        self, loop: Loop, words: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> CommandProcess:
        if len(self._running) >= MAX_CHILDREN:
            raise ToolFailure(f"{MAX_CHILDREN} calls are running already; wait for one to end")
        child = CommandProcess(loop, words, cwd, env, self._ended)
        self._running[child] = None
        return child

    def close(self) -> None:
        running = tuple(self._running)
        for child in running:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        for child in running:
            child.reap(max(0.0, until - time.monotonic()))

    def _ended(self, child: CommandProcess) -> None:
        self._running.pop(child, None)


class CommandProcess:
    """A process whose output is kept; it is asked to go, and then made to."""

    def __init__(
        self,
        loop: Loop,
        words: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        forget: Callable[[CommandProcess], None],
    ) -> None:
        self._loop = loop
        self._forget = forget
        self.started = time.monotonic()
        # In a session of its own: a signal for us is not one for it, and its group is killed whole.
        self._process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self.out = bytearray()
        self.err = bytearray()
        self.overflowed = False
        self.ended = False
        self.at_end: Callable[[], None] | None = None
        self._wake: Callable[[], None] | None = None
        self._kill: Timer | None = None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._open = {
            self._process.stdout.fileno(): self.out,
            self._process.stderr.fileno(): self.err,
        }
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            loop.watch(descriptor, READ, lambda events, fd=descriptor: self._readable(fd))  # type: ignore[misc]  # binds the descriptor now

    @property
    def code(self) -> int:
        """The exit code; negative where a signal ended it."""
        return self._process.returncode if self._process.returncode is not None else -1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def wait(self, resume: Callable[[], None]) -> Callable[[], None]:
        """Call back at its end, or after a moment. What this gives takes that back."""
        timer = self._loop.after(TICK_SECONDS, self._tell)

        def wake() -> None:
            timer.cancel()
            resume()

        self._wake = wake

        def withdraw() -> None:
            timer.cancel()
            self._wake = None

        return withdraw

    def stop(self) -> None:
        """Ask it to end; it cleans up behind itself and is killed only if it takes too long."""
        if self.ended or self._kill is not None:
            return
        self.signal(signal.SIGTERM)
        self._kill = self._loop.after(GRACE_SECONDS, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def reap(self, patience: float) -> None:
        """The server ends: see it end too."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._end()

    def _tell(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def _readable(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        kept = self._open[descriptor]
        if chunk and len(kept) < MAX_OUTPUT:
            kept += chunk
        elif chunk:
            self.overflowed = True
            self.stop()
        else:
            self._loop.ignore(descriptor)
            del self._open[descriptor]
            if not self._open:
                self._await_exit()

    def _await_exit(self) -> None:
        """Its pipes are closed; its exit code follows within a moment."""
        if not hasattr(os, "pidfd_open"):
            self.reap(GRACE_SECONDS)
            return
        descriptor = os.pidfd_open(self._process.pid)

        def exited(events: int) -> None:
            self._loop.ignore(descriptor)
            os.close(descriptor)
            self.reap(GRACE_SECONDS)

        self._loop.watch(descriptor, READ, exited)

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        if self._kill is not None:
            self._kill.cancel()
        for descriptor in tuple(self._open):
            self._loop.ignore(descriptor)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._forget(self)
        if self.at_end is not None:
            self.at_end()
        self._tell()
