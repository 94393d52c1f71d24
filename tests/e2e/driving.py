"""Running the real command, and servers beside it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.e2e.warm_command import warm_command

BOUND = 240.0
"""Longest wait for anything, also on a busy machine."""
START = ("--startup-timeout", "60s")
"""For what is about a call: a busy machine may take its time until there is a server to call."""
AWKWARD = Path(__file__).with_name("awkward.py")
PEERS = Path(__file__).parent.parent / "peers"
NPM = PEERS / "npm" / "node_modules" / "@modelcontextprotocol"
PYTHON_SDK = (sys.executable, str(PEERS / "python_sdk_server.py"))


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


def mcptest(
    *argv: str,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    bound: float = BOUND,
) -> Done:
    """Run the command to its end, without the time that its imports take."""
    environment = os.environ if env is None else env
    warm = warm_command()
    if not warm.is_like(environment):
        return mcptest_anew(*argv, cwd=cwd, env=env, bound=bound)
    code, out, err = warm.run(argv, str(cwd or Path.cwd()), environment, bound)
    return Done(code, out.decode(), err.decode())


def mcptest_anew(*argv: str, bound: float = BOUND, **options: Any) -> Done:
    """Run the command to its end, in an interpreter that starts for it."""
    done = subprocess.run(
        [sys.executable, "-m", "mcptest", *argv],
        capture_output=True,
        timeout=bound,
        stdin=subprocess.DEVNULL,
        **options,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def awkward(peculiarity: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(AWKWARD), peculiarity, *arguments)


def interrupted_in_a_call(folder: Path, *argv: str, peculiarity: str = "stuck-call") -> Done:
    """Run the command, with Ctrl-C while its server is inside a call. The server is gone after."""
    note = folder / "pid"
    process = subprocess.Popen(
        [sys.executable, "-m", "mcptest", *argv, "--", *awkward(peculiarity, str(note))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: note.is_file() and note.read_text(), "the call that hangs")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=BOUND)
    assert not is_alive(int(note.read_text()))
    return Done(process.returncode, out.decode(), err.decode())


def record(out: Path, *argv: str, command: Sequence[str] = (), **options: Any) -> Done:
    """`mcptest record`; `command` is what goes behind the dashes."""
    tail = ("--", *command) if command else ()
    return mcptest("record", "--out", str(out), *argv, *tail, **options)


def records_of(path: Path) -> list[dict[str, Any]]:
    """The records of a full capture."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def messages_of(path: Path, sender: str | None = None) -> list[Any]:
    return [
        record["message"]
        for record in records_of(path)
        if record["kind"] == "message"
        and "message" in record
        and sender in {None, record["sender"]}
    ]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that waits for its parent is not alive.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def wait_until(condition: Any, what: str) -> Any:
    """Look again until it is so; for files and processes, which nobody can be woken by."""
    limit = time.monotonic() + BOUND
    while time.monotonic() < limit:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"never came: {what}")


class WaitsForEver(BaseException):
    """No error of the system, and none of ours: whoever handles those would hide it."""


@contextlib.contextmanager
def ended_after(seconds: int) -> Iterator[None]:
    """What waits for ever in this process fails, and holds up nobody."""

    def give_up(*_: object) -> None:
        raise WaitsForEver(f"for more than {seconds} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def listening(
    command: Sequence[str], ready: str, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server beside us, from the moment it says that it is ready."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
    )
    assert process.stdout is not None
    reader = threading.Thread(target=_read_on, args=(process.stdout,), daemon=True)
    try:
        _read_until(process.stdout.fileno(), ready.encode())
        # A server whose words nobody reads stops in the middle of one when the pipe is full.
        reader.start()
        yield
    finally:
        _end(process)
        if reader.ident is not None:
            reader.join(BOUND)
        process.stdout.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _read_on(pipe: IO[bytes]) -> None:
    """Up to the end, whatever is said."""
    while os.read(pipe.fileno(), 65536):
        pass


def _read_until(descriptor: int, wanted: bytes) -> None:
    seen = b""
    limit = time.monotonic() + BOUND
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while wanted not in seen:
            assert selector.select(max(0.0, limit - time.monotonic())), f"only said: {seen!r}"
            chunk = os.read(descriptor, 65536)
            assert chunk, f"ended after: {seen!r}"
            seen += chunk
