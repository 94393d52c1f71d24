"""One server process from its start to its last descendant: watched, ended, reaped.

The process is not reaped before everything it started is gone. Until then its id can't be given
to anyone else, so a signal to its group can't reach a stranger.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import ErrorKind, PeerError, close_matches
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.transport.descendants import (
    Family,
    become_subreaper,
    end_orphans,
    live_servers,
    look_at,
    tree_of,
)
from mcptest.transport.files import open_input
from mcptest.transport.lifeline import MARKER, lifeline, server_environment
from mcptest.transport.loop import READ, wait_for

# -- Starting a server in a process group of its own ---------------------------------------------

_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Then nothing can be imported either that would know more."""


def start(
    command: Sequence[str], environment: Mapping[str, str], cwd: str | None
) -> subprocess.Popen[bytes]:
    """Start it with three pipes in a session of its own, or say why it can't be."""
    if not command or not command[0]:
        raise PeerError(ErrorKind.SPAWN_FAILED, "the server command is empty")
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=dict(environment),
            close_fds=True,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _SHORTAGE:
            what = f"'{show(command[0])}' could not be started: {error.strerror}"
            raise PeerError(ErrorKind.SPAWN_FAILED, what) from error

        raise spawn_error(error, command[0], environment.get("PATH", ""), cwd) from error


# -- One server process from its start to its last descendant ------------------------------------

REAP_SECONDS = 1.0
"""How long the dead may take to be counted, even when the deadline has passed."""


class ExitStatus(msgspec.Struct, frozen=True):
    """How a process ended: by itself with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is None:
            return f"exited with code {self.code}"
        return f"was killed by {signal_name(self.signal)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names of their own
        return f"signal {number}"


class ServerProcess:
    """A running server with its three pipes, non-blocking on our side."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None = None,
        *,
        clean_env: bool = False,
    ) -> None:
        self._can_adopt = become_subreaper()
        mark = os.urandom(16).hex()
        environment = server_environment(env, os.environ, clean=clean_env) | {MARKER: mark}
        lifeline.expect(mark)
        try:
            self._popen = start(command, environment, cwd)
        except PeerError:
            lifeline.let_go(mark)
            raise
        lifeline.hold(self._popen.pid, mark)
        self.pid = self._popen.pid
        live_servers.add(self.pid)
        pipes = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        self._pipes = [pipe for pipe in pipes if pipe is not None]  # as they were asked for
        ends = [pipe.fileno() for pipe in self._pipes]
        for end in ends:
            os.set_blocking(end, False)
        self.stdin, self.stdout, self.stderr = ends
        self.pidfd: int | None = None
        with contextlib.suppress(AttributeError, OSError):  # a system or sandbox without it
            self.pidfd = os.pidfd_open(self.pid)
        self._status: ExitStatus | None = None
        seen = frozenset(f"pipe:[{os.fstat(end).st_ino}]" for end in ends)
        self._family = Family(self.pid, mark, seen)

    def status(self) -> ExitStatus | None:
        """How it ended, or None while it lives. It stays in the process table until `release`."""
        if self._status is None:
            self._status = self._look_for_exit()
        return self._status

    def _look_for_exit(self) -> ExitStatus | None:
        if not hasattr(os, "waitid"):
            code = self._popen.poll()
            return None if code is None else _status_of(code)
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            seen = os.waitid(os.P_PID, self.pid, how)
        except ChildProcessError:  # someone else in this program waits for every child
            return _status_of(self._popen.poll() or 0)
        if seen is None:
            return None
        if seen.si_code == os.CLD_EXITED:
            return ExitStatus(code=seen.si_status)
        return ExitStatus(signal=seen.si_status)

    @property
    def is_stopped(self) -> bool:
        """Whether it was suspended, as by SIGSTOP, and so can't do anything."""
        seen = look_at(self.pid)
        return seen is not None and seen.state in b"Tt"

    def note_descendants(self) -> None:
        """Remember who is below the server now: after its death they could not be told apart."""
        if self._can_adopt and self.status() is None:
            seen = filter(None, map(look_at, tree_of(self.pid)))
            known = self._family.known | {process.identity for process in seen}
            self._family = replace(self._family, known=known)

    def hang_up(self) -> None:
        """Close its stdin: the polite way to ask it to leave."""
        self._pipes[0].close()

    def stop_listening(self) -> None:
        """Close our end of its stdout, so that it learns that nobody reads it any more."""
        self._pipes[1].close()

    def terminate(self) -> None:
        self.pass_on(signal.SIGTERM)

    def pass_on(self, number: signal.Signals) -> None:
        """Send its group a signal that somebody may have meant for it."""
        self._signal_group(number)
        # a stopped process would get the signal only when somebody else wakes it
        self._signal_group(signal.SIGCONT)

    def kill(self) -> None:
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._popen.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        # Once and no more: whoever prints in a handler would do so twice.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(self.pid) != self.pid:  # it left the group that it was started in
                os.kill(self.pid, number)

    def release(self, deadline: Deadline, *, politely: bool) -> list[int]:
        """Close the pipes, end what the dead server left behind, reap all. Gives who stayed."""
        for pipe in self._pipes:
            pipe.close()
        left: list[int] = []
        enough = max(deadline, Deadline.after(REAP_SECONDS), key=lambda each: each.at)
        if self._can_adopt:
            left = end_orphans(self._family, enough, politely=politely)
        else:
            self._signal_group(signal.SIGTERM if politely else signal.SIGKILL)
        if self.status() is not None:  # else it is ended together with us
            lifeline.let_go(self._family.mark, self.pid)
        if self.pidfd is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(enough.remaining())
        else:
            wait_for(self.pidfd, READ, enough.remaining())
            self._popen.poll()
            os.close(self.pidfd)
            self.pidfd = None
        live_servers.discard(self.pid)
        return left


