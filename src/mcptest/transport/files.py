"""Files that are there whole or not at all, and hold no secret.

Paths may be texts: every run writes one of these files, and most runs need no pathlib.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from mcptest.model.errors import UsageError
from mcptest.model.redaction import redaction

if TYPE_CHECKING:
    from pathlib import Path

SECONDS_FOR_A_READER = 5.0
"""How long we wait for somebody to open the other end of a pipe."""
SECONDS_OF_PATIENCE = 30.0
"""How long whoever reads from a pipe may take nothing."""
_LOOKS_AGAIN = 0.02
_claimed: dict[str, int] = {}
"""Folders that are ours, with the open descriptors that say so."""


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it."""
    content = redaction.document(content)
    try:
        if is_special(path):
            descriptor = open_special(path)
            try:
                write_whole(descriptor, content)
            finally:
                os.close(descriptor)
        else:
            _replace(os.path.realpath(path), content)  # a link keeps pointing where it does
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


def is_special(path: str | Path) -> bool:
    """A pipe, a device or a folder: it can't be replaced, and has no place for a file beside it.

    UsageError for what can't be looked at, as links that lead in a circle.
    """
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as it was given
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


def open_special(path: str | Path) -> int:
    """A pipe or a device for `write_whole`. OSError when nobody comes to read from the pipe."""
    import time

    limit = time.monotonic() + SECONDS_FOR_A_READER
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            is_pipe = error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 - as it was given
            if not is_pipe:
                raise
            if time.monotonic() >= limit:
                told = f"nobody reads from this pipe within {SECONDS_FOR_A_READER:g} s"
                raise OSError(errno.ETIMEDOUT, told) from None
        time.sleep(_LOOKS_AGAIN)  # the system tells nobody that a reader came


def write_whole(descriptor: int, content: bytes | memoryview) -> None:
    """All of it. OSError when the reader of a pipe takes nothing for a long time."""
    pending = memoryview(content)
    while pending:
        try:
            pending = pending[os.write(descriptor, pending) :]
        except BlockingIOError:
            import select

            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            if not poll.poll(SECONDS_OF_PATIENCE * 1000):
                told = f"nobody read from this pipe for {SECONDS_OF_PATIENCE:g} s"
                raise OSError(errno.ETIMEDOUT, told) from None


def claim_folder(folder: Path) -> None:
    """Make a folder for captures, and keep it for this process until it ends, however it ends.

    Two runs give their captures the same names, and a report would name what the other one saw.
    UsageError when another process has it.
    """
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = os.path.realpath(folder)
        if place in _claimed:
            return
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"can't keep captures in {folder}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UsageError(
            f"another mcptest keeps its captures in {folder}",
            hint="name another folder with --capture, or wait until it has ended",
        ) from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return
    _claimed[place] = descriptor


def _replace(path: str, content: bytes) -> None:
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as a text
    beside = f"{folder}/.{name}.{os.urandom(6).hex()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105 - as texts
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)  # noqa: PTH108 - as a text
        raise
