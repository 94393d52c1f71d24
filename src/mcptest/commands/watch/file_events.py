"""Being told of changes below the places that are watched, or looking for them where nobody tells.

Both ways give the paths that changed, as absolute texts. A change that leaves everything as it was
may be told as well: whoever reads the files finds out.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import TypeAlias

import msgspec

from mcptest.suite.load import SKIPPED_FOLDERS, SUFFIXES

# -- What is watched -----------------------------------------------------------------------------

MOST_FOLDERS = 20_000
MOST_FILES = 200_000
_OF_SUITES = (*SUFFIXES, ".jsonl")
_BUILT = frozenset({"__pycache__", "node_modules"})
_SCRATCH_ENDINGS = ("~", ".swp", ".swx", ".tmp", ".pyc", "___jb_tmp___", "___jb_old___")

Signature = tuple[int, int, int, int]


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

    `4913` is how vim finds out whether a folder can be written to, and `#123` how Linux tells of a
    file that has no name yet (O_TMPFILE), such as a report of ours: it gets one when it is whole.
    """
    return (
        name.endswith(_SCRATCH_ENDINGS)
        or name.startswith((".#", ".~"))
        or name == "4913"
        or (name.startswith("#") and (name.endswith("#") or name[1:].isdecimal()))
    )


def walk(place: Watched) -> Iterator[tuple[str, Iterator[str]]]:
    """The folder and those below it, each before what it holds, with the files that matter.

    Links are not followed; what just went away or may not be read is not there.
    """
    for folder, names, files in islice(os.walk(place.path), MOST_FOLDERS):
        names[:] = [name for name in names if _is_entered(folder, name, place)]
        yield folder, (os.path.join(folder, one) for one in files if place.reads(one))  # noqa: PTH118 - paths are texts here


def _is_entered(folder: str, name: str, place: Watched) -> bool:
    # A virtual environment is not what a server is made of, and larger than all of it.
    mark = os.path.join(folder, name, "pyvenv.cfg")  # noqa: PTH118 - as above
    return place.enters(name) and not (place.skips == _BUILT and os.path.exists(mark))  # noqa: PTH110 - as above


def signatures(place: Watched) -> dict[str, Signature]:
    """Every file that matters, with what changes when it is saved."""
    files: Iterable[str] = [place.path]
    if os.path.isdir(place.path):  # noqa: PTH112 - as above
        files = islice((file for _, inside in walk(place) for file in inside), MOST_FILES)
    known = ((path, signature_of(path)) for path in files)
    return {path: signature for path, signature in known if signature is not None}


