"""Where the golden file of a test is: beside its suite, under a name that is never another's.

`evals/echo.yaml` has `evals/.snapshots/echo.snap`. The tests of a file with many have a folder of
their own: `evals/.snapshots/echo.snaps/…`. Whatever a test is called, its file is in that folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from mcptest.suite.model import Place, Test
from mcptest.suite.written_names import FileNames

FOLDER = ".snapshots"
SUFFIX = ".snap"
MANY = ".snaps"
_USUAL = ".yaml"
_SUITES = (".yaml", ".yml")


class Golden(msgspec.Struct, frozen=True):
    """A golden file by the folder of its suite and its name within `.snapshots`."""

    beside: str
    name: str

    @property
    def path(self) -> str:
        return os.path.join(self.beside, FOLDER, self.name)  # noqa: PTH118 - as it was given


def golden_files(tests: Sequence[Test]) -> Mapping[Place, Golden]:
    """The file of each test. All tests of a suite file must be among them."""
    by_file: dict[str, list[Test]] = {}
    for test in tests:
        by_file.setdefault(test.place.file, []).append(test)
    found: dict[Place, Golden] = {}
    for file, of_file in by_file.items():
        beside, base = os.path.dirname(file), base_of(file)  # noqa: PTH120 - as above
        if _is_alone(of_file):
            found[of_file[0].place] = Golden(beside, base + SUFFIX)
            continue
        names = FileNames()
        for test in of_file:
            stem = names.name_for(test.name).removesuffix(_USUAL)
            found[test.place] = Golden(beside, f"{base}{MANY}/{stem}{SUFFIX}")
    return found


def base_of(file: str) -> str:
    """`echo` of `echo.yaml`. Any other ending stays, so that no two suites are called the same."""
    name = os.path.basename(file)  # noqa: PTH119 - as above
    stem = name.removesuffix(_USUAL)
    return name if stem.lower().endswith(_SUITES) else stem


def _is_alone(tests: Sequence[Test]) -> bool:
    """A file that is one test. One of a list with a single entry may get company."""
    return len(tests) == 1 and tests[0].place.column == 1
