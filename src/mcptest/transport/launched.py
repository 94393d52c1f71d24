"""What a launcher such as npx has really started: the process at the far end of our pipes (Linux).

A launcher looks a program up, starts it with the pipes that it was given, and waits. Whoever knows
the program's own command line, folder and environment can start it without the launcher.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from mcptest.transport.descendants import tree_of
from mcptest.transport.environment import MARKER


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
        ends = [pid for pid in tree_of(launcher) if _is_the_end(pid, pipes)]
        return _seen(ends[0]) if len(ends) == 1 else None
    except OSError:  # it went while we looked, or is another user's
        return None


def _pipes_of(pid: int) -> tuple[str, str]:
    return os.readlink(f"/proc/{pid}/fd/0"), os.readlink(f"/proc/{pid}/fd/1")  # noqa: PTH115 - no path


def _is_the_end(pid: int, pipes: tuple[str, str]) -> bool:
    return _pipes_of(pid) == pipes and not any(tree_of(pid))


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
