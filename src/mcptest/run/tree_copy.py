"""Copying a folder for one test: every entry is looked at, and no link is followed.

Files and folders are copied with their permissions. A symbolic link is kept when it leads into the
folder, and left out when it leads elsewhere; pipes, sockets and devices are left out. Imports next
to nothing, because the first server of a run may wait for its copy.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "mcptest-fixture-"
_COPIED_AT_ONCE = 1024 * 1024


def copy_folder(source: str, home: str) -> tuple[str, list[str]]:
    """Copy a folder, whose path is a real one, into `home` under its own name.

    Gives the copy's path and what was left out. May raise OSError or RecursionError.
    """
    if _lies_in(home, source):
        raise OSError(f"the temporary folder {os.path.dirname(home)} lies inside of it")  # noqa: PTH120 - as a text
    target = f"{home}/{os.path.basename(source) or 'fixture'}"  # noqa: PTH119 - as a text
    return target, list(_copy(source, target))


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _copy(source: str, target: str, inner: str = "") -> Iterator[str]:
    """Copy a folder; gives what was left out. `inner` is where we are below the fixture."""
    here, there = (f"{root}/{inner}" if inner else root for root in (source, target))
    os.mkdir(there)  # noqa: PTH102 - as a text
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
    os.chmod(there, stat.S_IMODE(os.stat(here).st_mode))  # noqa: PTH101, PTH116 - as texts


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


def _copy_link(name: str, source: str, target: str) -> bool:
    """Make the link mean the same thing in the copy; False when it leads out of the fixture."""
    link = f"{source}/{name}"
    text = os.readlink(link)  # noqa: PTH115 - the text, as it is
    # Where it leads in the end: neither a loop nor a missing target is an error here.
    real = os.path.realpath(link)
    if not _lies_in(real, source):
        return False
    if _leaves(name.count("/"), text):
        text = os.path.relpath(real, os.path.dirname(link))  # noqa: PTH120 - as a text
    os.symlink(text, f"{target}/{name}")  # noqa: PTH211 - as texts
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
