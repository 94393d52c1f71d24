"""Finding and ending what a server leaves behind, also what hid in a session of its own (Linux).

We are the sub-reaper of our servers: when a process between us and a grandchild dies, the
grandchild becomes our child. Several servers may live at the same time, so each orphan has to be
recognised as belonging to one of them before it is touched.

Run as a program, by the lifeline of an mcptest that was killed, it ends the servers of that one:
whoever is in the group or session of a server, or carries its mark, has been asked to end; who
stays is killed. Where there is no /proc only the groups are found.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from mcptest.core.limits import Deadline
from mcptest.transport.lifeline import MARKER, lifeline

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 0.2
_LIMIT = 3.0
_QUIET_LOOKS = 2
"""/proc is read while processes fork: who was missed once is there at the second look."""
_UNBORN = 0.5
"""How long a process may take from its fork until it carries its mark."""
_LOOKING_AGAIN = 0.02
_NO_LEADER = -1

live_servers: set[int] = set()
"""Process ids of the servers that are running now; their trees are not orphans."""


def become_subreaper() -> bool:
    """Make orphans of our servers our children. False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):  # a libc without it
        return False
    return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


class SeenProcess(msgspec.Struct, frozen=True):
    """One process as /proc showed it. The start time tells it from a later one with its id."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    state: bytes

    @property
    def dead(self) -> bool:
        return self.state in b"ZX"

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.started


def look_at(pid: int) -> SeenProcess | None:
    """The process with this id, or None when there is none."""
    try:
        stat = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name, in parentheses, may hold anything: also spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    state, parent, group, session = fields[:4]
    return SeenProcess(pid, int(parent), int(group), int(session), int(fields[19]), state)


def tree_of(root: int) -> Iterator[int]:
    """Every process below `root`, but not the trees of (other) servers that are alive."""
    stack = [root]
    while stack:
        for child in _children_of(stack.pop()):
            if child not in live_servers and child != lifeline.watcher:
                yield child
                stack.append(child)


def _children_of(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, as plain strings
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it just ended
                children += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # the process just ended
    return children


def _read(place: str) -> bytes:
    """All of a file in /proc. A server has many threads, and waits for us to look at each."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while more := os.read(descriptor, 65536):
            text += more
        return text
    finally:
        os.close(descriptor)


class Family(msgspec.Struct, frozen=True):
    """How to recognise the descendants of one server."""

    leader: int
    mark: str
    pipes: frozenset[str]
    """Our pipes to the server as /proc names them, for those who cleaned their environment."""
    known: frozenset[tuple[int, int]] = frozenset()
    """Identities of those that were below the server when it was last alive."""

    def owns(self, process: SeenProcess) -> bool:
        if self.leader in (process.group, process.session):
            return True
        with contextlib.suppress(OSError):
            environment = _read(f"/proc/{process.pid}/environ")
            if f"{MARKER}={self.mark}".encode() in environment.split(b"\0"):
                return True
        for descriptor in range(3):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{process.pid}/fd/{descriptor}") in self.pipes:  # noqa: PTH115 - no path
                    return True
        return False


def end_orphans(family: Family, deadline: Deadline, *, politely: bool) -> list[int]:
    """End and reap what is left of a family whose leader is dead; gives who would not go."""
    number = signal.SIGTERM if politely else signal.SIGKILL
    patience = deadline.within(0.5) if politely else deadline
    search = _ProcessSearch(family)
    while True:
        living = search.look()
        if not living and search.is_over:
            return []
        for pid in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if living:
            wait_for_one(living, patience)
        if patience.expired:
            if deadline.expired and number == signal.SIGKILL:
                return living
            number, patience = signal.SIGKILL, deadline


class _ProcessSearch:
    """Looks for the living of one family, and reaps those of its dead that became ours.

    /proc is read while processes fork and die: one that is handed from a dying parent to us may be
    missed in between. So where there was a family at all, two quiet looks in a row end the search.
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        # Whoever is recognised is remembered: a dead process has no environment to tell it by.
        self._known = set(family.known)
        self._needed = 2 if family.known else 1
        self._quiet = 0

    @property
    def is_over(self) -> bool:
        return self._quiet >= self._needed

    def look(self) -> list[int]:
        living: list[int] = []
        self._quiet += 1
        for pid in tree_of(os.getpid()):
            if pid == self._family.leader:
                continue
            process = look_at(pid)
            if process is None:  # it went while we looked
                self._disturb()
            elif self._meet(process):
                living.append(pid)
                self._disturb()
        return living

    def _meet(self, process: SeenProcess) -> bool:
        """Whether it is a living member of the family."""
        ours = process.identity in self._known or self._family.owns(process)
        if not process.dead:
            if ours:
                self._known.add(process.identity)
            return ours
        # Surely no child that other code of this process started and still wants to wait for.
        was_adopted = process.session not in (os.getsid(0), process.pid)
        if process.parent == os.getpid() and (ours or was_adopted):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
            self._disturb()
        return False

    def _disturb(self) -> None:
        self._quiet = 0
        self._needed = 2


def wait_for_one(pids: Iterable[int], deadline: Deadline) -> None:
    """Wait until one of these processes is dead, or the deadline."""
    poll = select.poll()
    patience = deadline
    with contextlib.ExitStack() as opened:
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return  # already gone
            except OSError:  # no descriptor left, or an old kernel: look again soon
                patience = deadline.within(0.02)
                continue
            opened.callback(os.close, descriptor)
            poll.register(descriptor, select.POLLIN)
        poll.poll(patience.remaining() * 1000)


# -- the servers of an mcptest that was killed ---------------------------------------------------


def end_survivors(families: Sequence[Family]) -> None:
    """Ask once more, then kill, until two looks in a row find nobody."""
    limit = Deadline.after(_LIMIT)
    patience, number = limit.within(_PATIENCE), signal.SIGTERM
    unborn = any(family.leader == _NO_LEADER for family in families)
    born = limit.within(_UNBORN if unborn else 0)
    quiet = 0
    while (quiet < _QUIET_LOOKS or not born.expired) and not limit.expired:
        living = list(_living(families))
        quiet = 0 if living else quiet + 1
        for pid in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if living:
            wait_for_one(living, patience)
        elif unborn:
            time.sleep(_LOOKING_AGAIN)
        if patience.expired:
            patience, number = limit, signal.SIGKILL


def _living(families: Sequence[Family]) -> Iterable[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - names, as plain strings
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        process = look_at(int(name))
        if process is None or process.dead:
            continue
        if any(family.owns(process) for family in families):
            yield process.pid


def main(words: Sequence[str]) -> int:
    """Each word is a process id with the mark of its server; 0 is one that was being started."""
    families = []
    for word in words:
        leader, _, mark = word.partition(":")
        families.append(Family(int(leader) or _NO_LEADER, mark, frozenset()))
    if not Path("/proc/self").is_dir():
        return 1  # the shell kills the groups
    end_survivors(families)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
