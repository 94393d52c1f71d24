"""Programs to begin with: for each client library, one that takes part in every scenario.

They lie in `drivers`, one file each, as a person would write them: nothing of ours is imported.
What a program is for and what has to be installed for it is said in its first lines, and read from
there.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from mcptest.core.errors import UsageError, close_matches

_PROGRAMS = Path(__file__).parent / "drivers"
_RUNNERS = {".py": "python", ".mjs": "node"}
_TITLE = re.compile(r"A conformance client: (.+)\.$", re.MULTILINE)
_INSTALL = re.compile(r"Install: +(.+)$", re.MULTILINE)


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    library: str
    """What it drives, in words."""
    install: str
    """The command line that installs the library."""
    path: Path

    @property
    def program(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def file(self) -> str:
        """What a person would call it; never the name of a library that it imports."""
        return f"client{self.path.suffix}"

    @property
    def command(self) -> str:
        return f"{_RUNNERS[self.path.suffix]} {self.file}"


@cache
def drivers() -> tuple[Driver, ...]:
    """All of them: the official SDKs first."""
    found = [_read(path) for path in _PROGRAMS.iterdir() if path.suffix in _RUNNERS]
    return tuple(sorted(found, key=lambda one: ("official" not in one.library, one.name)))


def _read(path: Path) -> Driver:
    head = path.read_text(encoding="utf-8")
    title, install = _TITLE.search(head), _INSTALL.search(head)
    assert title is not None, path.name
    assert install is not None, path.name
    return Driver(name=path.stem, library=title[1], install=install[1], path=path)


def driver_named(name: str) -> Driver:
    table = {one.name: one for one in drivers()}
    if name in table:
        return table[name]
    near = [one for one in table if name and name.lower() in one]
    near = near or close_matches(name.lower(), table, 3, 0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "list them with --list"
    raise UsageError(f"unknown driver: {name!r}", hint=hint)
