"""Temporary folders and the copies of fixtures in them, known until they are gone.

A second Ctrl-C leaves without waiting for anyone, so it has to know every folder that exists, and
no thread may make another one behind its back.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.safe_text import show, some_of

live_folders: set[str] = set()
"""Folders that have to be removed yet."""

_making = threading.RLock()  # reentrant: a signal may come while the main thread holds it
_ATTEMPTS = 20


def new_folder(prefix: str = "mcptest-") -> str:
    """A folder that only we may enter. `tempfile` does the same, for 5 ms of every start."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    refused: OSError | None = None
    for place in (*filter(None, named), "/tmp", "/var/tmp", "."):  # noqa: S108 - a new one in it
        # The path that a server reports is the real one, also where this one holds a link.
        folder = os.path.join(os.path.realpath(place), prefix + os.urandom(8).hex())  # noqa: PTH118 - as a text
        with _making:
            try:
                os.mkdir(folder, stat.S_IRWXU)  # noqa: PTH102 - as a text
            except OSError as error:
                refused = refused or error
            else:
                live_folders.add(folder)
                return folder
    raise refused or FileNotFoundError("there is no temporary folder")


@contextlib.contextmanager
def temporary_folder(prefix: str = "mcptest-") -> Iterator[Path]:
    """A folder for as long as the block lasts."""
    folder = new_folder(prefix)
    try:
        yield Path(folder)
    finally:
        remove_folder(folder)


def remove_folder(folder: str | Path) -> bool:
    """Remove a folder of ours with all that is in it, however it was left; whether it is gone."""
    import shutil

    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        _flatten(str(folder))
        shutil.rmtree(folder, ignore_errors=True)
    gone = not os.path.lexists(folder)
    if gone:
        live_folders.discard(str(folder))
    return gone


def remove_all_folders() -> None:
    """Remove every folder, and let nobody make another one: the process is about to end.

    A thread may still be writing into one, so each is removed until it is gone.
    """
    _making.acquire()
    for folder in list(live_folders):
        for _ in range(_ATTEMPTS):
            if remove_folder(folder):
                break


def _flatten(folder: str) -> None:
    """Empty a folder whose inside is locked, or deeper than a path may be long.

    Each folder's own folders are moved to the top before it is removed, so no path grows.
    """
    home = Path(folder)
    waiting: list[Path] = []
    with contextlib.suppress(OSError):
        home.chmod(stat.S_IRWXU)
        waiting = [home / entry for entry in os.listdir(home)]  # noqa: PTH208 - names, as they are
    names = (f".flat-{number}" for number in itertools.count())
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


# -- A private copy of the fixture folder for each test, always removed --------------------------

_PREFIX = "mcptest-fixture-"
_COPIED_AT_ONCE = 1024 * 1024


class FixtureError(UsageError):
    """The fixture can't be copied. A test on the original would not be isolated, so it fails."""


class ServerFixture(msgspec.Struct, frozen=True):
    """The fixture of one server: a copy of the folder, the folder itself, or none."""

    folder: str = ""
    is_copy: bool = False
    left_out: tuple[str, ...] = ()
    """What could not be part of the copy."""

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def note(self) -> str:
        """What is not in the copy, for the result."""
        if not self.left_out:
            return ""
        named = [show(one, 100) for one in self.left_out]
        return f"left out of the fixture copy: {some_of(named, 5)}"

    def remove(self) -> bool:
        """Remove the copy, whatever the server did to it; whether none is left."""
        return not self.is_copy or remove_folder(os.path.dirname(self.folder))  # noqa: PTH120 - as a text


def checked_fixture(path: str | None) -> str | None:
    """The fixture folder, resolved; UsageError when it is none."""
    if path is None:
        return None
    if not os.path.isdir(path):  # noqa: PTH112 - as a text
        what = "is not a folder" if os.path.exists(path) else "does not exist"  # noqa: PTH110 - as a text
        raise UsageError(f"--fixture {path} {what}")
    return os.path.realpath(path)


def isolate_fixture(source: str | Path) -> ServerFixture:
    """Copy the folder, whose path is a real one, to a new place under the same base name."""
    home: str | None = None
    try:
        home = new_folder(_PREFIX)
        if _lies_in(home, str(source)):
            raise OSError(f"the temporary folder {os.path.dirname(home)} is inside it")  # noqa: PTH120 - as a text
        target = f"{home}/{os.path.basename(source) or 'fixture'}"  # noqa: PTH119 - as a text
        return ServerFixture(target, True, tuple(_copy(str(source), target)))
    except BaseException as error:
        if home is not None:
            remove_folder(home)
        if isinstance(error, OSError | RecursionError):
            raise FixtureError(f"can't copy the fixture {source}: {error}") from None
        raise


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
    # Whether its text passes by the outside of the fixture, so many folders above it.
    steps = (-1 if part == ".." else part not in ("", ".") for part in text.split("/"))
    depths = itertools.accumulate(steps, initial=name.count("/"))
    if text.startswith("/") or min(depths) < 0:
        text = os.path.relpath(real, os.path.dirname(link))  # noqa: PTH120 - as a text
    os.symlink(text, f"{target}/{name}")  # noqa: PTH211 - as texts
    return True
