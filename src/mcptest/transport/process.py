"""One server process from its start to its last descendant: watched, ended, reaped.

The process is not reaped before everything it started is gone. Until then its id can't be given
to anyone else, so a signal to its group can't reach a stranger.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mcptest.model.deadline import Deadline
from mcptest.model.errors import PeerError
from mcptest.transport.descendants import Family, end_orphans, live_servers, look_at, tree_of
from mcptest.transport.environment import MARKER, server_environment
from mcptest.transport.lifeline import lifeline
from mcptest.transport.subreaper import become_subreaper

if TYPE_CHECKING:
    import subprocess

    from mcptest.transport.adopted import AdoptedChild
    from mcptest.transport.early_spawn import EarlyProcess

REAP_SECONDS = 1.0
"""How long the dead may take to be counted, even when the deadline has passed."""


class ExitStatus(msgspec.Struct, frozen=True):
    """How a process ended: by itself with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is None:
            return f"exited with code {self.code}"
        return f"was ended by {signal_name(self.signal)}"


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
        early: EarlyProcess | None = None,
    ) -> None:
        """Start it, unless it was started `early`: then it is watched from now on."""
        self._can_adopt = become_subreaper()
        self._popen: subprocess.Popen[bytes] | AdoptedChild
        if early is not None:
            from mcptest.transport.adopted import AdoptedChild

            mark = early.mark
            self._popen = AdoptedChild(early)
        else:
            from mcptest.transport.spawn import start

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
        self.stdin, self.stdout, self.stderr = self._our_ends()
        self.pidfd = _open_pidfd(self.pid)
        self._status: ExitStatus | None = None
        pipes = {f"pipe:[{os.fstat(end).st_ino}]" for end in (self.stdin, self.stdout, self.stderr)}
        self._family = Family(self.pid, mark, frozenset(pipes))

    def _our_ends(self) -> tuple[int, int, int]:
        popen = self._popen
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        ends = (popen.stdin.fileno(), popen.stdout.fileno(), popen.stderr.fileno())
        for end in ends:
            os.set_blocking(end, False)
        return ends

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
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:  # noqa: PTH123 - one small read
                return file.read().rpartition(b")")[2].split()[0] in b"Tt"
        except (OSError, IndexError):
            return False

    def note_descendants(self) -> None:
        """Remember who is below the server now: after its death they could not be told apart."""
        if self._can_adopt and self.status() is None:
            seen = filter(None, map(look_at, tree_of(self.pid)))
            known = self._family.known | {process.identity for process in seen}
            self._family = replace(self._family, known=known)

    def hang_up(self) -> None:
        """Close its stdin: the polite way to ask it to leave."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def stop_listening(self) -> None:
        """Close our end of its stdout, so that it learns that nobody reads it any more."""
        assert self._popen.stdout is not None
        self._popen.stdout.close()

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
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert pipe is not None
            pipe.close()
        left: list[int] = []
        enough = max(deadline, Deadline.after(REAP_SECONDS), key=lambda each: each.at)
        if self._can_adopt:
            left = end_orphans(self._family, enough, politely=politely)
        else:
            self._signal_group(signal.SIGTERM if politely else signal.SIGKILL)
        if self.status() is not None:  # else it is ended together with us
            lifeline.let_go(self._family.mark, self.pid)
        self._reap(enough.remaining())
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        live_servers.discard(self.pid)
        return left

    def _reap(self, seconds: float) -> None:
        if self.pidfd is not None:
            poll = select.poll()
            poll.register(self.pidfd, select.POLLIN)
            poll.poll(seconds * 1000)
            self._popen.poll()
            return
        import subprocess

        if isinstance(self._popen, subprocess.Popen):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)


def _open_pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel or sandbox without it
        return None


def _status_of(returncode: int) -> ExitStatus:
    return ExitStatus(signal=-returncode) if returncode < 0 else ExitStatus(code=returncode)
