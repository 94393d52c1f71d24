"""What a change means: which tests have to be run again. Pure, except that links are resolved."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from mcptest.run.choosing import ServerChoice
from mcptest.run.selection import identity
from mcptest.run.watching_places import Watched, is_below
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Test, TrajectoryBlock

_FIXTURE = re.compile(r"\{\{\s*fixture\s*\}\}")


class Wish(msgspec.Struct, frozen=True):
    """What is to be run, and the words for why."""

    tests: frozenset[str] = frozenset()
    """Identities, as `selection.identity` gives them."""
    lanes: frozenset[str] = frozenset()
    """Files whose lanes are to be run."""
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.tests or self.lanes)

    def also(self, other: Wish) -> Wish:
        """Both; the newer reason is the one to tell."""
        return Wish(self.tests | other.tests, self.lanes | other.lanes, other.why or self.why)


class Sources(msgspec.Struct, frozen=True):
    """What is watched beside the suites."""

    fixture: Watched | None = None
    servers: tuple[Watched, ...] = ()
    """What --also names."""


def everything(tests: Iterable[Test], loaded: LoadedSuite, why: str) -> Wish:
    return Wish(frozenset(map(identity, tests)), frozenset(lane.file for lane in loaded.lanes), why)


def affected(
    touched: Collection[str],
    files: Collection[str],
    tests: Sequence[Test],
    loaded: LoadedSuite,
    sources: Sources,
    choice: ServerChoice,
) -> Wish:
    """What to run again. `touched` are real paths, `files` the suites that say something new."""
    server = [path for path in touched if _is_seen(path, sources.servers)]
    if server:
        return everything(tests, loaded, _changed(server))
    data = [path for path in touched if sources.fixture and _is_seen(path, (sources.fixture,))]
    found = {
        identity(test)
        for test in tests
        if test.place.file in files
        or (data and uses_fixture(test, choice))
        or _reads(test, touched)
    }
    lanes = {lane.file for lane in loaded.lanes if lane.file in files or data}
    return Wish(frozenset(found), frozenset(lanes), _changed([*files, *data] or list(touched)))


def uses_fixture(test: Test, choice: ServerChoice) -> bool:
    """Whether the folder is part of what a test does: it, its server or the command line names it.

    A container gets the folder without being told.
    """
    named = (choice.server or "", *choice.command)
    if any(map(_FIXTURE.search, named)) or choice.docker or (test.server and test.server.docker):
        return True
    return _FIXTURE.search(repr(test)) is not None


def _reads(test: Test, touched: Collection[str]) -> bool:
    """Whether it judges a log that changed."""
    log = test.block.audit_log if isinstance(test.block, TrajectoryBlock) else ""
    return bool(log) and os.path.realpath(log) in touched


def _is_seen(path: str, places: Iterable[Watched]) -> bool:
    return any(path == place.path or is_below(path, place.path) for place in places)


def _changed(paths: Collection[str]) -> str:
    """`server.py changed`, `server.py and 2 more changed`."""
    names = sorted({_short(path) for path in paths})
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more} changed"


def _short(path: str) -> str:
    """From here, if it is below."""
    here = os.getcwd()  # noqa: PTH109 - paths are texts here
    real = os.path.realpath(path)
    return real[len(here) + 1 :] if is_below(real, here) else path
