"""Which files are suites: everything that was named, and what the folders among it hold.

Hidden folders, fixtures and snapshots are data of tests, never suites. Folders are not entered
through symbolic links, so nothing is found twice and no walk is endless.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from mcptest.suite.fingerprint import Fingerprint
from mcptest.suite.model import Place
from mcptest.suite.problems import Problem

SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = frozenset({"fixtures", "__snapshots__", "node_modules"})

Found = str | Problem
_Identity = tuple[int, int]


def discover(
    paths: Sequence[str], fixture: str | None, seen_by: Fingerprint | None = None
) -> Iterator[Found]:
    """The files of all paths, each once, in byte order of their names; and what can't be read."""
    seen_by = seen_by or Fingerprint()
    avoided = _identity_of(fixture) if fixture else None
    seen: set[_Identity] = set()
    for path in paths:
        found_any = False
        for found in _under(path, avoided, seen_by):
            if isinstance(found, Problem):
                found_any = found_any or found.severity == "error"
                yield found
                continue
            found_any = True
            identity = _identity_of(found)
            if identity is None or identity not in seen:
                if identity is not None:
                    seen.add(identity)
                yield found
            else:
                seen_by.give_up()  # it may become a file of its own, and nobody looks at it
        if not found_any:
            yield _problem(path, "there is no .yaml or .yml file in this folder")


def _under(path: str, avoided: _Identity | None, seen_by: Fingerprint) -> Iterator[Found]:
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116  # paths are texts here, as they were given
    except OSError as error:
        yield _problem(path, f"can't be read: {error.strerror}")
        return
    except ValueError:
        yield _problem(path, "is no path")
        return
    if stat.S_ISDIR(kind):
        yield from _walk(path, avoided, seen_by)
    elif not path.lower().endswith(SUFFIXES):
        yield _problem(path, "is not a YAML file", "suites end in .yaml or .yml")
    else:
        yield path


def _walk(root: str, avoided: _Identity | None, seen_by: Fingerprint) -> Iterator[Found]:
    waiting: list[os.DirEntry[str] | str] = [root]
    while waiting:
        entry = waiting.pop()
        if not isinstance(entry, str) and not entry.is_dir(follow_symlinks=False):
            yield from _file(entry)
            continue
        folder = entry if isinstance(entry, str) else entry.path
        if not isinstance(entry, str) and _is_hidden_or_data(entry.name):
            continue
        if not isinstance(entry, str) and avoided and _identity_of(entry.path) == avoided:
            seen_by.avoided(entry.path)
            continue
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda one: os.fsencode(one.name), reverse=True)
        except OSError as error:
            yield _problem(folder, f"can't be read: {error.strerror}")
            continue
        seen_by.folder(folder, inside)
        waiting.extend(inside)


def _file(entry: os.DirEntry[str]) -> Iterator[Found]:
    if entry.is_symlink() and entry.is_dir():
        if not _is_hidden_or_data(entry.name):
            yield _problem(entry.path, "a link to a folder is not followed", warning=True)
    elif entry.name.lower().endswith(SUFFIXES):
        yield entry.path


def _is_hidden_or_data(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED_FOLDERS


def _identity_of(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # as above
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _problem(path: str, message: str, hint: str = "", *, warning: bool = False) -> Problem:
    return Problem(Place(path), message, hint, severity="warning" if warning else "error")
