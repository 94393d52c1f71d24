"""Suites that stay loaded: only files that changed are read again.

A file that can't be used costs its own tests and is told with its problems; the others stay.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

import msgspec

from mcptest.suite.discover import discover
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.model import Suite
from mcptest.suite.problems import Problem, SuiteError

_Signature = tuple[int, int, int, int]


class _Known(msgspec.Struct, frozen=True):
    """One file, as it was when it was read."""

    signature: _Signature | None
    loaded: LoadedSuite
    """Of a file that can't be used only the problems."""


class Refreshed(msgspec.Struct, frozen=True):
    """Everything that there is now, and what is new about it."""

    loaded: LoadedSuite
    changed: frozenset[str] = frozenset()
    """The files that came or say something else than before, by the names the tests have."""
    problems_changed: bool = False
    """Something is wrong that was not wrong before, or no longer is."""


class WarmSuites:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        fixture: str | None = None,
        server_given: bool = False,
        lanes: bool = True,
    ) -> None:
        """`lanes`: whether what files ask for besides their tests is wanted."""
        self._paths = tuple(paths)
        self._fixture = fixture
        self._server_given = server_given
        self._lanes = lanes
        self._files: dict[str, _Known] = {}
        self._problems: tuple[Problem, ...] = ()

    def refresh(self, touched: Collection[str] = ()) -> Refreshed:
        """Look at all files, and read those that changed.

        `touched`: real paths of files that were written to. They are read even if they look as
        before: two saves within one tick of the clock do.
        """
        before, self._files = self._files, {}
        elsewhere: list[Problem] = []
        names = {path.rpartition("/")[2] for path in touched}
        for found in discover(self._paths, self._fixture):
            if isinstance(found, Problem):
                elsewhere.append(found)
            else:
                # Resolving links looks at every folder on the way: only for the few it can be.
                is_touched = (
                    found.rpartition("/")[2] in names and os.path.realpath(found) in touched
                )
                self._files[found] = self._known(found, before.get(found), is_touched)
        changed = {
            file
            for file, known in self._files.items()
            if file not in before or known.loaded is not before[file].loaded
        }
        loaded = _together(elsewhere, self._files.values(), with_lanes=self._lanes)
        problems_before, self._problems = self._problems, loaded.problems
        return Refreshed(loaded, frozenset(changed), loaded.problems != problems_before)

    def _known(self, file: str, before: _Known | None, is_touched: bool) -> _Known:
        signature = _signature(file)
        if before is not None and before.signature == signature and not is_touched:
            return before
        loaded = self._load(file)
        if before is not None and before.loaded == loaded:  # saved without a change, or touched
            loaded = before.loaded
        return _Known(signature, loaded)

    def _load(self, file: str) -> LoadedSuite:
        try:
            return load_suites(
                [file],
                fixture=self._fixture,
                keep_going=True,
                server_given=self._server_given,
            )
        except SuiteError as error:
            return LoadedSuite(Suite(()), error.problems)


def _together(
    elsewhere: Iterable[Problem], files: Iterable[_Known], *, with_lanes: bool
) -> LoadedSuite:
    known = [each.loaded for each in files]
    tests = tuple(test for one in known for test in one.suite.tests)
    names = tuple(name for one in known for name in one.suite.files)
    problems = (
        *(problem for problem in elsewhere if problem.severity == "error"),
        *(problem for one in known for problem in one.problems),
    )
    lanes = tuple(lane for one in known for lane in one.lanes if with_lanes)
    return LoadedSuite(Suite(tests, names), problems, (), lanes)


def _signature(file: str) -> _Signature | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - paths are texts here, as they were given
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
