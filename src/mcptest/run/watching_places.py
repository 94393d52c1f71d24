"""What is watched: places in the file system, and which of the names below them matter."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice

import msgspec

from mcptest.suite.discover import SKIPPED_FOLDERS, SUFFIXES

MOST_FOLDERS = 20_000
MOST_FILES = 200_000
_OF_SUITES = (*SUFFIXES, ".jsonl")
_BUILT = frozenset({"__pycache__", "node_modules"})
_SCRATCH_ENDINGS = ("~", ".swp", ".swx", ".tmp", ".pyc", "___jb_tmp___", "___jb_old___")

Signature = tuple[int, int, int]


class Watched(msgspec.Struct, frozen=True):
    """A file, or a folder with all below it that matters."""

    path: str
    """Absolute and without links: one folder has one name, whichever way it was named."""
    skips: frozenset[str] = frozenset()
    """Names of folders that are not entered."""
    hidden: bool = True
    """Whether hidden names matter."""
    endings: tuple[str, ...] = ()
    """Of the files that matter; empty for all."""

    def sees(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether a change of this path, which is below, is one that matters."""
        if path == self.path:
            return True
        if not is_below(path, self.path):
            return False
        *folders, name = path[len(self.path) :].strip("/").split("/")
        if is_folder:
            folders.append(name)
        return all(map(self.enters, folders)) and (is_folder or self.reads(name))

    def enters(self, name: str) -> bool:
        return name not in self.skips and (self.hidden or not name.startswith("."))

    def reads(self, name: str) -> bool:
        if is_scratch(name) or not (self.hidden or not name.startswith(".")):
            return False
        return not self.endings or name.lower().endswith(self.endings)


def suite_place(path: str) -> Watched:
    """A suite, with what belongs to it by the rules of `suite.discover`, and logs beside it."""
    return Watched(os.path.realpath(path), SKIPPED_FOLDERS, hidden=False, endings=_OF_SUITES)


def fixture_place(path: str) -> Watched:
    """All of it is copied for a test, so all of it matters."""
    return Watched(os.path.realpath(path))


def source_place(path: str) -> Watched:
    """What a server is made of, without what is made from it."""
    return Watched(os.path.realpath(path), _BUILT, hidden=False)


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def is_scratch(name: str) -> bool:
    """What editors and compilers leave beside a file: the file itself follows, or did not change.

    `4913` is how vim finds out whether a folder can be written to.
    """
    return (
        name.endswith(_SCRATCH_ENDINGS)
        or name.startswith((".#", ".~"))
        or name == "4913"
        or (name.startswith("#") and name.endswith("#"))
    )


def folders_of(place: Watched) -> Iterator[str]:
    """The folder and those below it, each before what it holds; links are not followed."""
    if os.path.isdir(place.path):  # noqa: PTH112 - paths are texts here
        yield from islice(_folders(place), MOST_FOLDERS)


def _folders(place: Watched) -> Iterator[str]:
    waiting = [place.path]
    while waiting:
        folder = waiting.pop()
        yield folder
        waiting += [entry.path for entry in _entries(folder) if _is_entered(entry, place)]


def files_of(place: Watched, folder: str) -> Iterator[os.DirEntry[str]]:
    """The files of one folder that matter."""
    for entry in _entries(folder):
        if not entry.is_dir(follow_symlinks=False) and place.reads(entry.name):
            yield entry


def signatures(place: Watched) -> dict[str, Signature]:
    """Every file that matters, with what changes when it is saved."""
    if not os.path.isdir(place.path):  # noqa: PTH112 - as above
        found = _signature(place.path)
        return {} if found is None else {place.path: found}
    known: dict[str, Signature] = {}
    for folder in folders_of(place):
        for entry in islice(files_of(place, folder), MOST_FILES - len(known)):
            found = _signature(entry.path)
            if found is not None:
                known[entry.path] = found
    return known


def _signature(path: str) -> Signature | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if _is_file(status) else None


def _is_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing when it just went away or may not be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_entered(entry: os.DirEntry[str], place: Watched) -> bool:
    if not place.enters(entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    # A virtual environment is not what a server is made of, and larger than all of it.
    is_environment = place.skips == _BUILT and os.path.exists(f"{entry.path}/pyvenv.cfg")  # noqa: PTH110 - as above
    return not is_environment
