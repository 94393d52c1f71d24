"""A run that is the same as an earlier one starts its first server before anything is imported.

The same: the same words on the command line, in the same folder, over suites with the same bytes.
They were found to be sound then, so they are sound now, and the server that is started here is the
one that the suite names. Whatever is different, unreadable or unusual: nothing is started, and the
regular way goes on as if this did not exist. See docs/decisions/0007-early-start.md.
"""

from __future__ import annotations

import os
import stat
import sys

from mcptest import __version__
from mcptest.suite.fingerprint import digest_of, look_again

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcptest.transport.early_spawn import EarlyProcess

FIXTURE = "{{fixture}}"
"""Where the path of the fixture's copy goes."""
_LARGEST = 256 * 1024


class Remembered:
    """What the first server of a run is, and what that was read from."""

    def __init__(
        self,
        command: Sequence[str],
        fixture: str | None,
        digest: str,
        places: Sequence[str],
        *,
        warm: bool = False,
    ) -> None:
        self.command = tuple(command)
        """With `FIXTURE` in the place of the copy's path."""
        self.fixture = fixture
        """As the command line names it."""
        self.digest = digest
        self.places = tuple(places)
        self.warm = warm
        """Whether the server is to find what Node compiled the last time (`--warm-start`)."""

    def written(self, key: str) -> bytes:
        fixture = "" if self.fixture is None else f"={self.fixture}"
        warm = "warm" if self.warm else ""
        count = str(len(self.command))
        words = (key, self.digest, fixture, warm, count, *self.command, *self.places)
        return os.fsencode("\0".join(words))

    @classmethod
    def read(cls, data: bytes, key: str) -> Remembered | None:
        """None for what was written for another run, or not by us."""
        words = os.fsdecode(data).split("\0")
        if len(words) < 6 or words[0] != key or not words[4].isdecimal() or words[4] == "0":
            return None
        first = 5 + int(words[4])
        fixture = words[2][1:] if words[2] else None
        return cls(words[5:first], fixture, words[1], words[first:], warm=words[3] == "warm")


class EarlyServer:
    """A server that runs already, on its own copy of the fixture."""

    def __init__(
        self,
        process: EarlyProcess,
        command: tuple[str, ...],
        fixture: str = "",
        copy: str = "",
        left_out: tuple[str, ...] = (),
        *,
        warm: bool = False,
    ) -> None:
        self.process = process
        self.command = command
        self.fixture = fixture
        self.copy = copy
        self.left_out = left_out
        self.warm = warm


class ThisRun:
    """The run that this process is. There is one, so there is one of these."""

    def __init__(self) -> None:
        self.words: tuple[str, ...] | None = None
        """The command line, when this is a run that may be remembered."""
        self.began_early = False
        """Whether the server that was started here became the first one of the run."""
        self._known: Remembered | None = None
        self._early: EarlyServer | None = None

    def is_known(self, words: Sequence[str]) -> bool:
        """Whether this run is the same as an earlier one."""
        self.words = tuple(words)
        known = recall(self.words)
        if known is None or look_again(known.places, known.fixture) != known.digest:
            return False
        self._known = known
        return True

    def start_early(self) -> None:
        """Start the first server of a run that is known."""
        if self._known is not None:
            self._early = _start(self._known)

    def take_early(self) -> EarlyServer | None:
        """The server that was started; from then on it belongs to whoever asked."""
        early, self._early = self._early, None
        return early

    def end_unused(self) -> None:
        """End what nobody took: the run came to its end before its first test."""
        early = self.take_early()
        if early is not None:
            from mcptest.run.head_start import end_early

            end_early(early)


this_run = ThisRun()


def recall(words: Sequence[str]) -> Remembered | None:
    """What is known of an earlier run with these words."""
    key = key_of(words)
    folder = folder_of_memory()
    if key is None or folder is None:
        return None
    try:
        if not _is_ours_alone(os.stat(folder)):  # noqa: PTH116 - no import for this
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(place_in(folder, key), flags)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_ours_alone(status):
            return None
        return Remembered.read(os.read(descriptor, _LARGEST), key)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def key_of(words: Sequence[str]) -> str | None:
    """The same for two runs exactly when nothing but files can make a difference."""
    try:
        here = os.getcwd()  # noqa: PTH109 - no import for this
    except OSError:
        return None
    told = (__version__, str(sys.hexversion), here, *words)
    return digest_of("\0".join(told))


def folder_of_memory() -> str | None:
    cache = _our_cache()
    return cache and f"{cache}/first-servers-2"


def former_folder_of_memory() -> str | None:
    """Where commands were kept when they could still hold secrets."""
    cache = _our_cache()
    return cache and f"{cache}/first-servers"


def for_node() -> dict[str, str]:
    """What tells Node where to keep the code that it compiles (`--warm-start`)."""
    cache = _our_cache()
    return {"NODE_COMPILE_CACHE": f"{cache}/node-compile-cache"} if cache else {}


def _our_cache() -> str | None:
    """In the user's own cache: a suite that came from elsewhere can't bring a memory with it."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        cache = f"{home}/.cache"
    return f"{cache}/mcptest"


def place_in(folder: str, key: str) -> str:
    """One of 256 files, so that the memory does not grow: the latest run of a slot is kept."""
    return f"{folder}/{key[:2]}"


def _is_ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _start(remembered: Remembered) -> EarlyServer | None:
    from mcptest.transport.early_spawn import spawn_early

    warm = remembered.warm
    variables = for_node() if warm else {}
    if remembered.fixture is None:
        process = spawn_early(remembered.command, variables)
        return None if process is None else EarlyServer(process, remembered.command, warm=warm)
    from mcptest.run.temporary import new_folder, remove_folder
    from mcptest.run.tree_copy import PREFIX, copy_folder

    home = ""
    process = None
    try:
        source = os.path.realpath(remembered.fixture, strict=True)
        home = new_folder(PREFIX)
        copy, left_out = copy_folder(source, home)
        command = tuple(word.replace(FIXTURE, copy) for word in remembered.command)
        process = spawn_early(command, variables)
    except (OSError, RecursionError):
        pass  # the regular way meets it again, and says so
    finally:
        if process is None and home:
            remove_folder(home)
    if process is None:
        return None
    return EarlyServer(process, command, source, copy, tuple(left_out), warm=warm)
