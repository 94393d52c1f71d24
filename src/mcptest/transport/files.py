"""Files that are there whole or not at all, and hold no secret.

Paths may be texts: every run writes one of these files, and most runs need no pathlib.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mcptest.core.errors import UsageError
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show

SECONDS_FOR_A_READER = 5.0
"""How long we wait for somebody to open the other end of a pipe."""
SECONDS_OF_PATIENCE = 30.0
"""How long whoever reads from a pipe may take nothing."""
_LOOKS_AGAIN = 0.02
# A folder that we may not list can be written into all the same.
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_claimed: dict[str, int] = {}
"""Folders that are ours, with the open descriptors that say so."""


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it."""
    try:
        if is_special(path):
            descriptor = open_special(path)
            try:
                write_whole(descriptor, redaction.document(content))
            finally:
                os.close(descriptor)
            return
        folder, name = os.path.split(os.path.realpath(path))  # a link keeps pointing where it does
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as a text
        opened = os.open(folder, _FOLDER_FLAGS)
        try:
            put_file(opened, name, content, overwrite=True, mode=0o600)
        finally:
            os.close(opened)
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
    limit = time.monotonic() + SECONDS_FOR_A_READER
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            is_pipe = error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 - as it was given
            if not is_pipe:
                raise
            if time.monotonic() >= limit:
                told = f"no process reads from this pipe within {SECONDS_FOR_A_READER:g}s"
                raise OSError(errno.ETIMEDOUT, told) from None
        time.sleep(_LOOKS_AGAIN)  # the system tells nobody that a reader came


def write_whole(descriptor: int, content: bytes | memoryview) -> None:
    """All of it. OSError when the reader of a pipe takes nothing for a long time."""
    pending = memoryview(content)
    while pending:
        try:
            pending = pending[os.write(descriptor, pending) :]
        except BlockingIOError:
            from mcptest.transport.loop import WRITE, wait_for

            if not wait_for(descriptor, WRITE, SECONDS_OF_PATIENCE):
                told = f"no process read from this pipe for {SECONDS_OF_PATIENCE:g}s"
                raise OSError(errno.ETIMEDOUT, told) from None


def claim_folder(folder: Path) -> None:
    """Make a folder for captures, and keep it for this process until it ends, however it ends.

    Two runs give their captures the same names, and a report would name what the other one saw.
    UsageError when another process has it.
    """
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
            f"another mcptest writes its captures to {folder}",
            hint="choose another folder with --save-capture, or wait until it has ended",
        ) from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return
    _claimed[place] = descriptor


UNFINISHED = ".writing-"
"""How the name of a file begins that `put_file` has not finished."""


def put_file(folder: int, name: str, content: bytes, *, overwrite: bool, mode: int = 0o666) -> None:
    """A whole file in a folder that is open, never through a link.

    FileExistsError unless `overwrite`, OSError for any other reason: what was there is there still.
    """
    unfinished = f"{UNFINISHED}{os.urandom(8).hex()}"
    unnamed = _open_unnamed(folder, mode)
    descriptor = unnamed
    if descriptor is None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, mode, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it was opened within the folder
            file.write(redaction.document(content))
            file.flush()
            os.fsync(file.fileno())
            if unnamed is not None:
                place = f"/proc/self/fd/{unnamed}"
                os.link(place, unfinished, src_dir_fd=unnamed, dst_dir_fd=folder)
        if overwrite:
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # a link fails where something has that name, a link that leads elsewhere included
            os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it took its place, or never had a name
            os.unlink(unfinished, dir_fd=folder)


