"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mcptest.model.errors import UsageError


def replace_file(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it."""
    try:
        if is_special(path):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)  # a link keeps pointing where it does
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


def is_special(path: Path) -> bool:
    """A pipe, a device or a folder: it can't be replaced, and has no place for a file beside it."""
    return path.exists() and not path.is_file()


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        name.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise
