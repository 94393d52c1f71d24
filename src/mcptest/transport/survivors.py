"""Ending the servers of an mcptest that was killed: run by its lifeline, in a process of its own.

The words are process ids with the mark of each server; 0 stands for one that was being started.
Whoever is in the group or session of such a process, or carries its mark, has been asked to end;
who stays is killed. Where there is no /proc only the groups are found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence

from mcptest.model.deadline import Deadline
from mcptest.transport.descendants import Family, look_at, wait_for_one

PATIENCE = 0.2
LIMIT = 3.0
_QUIET_LOOKS = 2
"""/proc is read while processes fork: who was missed once is there at the second look."""
_UNBORN = 0.5
"""How long a process may take from its fork until it carries its mark."""
_LOOKING_AGAIN = 0.02
_NO_LEADER = -1


def end_survivors(families: Sequence[Family]) -> None:
    """Ask once more, then kill, until two looks in a row find nobody."""
    limit = Deadline.after(LIMIT)
    patience, number = limit.within(PATIENCE), signal.SIGTERM
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
    families = []
    for word in words:
        leader, _, mark = word.partition(":")
        families.append(Family(int(leader) or _NO_LEADER, mark, frozenset()))
    if not os.path.isdir("/proc/self"):  # noqa: PTH112 - no import for this
        return 1  # the shell kills the groups
    end_survivors(families)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
