"""A private copy of the fixture folder for each test, always removed.

Files and folders are copied with their permissions. A symbolic link is kept when it leads into the
fixture, and left out when it leads elsewhere; pipes, sockets and devices are left out. What was
left out is said.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec

from mcptest.model.errors import UsageError

PREFIX = "mcptest-fixture-"
_COPIED_AT_ONCE = 1024 * 1024

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
        # The path that a server reports is the real one, also where the temporary folder is a link.
        home = Path(_new_folder()).resolve()
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


def _new_folder() -> str:
    """A folder that only we may enter. `tempfile` does the same, for 5 ms of every start."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    refused: OSError | None = None
    for place in (*filter(None, named), "/tmp", "/var/tmp", "."):  # noqa: S108 - a new one in it
        try:
            folder = os.path.join(os.path.abspath(place), PREFIX + os.urandom(8).hex())  # noqa: PTH100, PTH118 - as a text
            os.mkdir(folder, stat.S_IRWXU)  # noqa: PTH102 - as a text
        except OSError as error:
            refused = refused or error
        else:
            return folder
    raise refused or FileNotFoundError("there is no temporary folder")


def _copy_file(source: str, target: str, mode: int) -> None:
    """Neither side is ever a link: the fixture could be changed while it is copied."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(target, flags, stat.S_IRUSR | stat.S_IWUSR), "wb") as copy:  # noqa: PTH123 - a descriptor
            while chunk := os.read(reading, _COPIED_AT_ONCE):
                copy.write(chunk)
            os.fchmod(copy.fileno(), mode)
    finally:
        os.close(reading)


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
                _copy_file(entry.path, f"{there}/{entry.name}", stat.S_IMODE(mode))
            elif not (stat.S_ISLNK(mode) and _copy_link(name, source, target)):
                yield name
    there.chmod(stat.S_IMODE(here.stat().st_mode))


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
