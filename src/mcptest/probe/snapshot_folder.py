"""The `.snapshots` folder beside a suite: whole files, no links followed, one writer at a time.

A file is there whole or as it was before: it is written under another name, brought to the disk,
and then renamed. The folder itself is what is locked, so that no lock can be left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from threading import Event

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline
from mcptest.core.safe_text import show
from mcptest.probe.suites.attempt import LARGEST_FILE
from mcptest.suite.golden import FIXTURE, FOLDER, MANY, SUFFIX, Masks
from mcptest.suite.observed import Observed
from mcptest.transport.files import UNFINISHED, put_file, read_bounded

_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})
_PAUSE = 0.05
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WITH_A_NAME = frozenset({errno.ELOOP, errno.ENOTDIR})


class SnapshotFileError(Exception):
    """A golden file can't be read or written; the text says which and why."""


class SnapshotFolder:
    """Opened for a run: shared by those that verify, alone for the one that updates."""

    def __init__(self, beside: str, *, update: bool) -> None:
        self.path = os.path.join(beside, FOLDER)  # noqa: PTH118 - as the suite was named
        self._beside = beside or os.curdir
        self._update = update
        self._folder: int | None = None
        self._created = False

    # -- opening and closing -------------------------------------------------------------------

    def open(self, patience: Deadline) -> None:
        """UsageError when it is no folder of ours, or when another run does not let go of it."""
        try:
            self._open(patience)
        except OSError as error:
            why = "it is not a folder" if error.errno in _WITH_A_NAME else error.strerror
            raise UsageError(f"can't use {show(self.path, 500)}: {why}") from None
        if self._update:
            self._remove_unfinished()

    def _open(self, patience: Deadline) -> None:
        beside = os.open(self._beside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            while self._folder is None:
                if self._update:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(FOLDER, dir_fd=beside)
                        self._created = True
                try:
                    folder = os.open(FOLDER, _DIRECTORY, dir_fd=beside)
                except FileNotFoundError:
                    if self._update:
                        continue  # another run took it away a moment ago, because it was empty
                    return
                self._folder = self._locked(folder, beside, patience)
        finally:
            os.close(beside)

    def _locked(self, folder: int, beside: int, patience: Deadline) -> int | None:
        """The folder once it is ours; None when it is not the one at that place any more."""
        how = fcntl.LOCK_EX if self._update else fcntl.LOCK_SH
        with contextlib.ExitStack() as closing:
            closing.callback(os.close, folder)
            while True:
                try:
                    fcntl.flock(folder, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if patience.expired:
                        message = f"another mcptest is using {show(self.path, 500)}"
                        hint = "run this again after it has ended"
                        raise UsageError(message, hint=hint) from None
                    # There is no lock that one can wait for with a limit.
                    Event().wait(min(_PAUSE, patience.remaining()))
                except OSError as error:
                    if error.errno not in _NO_LOCKS:
                        raise
                    break  # a file system without locks: each file is still whole
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(FOLDER, dir_fd=beside, follow_symlinks=False)
                if os.path.samestat(os.fstat(folder), there):
                    closing.pop_all()
                    return folder
        return None

    def close(self) -> None:
        """Bring what was written to the disk, and let others in."""
        if self._folder is None:
            return
        folder, self._folder = self._folder, None
        try:
            if self._update:
                os.fsync(folder)
            if self._created:
                with contextlib.suppress(OSError):  # something was written into it
                    os.rmdir(self.path)  # noqa: PTH106 - paths are texts here
        finally:
            os.close(folder)

    # -- files ---------------------------------------------------------------------------------

    def names(self) -> Iterator[str]:
        """All golden files that there are."""
        if self._folder is None:
            return
        for name, is_folder in _entries(self._folder):
            if is_folder and name.endswith(MANY):
                with self._inner(name) as inner:
                    files = [] if inner is None else _entries(inner)
                yield from (f"{name}/{one}" for one, _ in files if one.endswith(SUFFIX))
            elif not is_folder and name.endswith(SUFFIX):
                yield name

    def read(self, name: str) -> str | None:
        """The text of a file, or None when there is none. SnapshotFileError otherwise."""
        outer, _, leaf = name.rpartition("/")
        try:
            with self._inner(outer) as folder:
                return None if folder is None else _text(folder, leaf)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("can't read", name, error) from None

    def write(self, name: str, text: str) -> None:
        """Put a whole file in its place, or leave what is there as it is and say why."""
        outer, _, leaf = name.rpartition("/")
        try:
            with self._inner(outer, create=True) as folder:
                if folder is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                    if not stat.S_ISREG(status.st_mode):
                        raise OSError(errno.EINVAL, "it is not a file")
                content = text.encode("utf-8", "backslashreplace")
                put_file(folder, leaf, content, overwrite=True)
        except OSError as error:
            raise self._error("can't write", name, error) from None

    @contextlib.contextmanager
    def _inner(self, name: str, *, create: bool = False) -> Iterator[int | None]:
        """The folder that holds a file; it is never reached through a link."""
        if not name or self._folder is None:
            yield self._folder
            return
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folder)
        inner = os.open(name, _DIRECTORY, dir_fd=self._folder)
        try:
            yield inner
        finally:
            os.close(inner)

    def _remove_unfinished(self) -> None:
        """What a run that was killed had begun to write. Nobody else writes now."""
        assert self._folder is not None
        for name, is_folder in _entries(self._folder):
            with contextlib.suppress(OSError):
                if is_folder and name.endswith(MANY):
                    with self._inner(name) as inner:
                        assert inner is not None
                        for one, _ in _entries(inner):
                            _remove_if_unfinished(inner, one)
                else:
                    _remove_if_unfinished(self._folder, name)

    def _error(self, what: str, name: str, error: OSError) -> SnapshotFileError:
        why = "a link is not followed" if error.errno in _WITH_A_NAME else error.strerror
        return SnapshotFileError(f"{what} {show(f'{self.path}/{name}', 500)}: {why}")


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names in their order, with whether each is a folder."""
    with os.scandir(folder) as found:
        return sorted((one.name, one.is_dir(follow_symlinks=False)) for one in found)


def _text(folder: int, name: str) -> str:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=folder)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it was opened within the folder
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > LARGEST_FILE:
            raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE} bytes")
        data = file.read(status.st_size)
    # We never write a carriage return: it comes from a checkout that changes line ends.
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def _remove_if_unfinished(folder: int, name: str) -> None:
    if name.startswith(UNFINISHED):
        os.unlink(name, dir_fd=folder)


# -- Golden answers that mcp-assert wrote --------------------------------------------------------

FILE = ".snapshots.json"
_COPY = r"[^\s\"'<>]*/mcp-assert-fixture-\d+/"


class SavedAnswer(msgspec.Struct, frozen=True):
    name: str
    text: str = ""
    is_error: bool = False


class _File(msgspec.Struct, frozen=True):
    snapshots: list[SavedAnswer] | None = None


class SavedAnswers(msgspec.Struct, frozen=True):
    """What one such file holds, by the name of the test."""

    path: str
    answers: Mapping[str, SavedAnswer] = {}


def saved_answers(paths: Sequence[str]) -> dict[str, SavedAnswers]:
    """By folder, for the folders that were named and those of the files that were."""
    found: dict[str, SavedAnswers] = {}
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120 - texts, as they were given
        file = os.path.join(folder, FILE)  # noqa: PTH118 - as above
        if os.path.lexists(file):
            found[os.path.abspath(folder)] = SavedAnswers(file, _read(file))  # noqa: PTH100 - as above
    return found


def nearest(file: str, saved: Mapping[str, SavedAnswers]) -> SavedAnswers | None:
    """What was saved for a suite file: in its folder, or in one above it that was named."""
    folder = os.path.dirname(os.path.abspath(file)) if saved else ""  # noqa: PTH100, PTH120 - as above
    while folder:
        if folder in saved:
            return saved[folder]
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        folder = "" if above == folder else above
    return None


def texts_of(saved: SavedAnswer, observed: Observed, masks: Masks) -> tuple[str, str]:
    """What was saved and what came, in one form: all that mcp-assert keeps of an answer."""
    old = saved.text
    # Its copies of the fixture lie elsewhere each time, under the fixture's own name.
    for base in {os.path.basename(path) for path in masks.paths if path}:  # noqa: PTH119 - as above
        old = re.sub(_COPY + re.escape(base), f"<{FIXTURE}>", old)
    return (_as_text(old, saved.is_error, masks), _as_text(observed.text, observed.is_error, masks))


def _as_text(text: str, is_error: bool, masks: Masks) -> str:
    # Half a surrogate pair is U+FFFD for mcp-assert, which is written in Go.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f"{'=== isError' + chr(10) if is_error else ''}{masks.apply(text)}\n"


def _read(file: str) -> dict[str, SavedAnswer]:
    try:
        data = read_bounded(file, LARGEST_FILE, pipes=False)
        answers = msgspec.json.decode(data, type=_File).snapshots
    except OSError as error:
        raise UsageError(f"can't read {show(file, 500)}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{show(file, 500)} is not what mcp-assert writes: {show(str(error), 300)}",
            hint="remove it, and write new golden files with mcptest snapshot --update",
        ) from None
    return {answer.name: answer for answer in answers or ()}
