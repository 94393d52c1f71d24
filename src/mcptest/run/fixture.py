"""A private copy of the fixture folder for each test, always removed.

What can't be part of a copy is left out, and that is said.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.errors import UsageError
from mcptest.run.temporary import new_folder, remove_folder
from mcptest.run.tree_copy import PREFIX, copy_folder

if TYPE_CHECKING:  # paths are texts here: this is on the way to the first server
    from pathlib import Path


class FixtureError(UsageError):
    """The fixture can't be copied. A test on the original would not be isolated, so it fails."""


class FixtureCopy(msgspec.Struct, frozen=True):
    """The copy's folder, and what could not be part of it."""

    folder: str
    left_out: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        from pathlib import Path

        return Path(self.folder)

    def remove(self) -> bool:
        """Remove it whatever the server did to it; whether it is gone."""
        return remove_folder(os.path.dirname(self.folder))  # noqa: PTH120 - as a text


def checked_fixture(path: str | None) -> str | None:
    """The fixture folder, resolved; UsageError when it is none."""
    if path is None:
        return None
    if not os.path.isdir(path):  # noqa: PTH112 - as a text
        what = "is not a folder" if os.path.exists(path) else "does not exist"  # noqa: PTH110 - as a text
        raise UsageError(f"--fixture {path} {what}")
    return os.path.realpath(path)


def isolate_fixture(source: str | Path) -> FixtureCopy:
    """Copy the folder to a new place under the same base name."""
    home: str | None = None
    try:
        home = new_folder(PREFIX)
        copy, left_out = copy_folder(str(source), home)
        return FixtureCopy(copy, tuple(left_out))
    except (OSError, RecursionError) as error:
        if home is not None:
            remove_folder(home)
        raise FixtureError(f"can't copy the fixture {source}: {error}") from None
    except BaseException:
        if home is not None:
            remove_folder(home)
        raise
