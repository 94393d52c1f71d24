"""Starting a server before anything is imported that usually starts and watches servers.

The server sees what it would see if `spawn` started it: three pipes, a session of its own, the
same environment, no other descriptor. Where that can't be had in one system call there is no early
start, and nothing is said: the regular way goes the same steps again.
"""

from __future__ import annotations

import os

from mcptest.transport.bare_signals import signal
from mcptest.transport.environment import MARKER, inherited_descriptors, server_environment
from mcptest.transport.lifeline import lifeline
from mcptest.transport.subreaper import become_subreaper

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_RESTORED = [signal.SIGPIPE, signal.SIGXFSZ]
"""Python ignores them, and a program that it starts would inherit that."""


class EarlyProcess:
    """A process and our ends of its pipes, to be taken over by a `ServerProcess`."""

    __slots__ = ("mark", "pid", "stderr", "stdin", "stdout")

    def __init__(self, pid: int, mark: str, ends: Sequence[int]) -> None:
        self.pid = pid
        self.mark = mark
        self.stdin, self.stdout, self.stderr = ends


def spawn_early(command: Sequence[str], env: Mapping[str, str]) -> EarlyProcess | None:
    """Start it, or None where it can't be started in this way."""
    if not _has_process_descriptors() or not become_subreaper():
        return None
    mark = os.urandom(16).hex()
    environment = server_environment(env, os.environ) | {MARKER: mark}
    lifeline.expect(mark)
    pipes: list[int] = []
    try:
        for _ in range(3):
            pipes += os.pipe()
        pid = _spawn(command, environment, pipes)
    except (OSError, ValueError, NotImplementedError):
        pid = None
    theirs, ours = (pipes[0:1] + pipes[3::2]), (pipes[1:2] + pipes[2::2])
    for end in theirs if pid is not None else pipes:
        os.close(end)
    if pid is None:
        lifeline.let_go(mark)
        return None
    lifeline.hold(pid, mark)
    return EarlyProcess(pid, mark, ours)


def _has_process_descriptors() -> bool:
    """Whether the end of a process can be waited for without `subprocess`."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # a kernel or sandbox without it
        return False
    return True


def _spawn(command: Sequence[str], environment: Mapping[str, str], pipes: list[int]) -> int | None:
    theirs = (pipes[0], pipes[3], pipes[5])
    if min(pipes) < 3:  # one of our own streams is closed, and its number was given to a pipe
        return None
    actions: list[tuple[int, ...]] = [
        (os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(theirs)
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in inherited_descriptors()]
    program = next(_candidates(command[0], environment), None)
    if program is None:
        return None
    return os.posix_spawn(
        program,
        list(command),
        environment,
        file_actions=actions,
        setsid=True,
        setsigdef=_RESTORED,
        setsigmask=[],  # whoever starts it may hold signals back; it is to hear all of them
    )


def _candidates(program: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Where the program is, by the PATH that it will have itself."""
    if os.sep in program:
        yield program
        return
    for folder in os.get_exec_path(environment):
        path = f"{folder or '.'}/{program}"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - no import for this
            yield path