def _open_unnamed(folder: int, mode: int) -> int | None:
    """A file without a name: whoever is killed while writing leaves nothing. None where it has to
    have one."""
    unnamed = getattr(os, "O_TMPFILE", None)
    if unnamed is None or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - quick
        return None
    try:
        return os.open(".", os.O_WRONLY | unnamed | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError:  # a file system that has none, or a folder that tells so when a file is made
        return None


# -- Reading what a person names -----------------------------------------------------------------

LARGEST_INPUT = 64 * 1024 * 1024
"""Bytes of one file, where its format has no limit of its own."""
SECONDS_FOR_A_WRITER = 5.0
"""How long we wait for somebody to open the other end of a pipe."""
SECONDS_OF_SILENCE = 30.0
"""How long the other end of a pipe may say nothing."""
_BLOCK = 1024 * 1024
_KINDS = {
    stat.S_IFIFO: (errno.ESPIPE, "it is a pipe, not a file"),
    stat.S_IFDIR: (errno.EISDIR, "it is a folder, not a file"),
    stat.S_IFSOCK: (errno.ENXIO, "it is a socket, not a file"),
    stat.S_IFBLK: (errno.EINVAL, "it is a device, not a file"),
    stat.S_IFCHR: (errno.EINVAL, "it is a device, not a file"),
}
_REMEDIES = {
    **{number: "name a file" for number, _ in _KINDS.values()},
    errno.EFBIG: "check the name of the file",
    errno.ETIMEDOUT: "name a file, or a pipe that delivers data and ends",
}


def read_input(path: str | Path, what: str = "", *, largest: int = LARGEST_INPUT) -> bytes:
    """All bytes of a file or pipe that was named. UsageError says why it can't be read.

    `what` names its role, as in "the baseline".
    """
    try:
        return read_bounded(path, largest)
    except (OSError, ValueError) as error:
        raise unreadable(path, what, error) from None


def unreadable(path: str | Path, what: str, error: Exception) -> UsageError:
    """Which file it is, what is wrong with it, and what to do."""
    reason = getattr(error, "strerror", None) or str(error)
    role = f"{what} " if what else ""
    hint = _REMEDIES.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return UsageError(f"can't read {role}{show(str(path), 400)}: {reason}", hint=hint)


def read_bounded(
    path: str | Path, largest: int = LARGEST_INPUT, *, pipes: bool = True, cut: bool = False
) -> bytes:
    """All bytes of a file. OSError, with words in it, for what can't be read or is too large.

    With `cut` so much of a large one that it is seen to be too large.
    """
    with open_input(path, pipes=pipes) as file:
        if cut:
            return file.read(largest + 1)
        if os.fstat(file.fileno()).st_size > largest:  # without reading it, be it ever so sparse
            raise _too_large(largest)
        return b"".join(blocks_of(file, largest))


def open_input(path: str | Path, *, pipes: bool = True) -> BinaryIO:
    """A file or, where they are taken, a pipe, open for `blocks_of`. OSError for anything else."""
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would not even open.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        # A socket can't be opened, which the system says in a way that nobody understands.
        if error.errno == errno.ENXIO and Path(path).is_socket():
            raise OSError(*_KINDS[stat.S_IFSOCK]) from None
        raise
    try:
        status = os.fstat(descriptor)
        kind = stat.S_IFMT(status.st_mode)
        if kind != stat.S_IFREG and not (kind == stat.S_IFIFO and pipes):
            is_null = kind == stat.S_IFCHR and status.st_rdev == Path(os.devnull).stat().st_rdev
            if not is_null and not (pipes and os.isatty(descriptor)):
                raise OSError(*_KINDS[kind])
        return open(descriptor, "rb")  # noqa: PTH123 - given out
    except BaseException:
        os.close(descriptor)
        raise


def blocks_of(file: BinaryIO, largest: int = LARGEST_INPUT) -> Iterator[bytes]:
    """The bytes of a file or a pipe. OSError beyond the limit, or after a long silence."""
    descriptor = file.fileno()
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    size = 0
    while block := os.read(descriptor, _BLOCK) if is_file else _block_of_pipe(descriptor):
        size += len(block)
        if size > largest:
            raise _too_large(largest)
        yield block


def _block_of_pipe(descriptor: int) -> bytes:
    """What came, or nothing at the end."""
    from mcptest.transport.loop import READ, wait_for

    if not wait_for(descriptor, READ, SECONDS_FOR_A_WRITER):
        try:
            block = os.read(descriptor, _BLOCK)
        except BlockingIOError:  # there is somebody who might write
            if not wait_for(descriptor, READ, SECONDS_OF_SILENCE - SECONDS_FOR_A_WRITER):
                missing = "this pipe delivered nothing"
                raise _silent(missing, SECONDS_OF_SILENCE) from None
        else:
            if not block and not wait_for(descriptor, READ, 0):  # poll tells of an end
                raise _silent("no process writes to this pipe", SECONDS_FOR_A_WRITER)
            return block
    return os.read(descriptor, _BLOCK)


def _too_large(largest: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {largest // (1024 * 1024)} MiB")


def _silent(missing: str, seconds: float) -> OSError:
    return OSError(errno.ETIMEDOUT, f"{missing} within {seconds:g}s")
