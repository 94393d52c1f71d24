"""A private copy of the fixture folder for each test, always removed.

Files and folders are copied with their permissions. A symbolic link is kept when it leads into the
fixture, and left out when it leads elsewhere; pipes, sockets and devices are left out. What was
left out is said.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from mcptest.model.errors import UsageError

PREFIX = "mcptest-fixture-"

live_copies: set[Path] = set()
"""Folders that have to be removed yet."""


class FixtureError(UsageError):
    """The fixture can't be copied. A test on the original would not be isolated, so it fails."""


@dataclass(frozen=True, slots=True)
class FixtureCopy:
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
        # The path that a server reports is the real one, also where the temporary folder is a link.
        home = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        live_copies.add(home)
        if home.is_relative_to(source):
            raise OSError(f"the temporary folder {home.parent} lies inside of it")
        target = home / (source.name or "fixture")
        return FixtureCopy(target, tuple(_copy(source, target)))
    except (OSError, RecursionError) as error:
        if home is not None:
            remove_tree(home)
        raise FixtureError(f"can't copy the fixture {source}: {error}") from None
    except BaseException:
        if home is not None:
            remove_tree(home)
        raise


def _copy(source: Path, target: Path, inner: str = "") -> Iterator[str]:
    """Copy a folder; gives what was left out. `inner` is where we are below the fixture."""
    here, there = source / inner, target / inner
    there.mkdir()
    with os.scandir(here) as entries:
        for entry in entries:
            name = f"{inner}/{entry.name}" if inner else entry.name
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield from _copy(source, target, name)
            elif stat.S_ISREG(mode):
                shutil.copyfile(entry.path, there / entry.name, follow_symlinks=False)
                (there / entry.name).chmod(stat.S_IMODE(mode))
            elif not (stat.S_ISLNK(mode) and _copy_link(name, source, target)):
                yield name
    shutil.copymode(here, there)


def _copy_link(name: str, source: Path, target: Path) -> bool:
    """Make the link mean the same thing in the copy; False when it leads out of the fixture."""
    link = source / name
    text = os.readlink(link)  # noqa: PTH115 - the text, as it is
    # Where it leads in the end: neither a loop nor a missing target is an error here.
    real = os.path.realpath(link)
    if not Path(real).is_relative_to(source):
        return False
    if _leaves(name.count("/"), text):
        text = os.path.relpath(real, link.parent)
    (target / name).symlink_to(text)
    return True


def _leaves(depth: int, text: str) -> bool:
    """Whether the text of a link, so many folders below the fixture, passes by its outside."""
    if text.startswith("/"):
        return True
    for part in text.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def remove_tree(folder: Path) -> bool:
    """Remove a folder of ours with all that is in it, however it was left; whether it is gone."""
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
