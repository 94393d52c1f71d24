"""What a server gets of ours: variables, all or an allow-list; and no descriptors.

See docs/decisions/0019-environment.md.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping

# What a program needs to find its files, its language and its terminal; then the same on Windows.
# fmt: off
NEEDED = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TMPDIR",
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES",
    "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME",
    "USERPROFILE", "WINDIR",
))
# fmt: on
MARKER = "MCPTEST_SESSION"
"""The variable whose value is unique to one server: its descendants inherit it."""


def server_environment(
    named: Mapping[str, str], ours: Mapping[str, str], *, clean: bool = False
) -> dict[str, str]:
    """The variables of a server: ours, and over them those that the caller names.

    `clean` keeps only what nearly every program needs of ours.
    """
    if not clean:
        return dict(ours) | dict(named)
    needed = {
        key: value
        for key, value in ours.items()
        # a value that starts with "()" is an exported shell function: code, not data
        if (key in NEEDED or key.startswith("LC_")) and not value.startswith("()")
    }
    return needed | dict(named)


def inherited_descriptors() -> Iterator[int]:
    """Descriptors that whoever started us left open: they are no business of what we start."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names, as plain strings
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                yield int(name)
        except OSError:  # the one that the folder was read with
            continue


# -- When we are killed, our servers end too -----------------------------------------------------

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
_END_SURVIVORS = (sys.executable, "-P", "-m", "mcptest.transport.descendants")
_FIRST_FREE = 3
"""The numbers below it are the standard streams, also when one of ours is closed."""


class Lifeline:
    """The pipe to the shell of this process. Where there can't be one, nothing is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
        self._lock = threading.Lock()
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
                actions: list[tuple[object, ...]] = [
                    (os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in inherited_descriptors()
                ]
                actions += [(os.POSIX_SPAWN_DUP2, ends[0], 0)]
                actions += [
                    (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)
                ]
                self.watcher = os.posix_spawn(
                    _SHELL,
                    [_SHELL, "-c", _SCRIPT, "mcptest-lifeline", *_END_SURVIVORS],
                    os.environ,
                    file_actions=actions,
                    setsid=True,
                    setsigdef=[signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
                    setsigmask=[],
                )
                self._pipe = ends.pop()
        except (OSError, NotImplementedError):
            pass  # no shell, no descriptor left, or a system without sessions
        for end in ends:
            os.close(end)


lifeline = Lifeline()
os.register_at_fork(after_in_child=lifeline.forget)
