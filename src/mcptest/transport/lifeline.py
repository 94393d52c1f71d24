"""When we are killed, our servers end too: a small process waits for our end and sees to theirs.

SIGKILL leaves nobody time to tidy up. So a shell, in a session of its own, holds one end of a pipe
and hears over it which servers are running. The system closes our end when we die, however we do;
then whoever is still running is asked to end, and soon after made to (`survivors`). A parent-death
signal would not do: it follows the thread that started a server, and reaches no grandchild.

A server is announced by its mark before it is started: it may run before we know its process id.
One shell serves all servers of a process. Imports next to nothing: the first server of a run waits
for it.
"""

from __future__ import annotations

import _thread
import os
import sys

from mcptest.transport.bare_signals import signal
from mcptest.transport.environment import inherited_descriptors

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELL = "/bin/sh"
_SCRIPT = """cd /
running=
while read -r what server; do
  case $what in
    started) running="$running $server" ;;
    ended)
      others=
      for one in $running; do [ "$one" = "$server" ] || others="$others $one"; done
      running=$others ;;
  esac
done
[ "$running" ] || exit 0
tell_groups() {
  for one in $running; do
    case $one in 0:*) ;; *) kill -s "$1" -- "-${one%:*}" ;; esac
  done
}
tell_groups TERM
tell_groups CONT
"$@" $running || tell_groups KILL
"""
_FIRST_FREE = 3
"""The numbers below it are the standard streams, also when one of ours is closed."""


class Lifeline:
    """The pipe to the shell of this process. Where there can't be one, nothing is done."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._pipe = -1
        self.watcher = 0
        """The process id of the shell, or 0."""

    def expect(self, mark: str) -> None:
        """From now on whoever carries this mark ends with us."""
        with self._lock:
            if self._pipe < 0:
                self._begin()
            self._tell(f"started 0:{mark}\n")

    def hold(self, server: int, mark: str) -> None:
        """The server with this mark was started: its group is known now."""
        with self._lock:
            self._tell(f"started {server}:{mark}\nended 0:{mark}\n")

    def let_go(self, mark: str, server: int = 0) -> None:
        """It has ended, or could not be started.

        To be called before its process id can be given to another.
        """
        with self._lock:
            self._tell(f"ended {server}:{mark}\n")

    def forget(self) -> None:
        """In a fork of ours: the shell hears of our parent's end, which this end would hide."""
        self._lock = _thread.allocate_lock()
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1
        self.watcher = 0

    def _tell(self, what: str) -> None:
        if self._pipe < 0:
            return
        try:
            os.write(self._pipe, what.encode())
        except BrokenPipeError:  # somebody ended the shell
            os.close(self._pipe)
            self._pipe = -1
            self.watcher = 0

    def _begin(self) -> None:
        ends: list[int] = []
        try:
            ends += os.pipe()
            if min(ends) >= _FIRST_FREE:
                self.watcher = _start_watcher(ends[0])
                self._pipe = ends.pop()
        except (OSError, NotImplementedError):
            pass  # no shell, no descriptor left, or a system without sessions
        for end in ends:
            os.close(end)


def _start_watcher(lifeline: int) -> int:
    actions: list[tuple[object, ...]] = [
        (os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in inherited_descriptors()
    ]
    actions += [(os.POSIX_SPAWN_DUP2, lifeline, 0)]
    actions += [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    return os.posix_spawn(
        _SHELL,
        [_SHELL, "-c", _SCRIPT, "mcptest-lifeline", *_survivors_command()],
        os.environ,
        file_actions=actions,
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
        setsigmask=[],
    )


def _survivors_command() -> Sequence[str]:
    return (sys.executable, "-P", "-m", "mcptest.transport.survivors")


lifeline = Lifeline()
os.register_at_fork(after_in_child=lifeline.forget)
