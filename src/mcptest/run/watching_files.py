"""Being told of changes below the places that are watched, or looking for them where nobody tells.

Both ways give the paths that changed, as absolute texts. A change that leaves everything as it was
may be told as well: whoever reads the files finds out.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mcptest.run.watching_inotify import Inotify, Seen
from mcptest.run.watching_places import (
    MOST_FOLDERS,
    Signature,
    Watched,
    files_of,
    folders_of,
    is_below,
    signatures,
)

INTERVAL = 1.0
_SHARE = 20
"""Looking takes at most one part in so many of the time, however many files there are."""


class Changes(Protocol):
    """Where changes come from."""

    interval: float | None
    """How often `read` has to be called; None when the descriptor says when."""
    notes: list[str]
    """What a person should know about it, once."""

    def fileno(self) -> int | None: ...

    def read(self) -> set[str]:
        """The paths that changed since the last time. Does not wait."""

    def close(self) -> None: ...


def changes_below(places: Sequence[Watched], interval: float | None = None) -> Changes:
    """Told by the system where it can, unless an interval is asked for."""
    if interval is not None:
        return Looked(places, interval)
    try:
        return Told(places)
    except OSError as error:
        looked = Looked(places, INTERVAL)
        looked.notes.append(f"no file events ({error.strerror or error}): looking every second")
        return looked


class Told:
    """Events of the kernel. Folders that come, go and come again are followed."""

    interval: float | None = None

    def __init__(self, places: Sequence[Watched]) -> None:
        self.notes: list[str] = []
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
        changed: set[str] = set()
        moved = False
        for seen in self._events.read():
            if seen.folder not in self._folders and not seen.is_lost:
                continue  # the last word about a folder that is watched no more
            if seen.is_lost:
                changed.update(place.path for place in self._places)
            else:
                changed.update(self._meant_by(self._path(seen), seen.is_folder))
            moved = moved or seen.is_lost or seen.is_folder or self._is_on_the_way(seen)
        if moved:
            changed.update(self._follow_on())
        return changed

    def close(self) -> None:
        self._events.close()

    def _path(self, seen: Seen) -> str:
        folder = self._folders[seen.folder]
        return f"{folder.rstrip('/')}/{seen.name}" if seen.name else folder

    def _is_on_the_way(self, seen: Seen) -> bool:
        """A place that is watched has come, gone, or been exchanged: itself, or a folder above."""
        path = self._path(seen)
        return any(place.path == path or is_below(place.path, path) for place in self._places)

    def _meant_by(self, path: str, is_folder: bool) -> Iterator[str]:
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
            entry.path
            for place in self._places
            for folder in new
            if folder == place.path or place.sees(folder, is_folder=True)
            for entry in files_of(place, folder)
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
            yield _nearest_folder(os.path.dirname(place.path))  # noqa: PTH120 - paths are texts here
            for count, folder in enumerate(folders_of(place), 1):
                yield folder
                if count == MOST_FOLDERS:
                    self._note(f"only the first {MOST_FOLDERS} folders of {place.path} are watched")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class Looked:
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


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path):  # noqa: PTH112 - paths are texts here
        path = os.path.dirname(path)  # noqa: PTH120 - as above
    return path


def _is_empty(path: str, place: Watched) -> bool:
    """A folder in which nothing matters yet: what comes into it is told of by itself."""
    if path == place.path or not os.path.isdir(path):  # noqa: PTH112 - as above
        return False
    below = Watched(path, place.skips, place.hidden, place.endings)
    return not _any(_files_below(below))


def _files_below(place: Watched) -> Iterator[os.DirEntry[str]]:
    for folder in folders_of(place):
        yield from files_of(place, folder)


def _any(things: Iterable[object]) -> bool:
    return next(iter(things), None) is not None
