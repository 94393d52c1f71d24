"""What every `python -m tests.docs.…_docs FOLDER [--check]` does with its words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def write_or_check(
    arguments: list[str],
    module: str,
    write: Callable[[Path], None],
    stale: Callable[[Path], list[str]],
) -> int:
    """Write the pages of a folder, or say with `--check` which of them are not fresh."""
    folders = [Path(one) for one in arguments if one != "--check"]
    if len(folders) != 1:
        sys.stderr.write(f"usage: python -m {module} FOLDER [--check]\n")
        return 2
    if "--check" not in arguments:
        write(folders[0])
        return 0
    found = stale(folders[0])
    for name in found:
        sys.stderr.write(f"{folders[0] / name} is not fresh\n")
    return 1 if found else 0


def stale_files(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Names of Markdown files that are missing, different, or there without cause."""
    there = {path.name for path in folder.glob("*.md")}
    different = [
        name
        for name, text in wanted.items()
        if name not in there or (folder / name).read_text(encoding="utf-8") != text
    ]
    return sorted([*different, *(there - wanted.keys())])


def write_files(folder: Path, wanted: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale_files(folder, wanted):
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()