def signature_of(path: str) -> Signature | None:
    """What changes when a file is saved; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# -- File events of the Linux kernel, read without a thread and without a package ----------------

_CHANGED = 0x8 | 0x40 | 0x80 | 0x100 | 0x200
"""Closed after writing, moved from here, moved to here, created, deleted."""
_GONE = 0x400 | 0x800
"""Deleted or moved: the watched folder itself."""
_Q_OVERFLOW = 0x4000
_IGNORED = 0x8000
_ONLYDIR = 0x1000000
_ISDIR = 0x40000000
_HEAD = struct.Struct("iIII")
_READ_AT_ONCE = 64 * 1024
_READS = 64
"""How often one look reads on: whoever writes without end must not keep us from all else."""


FolderEvent = tuple[int, int, str]
"""The number of a folder, what happened as a mask, and to what in it, if not to itself."""


class Inotify:
    """The events of any number of folders on one descriptor. OSError where there are none."""

    def __init__(self) -> None:
        import ctypes  # costs 10 ms, and only `watch` needs it

        self._errno = ctypes.get_errno
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            start, self._add = libc.inotify_init1, libc.inotify_add_watch
            self._remove = libc.inotify_rm_watch
        except AttributeError:
            raise OSError("this system has no inotify") from None
        self._descriptor: int = start(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            self._refuse("inotify")

    def fileno(self) -> int:
        return self._descriptor

    def add(self, folder: str) -> int:
        """Watch a folder: its number, the same one whenever it is added again."""
        wanted = _CHANGED | _GONE | _ONLYDIR
        number: int = self._add(self._descriptor, os.fsencode(folder), wanted)
        if number < 0:
            self._refuse(folder)
        return number

    def remove(self, number: int) -> None:
        """Watch it no more. One that is gone is forgotten by the kernel already."""
        self._remove(self._descriptor, number)

    def read(self) -> list[FolderEvent]:
        """What has happened since the last look; does not wait."""
        found: list[FolderEvent] = []
        for _ in range(_READS):
            try:
                data = os.read(self._descriptor, _READ_AT_ONCE)
            except BlockingIOError:
                break
            at = 0
            while at + _HEAD.size <= len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                found.append((number, mask, name))
        return found

    def close(self) -> None:
        os.close(self._descriptor)

    def _refuse(self, what: str) -> None:
        number = self._errno()
        raise OSError(number, os.strerror(number), what)


# -- Being told of changes below the places that are watched, or looking for them where nobody ---

INTERVAL = 1.0
_SHARE = 20
"""Looking takes at most one part in so many of the time, however many files there are."""


Changes: TypeAlias = "NotifiedChanges | PolledChanges"
"""Where changes come from."""


def changes_below(places: Sequence[Watched], interval: float | None = None) -> Changes:
    """Told by the system where it can, unless an interval is asked for."""
    if interval is not None:
        return PolledChanges(places, interval)
    try:
        return NotifiedChanges(places)
    except OSError as error:
        looked = PolledChanges(places, INTERVAL)
        looked.notes.append(f"no file events ({error.strerror or error}); polling every second")
        return looked


class NotifiedChanges:
    """Events of the kernel. Folders that come, go and come again are followed."""

    interval: float | None = None
    """How often `read` has to be called; None when the descriptor says when."""

    def __init__(self, places: Sequence[Watched]) -> None:
        self.notes: list[str] = []
        """What a person should know about it, once."""
        self._places = tuple(places)
        self._folders: dict[int, str] = {}
        self._events = Inotify()
        try:
            self._follow()
        except OSError:
            self._events.close()
            raise

    def fileno(self) -> int | None:
        return self._events.fileno()

    def read(self) -> set[str]:
        """The paths that changed since the last time. Does not wait."""
        changed: set[str] = set()
        moved = False
        places = [place.path for place in self._places]
        for number, mask, name in self._events.read():
            if mask & _Q_OVERFLOW:  # more than the kernel keeps: anything may have changed
                changed.update(places)
                moved = True
            elif (folder := self._folders.get(number)) is not None:
                # else it is the last word about a folder that is watched no more
                path = f"{folder.rstrip('/')}/{name}" if name else folder
                is_folder = bool(mask & (_GONE | _IGNORED | _ISDIR))
                changed.update(self._paths_behind(path, is_folder))
                # A place that is watched came, went or was exchanged: itself, or a folder above.
                above = any(place == path or is_below(place, path) for place in places)
                moved = moved or is_folder or above
        if moved:
            changed.update(self._follow_on())
        return changed

    def close(self) -> None:
        self._events.close()

    def _paths_behind(self, path: str, is_folder: bool) -> Iterator[str]:
        for place in self._places:
            if is_below(place.path, path):
                yield place.path
            elif place.sees(path, is_folder=is_folder) and not _is_empty(path, place):
                yield path

    def _follow_on(self) -> set[str]:
        """Watch the folders that there are now; the files of new ones came before we looked."""
        known = set(self._folders.values())
        try:
            self._follow()
        except OSError as error:
            self.notes.append(f"not all folders are watched: {error.strerror}")
        new = set(self._folders.values()) - known
        return {
            file
            for place in (self._places if new else ())
            for folder, files in walk(place)
            if folder in new
            for file in files
        }

    def _follow(self) -> None:
        current: dict[int, str] = {}
        for folder in self._wanted():
            # One that is gone by now is told of by the folder above it.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                current[self._events.add(folder)] = folder
        for number in self._folders.keys() - current.keys():
            self._events.remove(number)
        self._folders = current

    def _wanted(self) -> Iterator[str]:
        for place in self._places:
            # The parent tells when the place itself is exchanged; and if it is not there, the
            # nearest folder that is tells when it comes.
            parents = map(str, PurePath(place.path).parents)
            yield next(filter(os.path.isdir, parents))
            for count, (folder, _) in enumerate(walk(place), 1):
                yield folder
                note = f"only the first {MOST_FOLDERS} folders of {place.path} are watched"
                if count == MOST_FOLDERS and note not in self.notes:
                    self.notes.append(note)


class PolledChanges:
    """All files looked at again and again: for network drives, and systems without events."""

    def __init__(self, places: Sequence[Watched], interval: float) -> None:
        self.notes: list[str] = []
        self._places = tuple(places)
        self._least = interval
        self.interval: float | None = interval
        self._known = self._look()

    def fileno(self) -> int | None:
        return None

    def read(self) -> set[str]:
        before, now = self._known, self._look()
        self._known = now
        return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}

    def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> dict[str, Signature]:
        began = time.monotonic()
        found: dict[str, Signature] = {}
        for place in self._places:
            found.update(signatures(place))
        self.interval = max(self._least, _SHARE * (time.monotonic() - began))
        return found


def _is_empty(path: str, place: Watched) -> bool:
    """A folder in which nothing matters yet: what comes into it is told of by itself."""
    if path == place.path or not os.path.isdir(path):  # noqa: PTH112 - as above
        return False
    below = Watched(path, place.skips, place.hidden, place.endings)
    return not any(True for _, files in walk(below) for _ in files)
