"""The files that a test looks at: regular ones of a bounded size, so that no look can hang.

A server may have put a pipe or a link to a device where a file was expected.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

LARGEST_FILE = 64 * 1024 * 1024
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


def open_file(path: str) -> BinaryIO:
    """A regular file for reading. Raises OSError for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "no path", path) from None
    file = open(descriptor, "rb")  # noqa: PTH123, SIM115 - whoever asked for it closes it
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE:
        return file
    file.close()
    if stat.S_ISREG(status.st_mode):
        raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE} bytes", path)
    raise OSError(errno.EINVAL, "not a regular file", path)


class DiskFiles:
    """The files of the test, as they are now."""

    def read(self, path: str) -> bytes | None:
        try:
            with open_file(path) as file:
                return file.read(LARGEST_FILE)
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether anything is there. What may not be looked at can't be said to be absent."""
        try:
            os.lstat(path)
        except OSError as error:
            return error.errno not in _ABSENT
        except ValueError:  # a NUL: no file can have that name
            return False
        return True


DISK = DiskFiles()
