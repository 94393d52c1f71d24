"""A private copy of the fixture folder for each test, always removed.

What can't be part of a copy is left out, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import stat
from itertools import count
from pathlib import Path

import msgspec

from mcptest.model.errors import UsageError
from mcptest.run.tree_copy import copy_folder, new_folder

live_copies: set[Path] = set()
"""Folders that have to be removed yet."""


class FixtureError(UsageError):
    """The fixture can't be copied. A test on the original would not be isolated, so it fails."""


class FixtureCopy(msgspec.Struct, frozen=True):
    """The copy's folder, and what could not be part of it."""

    path: Path
    left_out: tuple[str, ...] = ()

    def remove(self) -> bool:
        """Remove it whatever the server did to it; whether it is gone."""
        return remove_tree(self.path.parent)


def checked_fixture(path: str | None) -> Path | None:
    """The fixture folder, resolved; UsageError when it is none."""
    if path is None:
        return None
    folder = Path(path)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"--fixture {path} {what}")
    return folder.resolve()


def isolate_fixture(source: Path) -> FixtureCopy:
    """Copy the folder to a new place under the same base name."""
    home: Path | None = None
    try:
        home = Path(new_folder())
        live_copies.add(home)
        copy, left_out = copy_folder(str(source), str(home))
        return FixtureCopy(Path(copy), tuple(left_out))
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
    path = Path(copy)
    live_copies.add(path.parent)
    return FixtureCopy(path, left_out)


def remove_tree(folder: Path) -> bool:
    """Remove a folder of ours with all that is in it, however it was left; whether it is gone."""
    import shutil

    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        with contextlib.suppress(OSError):
            _flatten(folder)
        shutil.rmtree(folder, ignore_errors=True)
    gone = not os.path.lexists(folder)
    if gone:
        live_copies.discard(folder)
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