def _status_of(returncode: int) -> ExitStatus:
    return ExitStatus(signal=-returncode) if returncode < 0 else ExitStatus(code=returncode)


# -- Why a server would not start, for a person --------------------------------------------------


def spawn_error(error: OSError | ValueError, program: str, path: str, cwd: str | None) -> PeerError:
    """The error of a start that failed. `path` is the PATH that the server would have had."""
    if not isinstance(error, OSError):
        return _failed(f"invalid server command: {error}")
    if cwd is not None and not Path(cwd).is_dir():
        what = "is not a directory" if Path(cwd).exists() else "does not exist"
        return _failed(f"the working directory {_quoted(cwd)} {what}")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return _not_found(program, path, cwd)
    if isinstance(error, PermissionError):
        target = Path(cwd or ".", program)
        if target.is_dir():
            return _failed(f"{_quoted(program)} is a directory, not a program")
        return _failed(
            f"{_quoted(program)} is not executable",
            f"run chmod +x {show(program)}, or name its interpreter",
        )
    if error.errno == errno.ENOEXEC:
        return _failed(
            f"{_quoted(program)} is not a program this system can run ({error.strerror})",
            "a script needs a first line such as #!/usr/bin/env python3",
        )
    return _failed(f"{_quoted(program)} could not be started: {error.strerror or error}")


def _not_found(program: str, path: str, cwd: str | None) -> PeerError:
    found = _locate(program, path, cwd)
    interpreter = _interpreter_of(found) if found else None
    if interpreter:
        return _failed(
            f"{_quoted(program)} can't be started: its interpreter {_quoted(interpreter)} "
            "does not exist",
            "correct the first line of the script, or install the interpreter",
        )
    if found:
        return _failed(
            f"{_quoted(program)} exists but can't be started: its loader does not exist",
            "it was probably built for another system",
        )
    if any(letter.isspace() for letter in program):
        hint = "this is one word with spaces; pass the arguments as separate words"
    else:
        hint = _nearest(program, path, cwd)
    where = "" if os.sep in program else " on the PATH"
    return _failed(f"command not found{where}: {_quoted(program)}", hint)


def _locate(program: str, path: str, cwd: str | None) -> str | None:
    import shutil

    if os.sep in program:
        target = Path(cwd or ".", program)
        return str(target) if target.exists() else None
    return shutil.which(program, path=path)


def _interpreter_of(script: str) -> str | None:
    try:
        with open_input(script, pipes=False) as file:
            first = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].split()
    # a carriage return is part of the name for the kernel, and the usual reason for this error
    return words[0].decode("utf-8", "backslashreplace") + ("\r" * first.endswith(b"\r"))


def _nearest(program: str, path: str, cwd: str | None) -> str:
    if os.sep in program:
        folder, name = os.path.split(program)
        names = _names_in([os.path.join(cwd or ".", folder)])  # noqa: PTH118 - folder may be ""
    else:
        folder, name = "", program
        names = _names_in(path.split(os.pathsep))
    for near in close_matches(name, names, n=5, cutoff=0.75):
        meant = str(Path(folder, near))
        found = _locate(meant, path, cwd)
        if found and Path(found).is_file():  # a folder of that name is no program
            return f"did you mean {show(meant)}?"
    return "check the spelling, or give the full path"


def _names_in(folders: Iterable[str]) -> list[str]:
    names: set[str] = set()
    for folder in folders:
        try:
            names.update(os.listdir(folder or "."))  # noqa: PTH208 - names, as plain strings
        except OSError:
            continue  # a PATH may name folders that are not there
    return sorted(names)


def _quoted(text: str) -> str:
    return f"'{show(text)}'"


def _failed(message: str, hint: str = "") -> PeerError:
    return PeerError(ErrorKind.SPAWN_FAILED, message, hint=hint)


# -- What a launcher such as npx has really started ----------------------------------------------


class Launched(msgspec.Struct, frozen=True):
    """A running program by what it takes to start it again."""

    command: tuple[str, ...]
    cwd: str
    env: dict[str, str]


def behind(launcher: int) -> Launched | None:
    """The one program below this process that holds its pipes, and has started nothing itself.

    None when there is no such program, when there are several, or when it can't be looked at.
    """
    try:
        pipes = _pipes_of(launcher)
        below = tree_of(launcher)
        ends = [pid for pid in below if _pipes_of(pid) == pipes and not any(tree_of(pid))]
        return _seen(ends[0]) if len(ends) == 1 else None
    except OSError:  # it went while we looked, or is another user's
        return None


def _pipes_of(pid: int) -> tuple[str, str]:
    return os.readlink(f"/proc/{pid}/fd/0"), os.readlink(f"/proc/{pid}/fd/1")  # noqa: PTH115 - no path


def _seen(pid: int) -> Launched | None:
    command = _words_of(pid, "cmdline")
    environment = [word.partition("=") for word in _words_of(pid, "environ")]
    if not command:
        return None
    return Launched(
        command,
        os.readlink(f"/proc/{pid}/cwd"),  # noqa: PTH115 - as the kernel writes it
        {key: value for key, equals, value in environment if equals and key != MARKER},
    )


def _words_of(pid: int, name: str) -> tuple[str, ...]:
    text = Path(f"/proc/{pid}/{name}").read_bytes()
    return tuple(os.fsdecode(word) for word in text.removesuffix(b"\0").split(b"\0"))
