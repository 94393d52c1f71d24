"""Files that are there whole or not at all.

Paths may be texts: every run writes one of these files, and most runs need no pathlib.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from mcptest.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it."""
    try:
        if is_special(path):
            with open(path, "wb") as file:  # noqa: PTH123 - as it was given
                file.write(content)
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
