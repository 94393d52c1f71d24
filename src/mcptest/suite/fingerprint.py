"""Whether the files of a suite are what they were when they were last read, byte for byte.

A loader tells what it looks at: folders with the names and kinds of what is in them, files with
their bytes. `look_again` goes the same way over the disk. Equal digests mean that a loader would
see the same, and so come to the same end. Imports next to nothing: this runs before anything else.
"""

from __future__ import annotations

import os
import stat

try:
    from _blake2 import blake2b  # `hashlib` has the same one, and loads OpenSSL as well
except ImportError:  # an interpreter that was built without it
    from hashlib import blake2b

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_PLACES = 500
MOST_BYTES = 2 * 1024 * 1024
"""Of more than this it costs more to look again than an early start can win."""
_FOLDER, _FILE, _AVOIDED = "D", "F", "A"


class Fingerprint:
    """What was looked at, in its order, and a digest of what was seen there."""

    def __init__(self, fixture: str | None = None) -> None:
        self.places: list[str] = []
        """Each with a letter before it that says what it was."""
        self._fixture = fixture
        self._digest = blake2b(digest_size=16)
        self._bytes = 0
        self._whole = True
        self._add("fixture", _identity_of(fixture) if fixture else "none")

    @property
    def digest(self) -> str | None:
        """None when not all of what mattered could be taken in."""
        return self._digest.hexdigest() if self._whole else None

    def folder(self, path: str, entries: Iterable[os.DirEntry[str]]) -> None:
        seen = sorted(f"{entry.name}/{_kind_of(entry)}" for entry in entries)
        self._look(_FOLDER + path, *seen)

    def file(self, path: str, data: bytes) -> None:
        self._bytes += len(data)
        self._look(_FILE + path, str(len(data)))
        if self._whole:
            self._digest.update(data)

    def avoided(self, path: str) -> None:
        """A folder that is not a part of the suite because it is the fixture."""
        self._look(_AVOIDED + path, _identity_of(path))

    def give_up(self) -> None:
        """Something was seen that can't be looked at again in the same way."""
        self._whole = False

    def _look(self, place: str, *seen: str) -> None:
        if len(self.places) >= MOST_PLACES or self._bytes > MOST_BYTES:
            self.give_up()
        if self._whole:
            self.places.append(place)
            self._add(place, *seen)

    def _add(self, *words: str) -> None:
        # no name holds a NUL, so no two lists of words look the same
        self._digest.update(os.fsencode("\0".join((*words, "", ""))))


def digest_of(text: str) -> str:
    return blake2b(os.fsencode(text), digest_size=16).hexdigest()


def look_again(places: Iterable[str], fixture: str | None) -> str | None:
    """The digest of what is at these places now; None when something can't be read."""
    fingerprint = Fingerprint(fixture)
    try:
        for place in places:
            _look_at(place[:1], place[1:], fingerprint)
    except (OSError, ValueError):
        return None
    return fingerprint.digest


def _look_at(kind: str, path: str, fingerprint: Fingerprint) -> None:
    if kind == _FOLDER:
        with os.scandir(path) as entries:
            fingerprint.folder(path, entries)
    elif kind == _FILE:
        fingerprint.file(path, _read(path))
    else:
        fingerprint.avoided(path)


def _read(path: str) -> bytes:
    """As much of a regular file as may count."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        data = b""
        while len(data) <= MOST_BYTES and (more := os.read(descriptor, MOST_BYTES + 1)):
            data += more
        return data
    finally:
        os.close(descriptor)


def _kind_of(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _identity_of(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - no import for this
    except (OSError, ValueError):
        return "nothing"
    return f"{status.st_dev}:{status.st_ino}"
