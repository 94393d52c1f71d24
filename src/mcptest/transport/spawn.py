"""Starting a server in a process group of its own.

A command is a list of words and never goes through a shell.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Mapping, Sequence

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import show

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
        from mcptest.transport.not_started import spawn_error

        raise spawn_error(error, command[0], environment.get("PATH", ""), cwd) from error
