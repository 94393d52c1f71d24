"""File events of the Linux kernel, read without a thread and without a package.

The kernel watches folders, not trees and not files: whoever saves by renaming a new file over the
old one changes the folder. Which folders to watch is decided in `watching_files`.
"""

from __future__ import annotations

import os
import struct

import msgspec

_CLOSE_WRITE = 0x8
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_CREATE = 0x100
_DELETE = 0x200
_DELETE_SELF = 0x400
_MOVE_SELF = 0x800
_Q_OVERFLOW = 0x4000
_IGNORED = 0x8000
_ONLYDIR = 0x1000000
_ISDIR = 0x40000000
_WANTED = (
    _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLYDIR
)
_HEAD = struct.Struct("iIII")
_READ_AT_ONCE = 64 * 1024
_READS = 64
"""How often one look reads on: whoever writes without end must not keep us from all else."""


class Seen(msgspec.Struct, frozen=True):
    """One event: of the folder with this number, or of what has this name in it."""

    folder: int
    name: str
    is_folder: bool = False
    """The thing itself is a folder, or it is the watched folder that is gone."""
    is_lost: bool = False
    """There were more events than the kernel keeps: anything may have changed."""


class Inotify:
    """The events of any number of folders on one descriptor. OSError where there are none."""

    def __init__(self) -> None:
        import ctypes  # costs 10 ms, and only `watch` needs it

        self._errno = ctypes.get_errno
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            start, self._add, self._remove = (
                libc.inotify_init1,
                libc.inotify_add_watch,
                libc.inotify_rm_watch,
            )
        except AttributeError:
            raise OSError("this system has no inotify") from None
        self._descriptor: int = start(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            self._refuse("inotify")

    def fileno(self) -> int:
        return self._descriptor

    def add(self, folder: str) -> int:
        """Watch a folder: its number, the same one whenever it is added again."""
        number: int = self._add(self._descriptor, os.fsencode(folder), _WANTED)
        if number < 0:
            self._refuse(folder)
        return number

    def remove(self, number: int) -> None:
        """Watch it no more. One that is gone is forgotten by the kernel already."""
        self._remove(self._descriptor, number)

    def read(self) -> list[Seen]:
        """What has happened since the last look; does not wait."""
        found: list[Seen] = []
        for _ in range(_READS):
            try:
                data = os.read(self._descriptor, _READ_AT_ONCE)
            except BlockingIOError:
                break
            found += _events_in(data)
        return found

    def close(self) -> None:
        os.close(self._descriptor)

    def _refuse(self, what: str) -> None:
        number = self._errno()
        raise OSError(number, os.strerror(number), what)


def _events_in(data: bytes) -> list[Seen]:
    found: list[Seen] = []
    at = 0
    while at + _HEAD.size <= len(data):
        number, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length
        itself = bool(mask & (_DELETE_SELF | _MOVE_SELF | _IGNORED))
        lost = bool(mask & _Q_OVERFLOW)
        found.append(Seen(number, name, itself or bool(mask & _ISDIR), lost))
    return found
