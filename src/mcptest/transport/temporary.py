"""Temporary folders: made here, and known until they are gone, whatever ends the command.

A second Ctrl-C leaves without waiting for anyone, so it has to know every folder that exists, and
no thread may make another one behind its back.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

live_folders: set[str] = set()
"""Folders that have to be removed yet."""

_making = threading.RLock()  # reentrant: a signal may come while the main thread holds it
_ATTEMPTS = 20


def new_folder(prefix: str = "mcptest-") -> str:
    """A folder that only we may enter. `tempfile` does the same, for 5 ms of every start."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    refused: OSError | None = None
    for place in (*filter(None, named), "/tmp", "/var/tmp", "."):  # noqa: S108 - a new one in it
        # The path that a server reports is the real one, also where this one holds a link.
        folder = os.path.join(os.path.realpath(place), prefix + os.urandom(8).hex())  # noqa: PTH118 - as a text
        with _making:
            try:
                os.mkdir(folder, stat.S_IRWXU)  # noqa: PTH102 - as a text
            except OSError as error:
                refused = refused or error
            else:
                live_folders.add(folder)
                return folder
    raise refused or FileNotFoundError("there is no temporary folder")


@contextlib.contextmanager
def temporary_folder(prefix: str = "mcptest-") -> Iterator[Path]:
    """A folder for as long as the block lasts."""
    folder = new_folder(prefix)
    try:
        yield Path(folder)
    finally:
        remove_folder(folder)


def remove_folder(folder: str | Path) -> bool:
    """Remove a folder of ours with all that is in it, however it was left; whether it is gone."""
    import shutil

    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        _flatten(str(folder))
        shutil.rmtree(folder, ignore_errors=True)
    gone = not os.path.lexists(folder)
    if gone:
        live_folders.discard(str(folder))
    return gone


def remove_all_folders() -> None:
    """Remove every folder, and let nobody make another one: the process is about to end.

    A thread may still be writing into one, so each is removed until it is gone.
    """
    _making.acquire()
    for folder in list(live_folders):
        for _ in range(_ATTEMPTS):
            if remove_folder(folder):
                break


def _flatten(folder: str) -> None:
    """Empty a folder whose inside is locked, or deeper than a path may be long.

    Each folder's own folders are moved to the top before it is removed, so no path grows.
    """
    home = Path(folder)
    waiting: list[Path] = []
    with contextlib.suppress(OSError):
        home.chmod(stat.S_IRWXU)
        waiting = [home / entry for entry in os.listdir(home)]  # noqa: PTH208 - names, as they are
    names = (f".flat-{number}" for number in itertools.count())
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            if place.is_symlink() or not place.is_dir():
                place.unlink()
                continue
            place.chmod(stat.S_IRWXU)
            for entry in os.listdir(place):  # noqa: PTH208 - names, as they are
                raised = home / next(names)
                with contextlib.suppress(OSError):
                    if (inside := place / entry).is_dir() and not inside.is_symlink():
                        inside.chmod(stat.S_IRWXU)  # its `..` changes, which takes permission
                    inside.rename(raised)
                    waiting.append(raised)
            place.rmdir()
