"""A private copy of the fixture folder for each test, always removed.

What can't be part of a copy is left out, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import stat
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.errors import UsageError
from mcptest.run.tree_copy import copy_folder, new_folder

if TYPE_CHECKING:  # paths are texts here: this is on the way to the first server
    from pathlib import Path

live_copies: set[str] = set()
"""Folders that have to be removed yet."""


class FixtureError(UsageError):
    """The fixture can't be copied. A test on the original would not be isolated, so it fails."""


class FixtureCopy(msgspec.Struct, frozen=True):
    """The copy's folder, and what could not be part of it."""

    folder: str
    left_out: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        from pathlib import Path

        return Path(self.folder)

    def remove(self) -> bool:
        """Remove it whatever the server did to it; whether it is gone."""
        return remove_tree(_home_of(self.folder))


def _home_of(copy: str) -> str:
    """The folder of ours that a copy stands in."""
    return os.path.dirname(copy)  # noqa: PTH120 - as a text


def checked_fixture(path: str | None) -> str | None:
    """The fixture folder, resolved; UsageError when it is none."""
    if path is None:
        return None
    if not os.path.isdir(path):  # noqa: PTH112 - as a text
        what = "is not a folder" if os.path.exists(path) else "does not exist"  # noqa: PTH110 - as a text
        raise UsageError(f"--fixture {path} {what}")
    return os.path.realpath(path)


def isolate_fixture(source: str | Path) -> FixtureCopy:
    """Copy the folder to a new place under the same base name."""
    home: str | None = None
    try:
        home = new_folder()
        live_copies.add(home)
        copy, left_out = copy_folder(str(source), home)
        return FixtureCopy(copy, tuple(left_out))
    except (OSError, RecursionError) as error:
        if home is not None:
            remove_tree(home)
        raise FixtureError(f"can't copy the fixture {source}: {error}") from None
    except BaseException:
        if home is not None:
            remove_tree(home)
        raise


def made_earlier(copy: str, left_out: tuple[str, ...]) -> FixtureCopy:
    """A copy that was made before this module was there; from now on it is to be removed."""
    live_copies.add(_home_of(copy))
    return FixtureCopy(copy, left_out)


def remove_tree(folder: str | Path) -> bool:
    """Remove a folder of ours with all that is in it, however it was left; whether it is gone."""
    import shutil

    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        with contextlib.suppress(OSError):
            from pathlib import Path

            _flatten(Path(folder))
        shutil.rmtree(folder, ignore_errors=True)
    gone = not os.path.lexists(folder)
    if gone:
        live_copies.discard(str(folder))
    return gone


def _flatten(home: Path) -> None:
    """Empty a folder whose inside is locked, or deeper than a path may be long.

    Each folder's own folders are moved to the top before it is removed, so no path grows.
    """
    home.chmod(stat.S_IRWXU)
    names = (f".flat-{number}" for number in count())
    waiting = [home / entry for entry in os.listdir(home)]  # noqa: PTH208 - names, as they are
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
