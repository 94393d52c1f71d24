"""Reading what a person names: never for ever, and never more than fits.

A file is read up to a limit, whatever it grows to meanwhile. A pipe, as from `<(command)`, and the
standard input are read as well, for as long as something comes. Devices, sockets and folders are
refused. Paths may be texts: every run reads its suites from here, and most runs need no pathlib.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from mcptest.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    errno.EFBIG: "is this the right file?",
    errno.ETIMEDOUT: "name a file, or a pipe through which something comes and that ends",
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
    from mcptest.model.show import show

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
        raise _in_words(error, path) from None
    try:
        _check_kind(descriptor, pipes)
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
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(SECONDS_FOR_A_WRITER * 1000):
        try:
            block = os.read(descriptor, _BLOCK)
        except BlockingIOError:  # there is somebody who might write
            if not poll.poll((SECONDS_OF_SILENCE - SECONDS_FOR_A_WRITER) * 1000):
                missing = "nothing came through this pipe"
                raise _silent(missing, SECONDS_OF_SILENCE) from None
        else:
            if not block and not poll.poll(0):  # the end would have been told by poll
                raise _silent("nobody writes to this pipe", SECONDS_FOR_A_WRITER)
            return block
    return os.read(descriptor, _BLOCK)


def _check_kind(descriptor: int, pipes: bool) -> None:
    status = os.fstat(descriptor)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG or (kind == stat.S_IFIFO and pipes):
        return
    is_null = kind == stat.S_IFCHR and status.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116 - no import for this
    if not is_null and not (pipes and os.isatty(descriptor)):
        raise OSError(*_KINDS[kind])


def _in_words(error: OSError, path: str | Path) -> OSError:
    """A socket can't be opened, which the system says in a way that nobody understands."""
    if error.errno == errno.ENXIO and stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116 - no import for this
        return OSError(*_KINDS[stat.S_IFSOCK])
    return error


def _too_large(largest: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {largest // (1024 * 1024)} MiB")


def _silent(missing: str, seconds: float) -> OSError:
    return OSError(errno.ETIMEDOUT, f"{missing} within {seconds:g} s")
